//! Looking whether a provider is there: a TCP connection, and a GET where it speaks HTTP without TLS.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::{net::TcpStream, time::timeout};

/// Longest time for name resolution and the TCP connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Longest time to the head of an answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// What was found at an address.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// `host:port`.
    address: String,
    /// Milliseconds to the connection; absent when none was accepted.
    connect_ms: Option<f64>,
    /// Why not.
    connect_error: Option<String>,
    /// What it answered to a GET, where one was sent.
    http: Option<HttpFound>,
}

/// What a server answered to a GET.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HttpFound {
    path: String,
    status: Option<u16>,
    content_type: Option<String>,
    /// Milliseconds to the head of the answer.
    answer_ms: Option<f64>,
    error: Option<String>,
}

/// Connects to `address` (`host:port`), and asks for `path` if one is given.
pub async fn look(address: String, path: Option<&str>) -> Found {
    let begun = Instant::now();
    let connected = match timeout(CONNECT_MAX, TcpStream::connect(&address)).await {
        Ok(connected) => connected.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no connection within {} s", CONNECT_MAX.as_secs())),
    };
    let connect_ms = milliseconds(begun);
    match connected {
        Ok(stream) => {
            let http = match path {
                Some(path) => Some(get(stream, &address, path).await),
                None => None,
            };
            Found { address, connect_ms: Some(connect_ms), connect_error: None, http }
        }
        Err(error) => Found { address, connect_ms: None, connect_error: Some(error), http: None },
    }
}

async fn get(stream: TcpStream, address: &str, path: &str) -> HttpFound {
    let path = format!("/{}", path.trim_start_matches('/'));
    let begun = Instant::now();
    let exchange = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        // Its failures reach us through the sender.
        tokio::spawn(connection);
        let request = Request::get(&path).header(header::HOST, address).body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
        sender.send_request(request).await.map_err(|error| error.to_string())
    };
    let answered = timeout(ANSWER_MAX, exchange).await.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWER_MAX.as_secs())));
    let answer_ms = milliseconds(begun);
    match answered {
        Ok(answer) => HttpFound {
            path,
            status: Some(answer.status().as_u16()),
            content_type: answer.headers().get(header::CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
            answer_ms: Some(answer_ms),
            error: None,
        },
        Err(error) => HttpFound { path, status: None, content_type: None, answer_ms: None, error: Some(error) },
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

impl Found {
    /// Whether it accepted the connection, and answered if it was asked.
    pub fn is_there(&self) -> bool {
        self.connect_error.is_none() && self.http.as_ref().is_none_or(|http| http.error.is_none())
    }

    /// In words.
    pub fn told(&self) -> String {
        let connect_ms = match (&self.connect_error, self.connect_ms) {
            (Some(error), _) => return format!("{} cannot be reached: {error}", self.address),
            (None, connect_ms) => connect_ms.unwrap_or_default(),
        };
        let mut told = format!("{} accepts connections ({connect_ms:.2} ms)", self.address);
        if let Some(http) = &self.http {
            told.push_str(&match (&http.error, http.status) {
                (None, Some(status)) => {
                    let kind = http.content_type.as_ref().map(|kind| format!(", {kind}")).unwrap_or_default();
                    format!("; GET {} is answered {status}{kind} ({:.2} ms)", http.path, http.answer_ms.unwrap_or_default())
                }
                (error, _) => format!("; GET {} is not answered: {}", http.path, error.as_deref().unwrap_or("no answer")),
            });
        }
        told.replace(char::is_control, "?")
    }
}
