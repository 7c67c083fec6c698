//! Subscriber by HTTP callback: it answers each notification with 200.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use super::super::access::CALLBACK_SYSTEM;
use super::super::nodes::CALLBACK_PORT;
use super::super::plan::Transport;
use super::super::plant::VIEWER;
use super::Scene;

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longest wait of one read.
const TURN_MAX: Duration = Duration::from_millis(100);
/// Longest request that is accepted.
const REQUEST_BYTES_MAX: usize = 1 << 20;
const HEADERS_MAX: usize = 64;
const ACCEPTED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Accepts connections of both nodes until the subscribers end.
///
/// # Errors
/// Returns an error if the port is not free, or the system has no certificate.
pub fn subscribe(scene: &Arc<Scene>) -> anyhow::Result<()> {
    let listener = TcpListener::bind((VIEWER, CALLBACK_PORT))?;
    listener.set_nonblocking(true)?;
    let config = scene.access.serving(CALLBACK_SYSTEM)?;
    let mut connections = Vec::new();
    while scene.subscribers_run() {
        match listener.accept() {
            Ok((stream, _)) => {
                let (scene, config) = (Arc::clone(scene), config.clone());
                // A connection that breaks is the node's to make again.
                connections.push(thread::spawn(move || drop(serve(&scene, stream, config))));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(LOOK_EVERY),
            Err(error) => return Err(error.into()),
        }
    }
    connections.into_iter().for_each(|connection| drop(connection.join()));
    Ok(())
}

fn serve(scene: &Scene, stream: TcpStream, config: Option<Arc<ServerConfig>>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TURN_MAX))?;
    match config {
        None => answer(scene, stream),
        Some(config) => answer(scene, StreamOwned::new(ServerConnection::new(config).map_err(io::Error::other)?, stream)),
    }
}

fn answer(scene: &Scene, mut stream: impl Read + Write) -> io::Result<()> {
    let (mut kept, mut piece) = (Vec::new(), [0; 16 * 1024]);
    while scene.subscribers_run() {
        match stream.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => kept.extend_from_slice(&piece[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(error) => return Err(error),
        }
        while let Some((body, taken)) = request(&kept)? {
            let event: Value = serde_json::from_slice(&body).unwrap_or_default();
            scene.receive(Transport::Callback, event["payload"].as_str().unwrap_or_default().as_bytes(), false);
            kept.drain(..taken);
            stream.write_all(ACCEPTED)?;
            stream.flush()?;
        }
    }
    Ok(())
}

/// Returns the body of the first whole request and the request's length.
///
/// # Errors
/// Returns an error if the bytes are no request, or a request that is too long.
pub fn request(bytes: &[u8]) -> io::Result<Option<(Vec<u8>, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = request.parse(bytes).map_err(io::Error::other)? else { return Ok(None) };
    let length = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse().ok()).unwrap_or(0);
    if length > REQUEST_BYTES_MAX {
        return Err(io::Error::other("the notification is too long"));
    }
    Ok(bytes.get(head..head + length).map(|body| (body.to_vec(), head + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_whole_with_its_body() {
        let text = b"POST /x HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcPOST";
        let (body, taken) = request(text).unwrap().unwrap();
        assert_eq!((&body[..], taken), (&b"abc"[..], text.len() - 4));
        assert!(request(&text[..text.len() - 5]).unwrap().is_none());
    }
}
