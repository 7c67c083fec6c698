//! A small HTTP/1.1 server on loopback for the participants, plain or over mutual TLS: whole requests in, whole answers out.

use std::{convert::Infallible, net::Ipv4Addr, sync::Arc, time::Duration};

use bodkin_arrowhead::common_name::SystemCommonName;
use bodkin_trust::Certificate;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Method, Response, StatusCode, Uri, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

/// Connections served at once; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 64;
/// Longest request body, in bytes; a longer one is answered 413.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Longest time for a TLS handshake, for a request's head, and for its body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept, for instance without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A whole request.
pub struct Request<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Path and query.
    pub uri: &'a Uri,
    /// Over TLS the system that its certificate names; a certificate without such a name is not served.
    pub caller: Option<&'a SystemCommonName>,
    /// Its body; may be empty.
    pub body: Bytes,
}

/// A listener on loopback whose port the kernel chose.
pub async fn listen() -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

/// Serves for ever, over TLS where there is an acceptor. `answer` gives status and JSON body for a request.
pub async fn serve<A>(listener: TcpListener, acceptor: Option<TlsAcceptor>, answer: A)
where
    A: Fn(&Request<'_>) -> (StatusCode, String) + Send + Sync + 'static,
{
    let answer = Arc::new(answer);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve_connection(stream, acceptor.clone(), answer.clone(), place));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve_connection<A>(stream: TcpStream, acceptor: Option<TlsAcceptor>, answer: Arc<A>, _place: OwnedSemaphorePermit)
where
    A: Fn(&Request<'_>) -> (StatusCode, String) + Send + Sync + 'static,
{
    // An answer is written whole; behind a handshake the kernel would hold it back for the next acknowledgement.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let Some(acceptor) = acceptor else { return speak(stream, None, answer).await };
    // Who does not get through the handshake is not served, and nobody else waits for it.
    let Ok(Ok(stream)) = timeout(REQUEST_TIMEOUT, acceptor.accept(stream)).await else { return };
    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let caller = shown.and_then(|shown| Certificate::from_der(shown).ok()?.system().ok());
    if caller.is_some() {
        speak(stream, caller, answer).await;
    }
}

async fn speak<A>(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, caller: Option<SystemCommonName>, answer: Arc<A>)
where
    A: Fn(&Request<'_>) -> (StatusCode, String),
{
    let service = service_fn(|request| {
        let (answer, caller) = (&answer, caller.as_ref());
        async move { Ok::<_, Infallible>(respond(request, caller, answer.as_ref()).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT);
    // A peer that breaks its connection off loses its answer, nothing else.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

async fn respond<A>(request: hyper::Request<Incoming>, caller: Option<&SystemCommonName>, answer: &A) -> Response<Full<Bytes>>
where
    A: Fn(&Request<'_>) -> (StatusCode, String),
{
    let (head, body) = request.into_parts();
    let (status, body) = match timeout(REQUEST_TIMEOUT, Limited::new(body, BODY_BYTES_MAX).collect()).await {
        Ok(Ok(body)) => answer(&Request { method: &head.method, uri: &head.uri, caller, body: body.to_bytes() }),
        Ok(Err(_)) => (StatusCode::PAYLOAD_TOO_LARGE, String::new()),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, String::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
