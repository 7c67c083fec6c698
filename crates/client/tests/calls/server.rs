//! A server that plays a script.

use std::{net::SocketAddr, time::Duration};

use bodkin_client::{Connection, CoreSystems, Limits};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};

/// What the server does on one connection after the other: an answer to each request, then it closes.
pub type Script = Vec<Vec<String>>;

/// An address that refuses, and is nobody else's while the socket lives: it is bound, and does not listen.
pub fn nobody() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// A server that plays a script and tells the first line of every request it read.
pub struct Server {
    pub address: SocketAddr,
    requests: mpsc::UnboundedReceiver<String>,
    player: JoinHandle<()>,
}

impl Server {
    pub async fn play(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (told, requests) = mpsc::unbounded_channel();
        let player = tokio::spawn(async move {
            for answers in script {
                let (mut stream, _) = listener.accept().await.unwrap();
                for answer in answers {
                    told.send(read_request(&mut stream).await).unwrap();
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
                stream.shutdown().await.unwrap();
            }
        });
        Self { address, requests, player }
    }

    pub fn connection(&self) -> Connection {
        Connection::new(self.address, limits())
    }

    /// The first lines of all requests, once the script has been played.
    pub async fn requests(mut self) -> Vec<String> {
        self.player.await.unwrap();
        let mut all = Vec::new();
        while let Some(line) = self.requests.recv().await {
            all.push(line);
        }
        all
    }
}

pub fn limits() -> Limits {
    Limits { answer_timeout: Duration::from_millis(300), answer_bytes_max: 4096, event_bytes_max: 64, ..Limits::default() }
}

/// Reads head and body of a request; gives its first line.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return head.lines().next().unwrap_or_default().to_owned();
            }
        }
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "the client closed the connection in a request");
        bytes.extend_from_slice(&piece[..read]);
    }
}

pub fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

pub fn provider_at(address: &str) -> String {
    let (host, port) = address.rsplit_once(':').unwrap();
    let entry = format!(
        r#"{{"id":1,"serviceDefinition":{{"id":1,"serviceDefinition":"x"}},"provider":{{"id":1,"systemName":"core","address":"{host}","port":{port}}},
            "serviceUri":"/x","secure":"NOT_SECURE","version":1,"interfaces":[]}}"#
    );
    format!(r#"{{"serviceQueryData":[{entry}],"unfilteredHits":1}}"#)
}

/// Core systems that are all at the server's address: a registry that says so is played first.
pub async fn cloud_at(server: SocketAddr) -> CoreSystems {
    let found = answer("200 OK", &provider_at(&server.to_string()));
    let registry = Server::play(vec![vec![found.clone(), found.clone(), found]]).await;
    CoreSystems::discover_within(registry.address, limits()).await.unwrap()
}
