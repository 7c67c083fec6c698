//! A small HTTP server in the tests' own process, for what the bench does to a server it did not write.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use crate::endpoint::Endpoint;

/// An answer: status and body. Status 0 closes the connection instead.
pub type Answer = (u16, String);

/// Serves every connection on a thread of its own until the test process ends; `answer` sees path and body.
pub fn serve(answer: impl Fn(&str, &str) -> Answer + Clone + Send + 'static) -> Endpoint {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let endpoint = Endpoint::resolve(&listener.local_addr().unwrap().to_string()).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            thread::spawn(move || connection(stream.unwrap(), answer));
        }
    });
    endpoint
}

/// An endpoint where nothing listens.
pub fn nobody() -> Endpoint {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    Endpoint::resolve(&listener.local_addr().unwrap().to_string()).unwrap()
}

fn connection(stream: TcpStream, answer: impl Fn(&str, &str) -> Answer) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let path = line.split(' ').nth(1)?.to_string();
        let mut length = 0;
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).ok()?;
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let (status, text) = answer(&path, std::str::from_utf8(&body).ok()?);
        if status == 0 {
            return None;
        }
        let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        reader.get_mut().write_all(head.as_bytes()).ok()?;
    }
}
