//! Whether NATS servers sync before they acknowledge. Their own protocol does not tell; what does is `/varz` of the port at which they are monitored.

use std::{
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

use serde::Deserialize;

use super::{CHECK, Finding, WHERE};

/// For each server, from the connection to the end of its answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// What a server says of itself, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Server {
    server_name: String,
    jetstream: Option<JetStream>,
}

#[derive(Debug, Default, Deserialize)]
struct JetStream {
    config: Option<Config>,
}

#[derive(Debug, Deserialize)]
struct Config {
    /// Left out where it is not so.
    #[serde(default)]
    sync_always: bool,
    /// Nanoseconds.
    #[serde(default)]
    sync_interval: u64,
}

/// Asks each server at the port at which it is monitored, as `http://HOST:PORT`.
pub fn examine(monitors: &[String]) -> Vec<Finding> {
    monitors.iter().map(|monitor| judge(monitor, asked(monitor))).collect()
}

fn judge(monitor: &str, server: Result<Server, String>) -> Finding {
    let Server { server_name, jetstream } = match server {
        Ok(server) => server,
        Err(why) => {
            let advice = "give it as http://HOST:PORT, where PORT is http_port in the server's configuration (8222)";
            return Finding::warning(CHECK, format!("{monitor} does not tell how its server syncs: {why}"), advice);
        }
    };
    match jetstream.and_then(|jetstream| jetstream.config) {
        None => Finding::warning(
            CHECK,
            format!("{monitor} is {server_name}, which has no JetStream"),
            "name the servers that have the stream; one that only passes on (a leaf node) need not sync",
        ),
        Some(Config { sync_always: true, .. }) => {
            Finding::ok(CHECK, format!("{monitor} is {server_name}, which syncs before it acknowledges (sync_interval: always)"))
        }
        Some(Config { sync_interval, .. }) => Finding::warning(
            CHECK,
            format!(
                "{monitor} is {server_name}, which syncs every {} s: what it has acknowledged since is lost with its power",
                Duration::from_nanos(sync_interval).as_secs_f64()
            ),
            format!("set jetstream {{ sync_interval: always }} there; {WHERE}"),
        ),
    }
}

fn asked(monitor: &str) -> Result<Server, String> {
    let place = monitor.strip_prefix("http://").ok_or("it does not begin with http://, and nothing else is spoken here")?;
    let answer = get(place.trim_end_matches('/')).map_err(|error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("its answer is none of HTTP")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status != "200" {
        return Err(format!("it answers {status} to /varz: that is no NATS server's port for monitoring"));
    }
    serde_json::from_str(body).map_err(|error| format!("its /varz is not a NATS server's: {error}"))
}

/// The whole answer to a request for `/varz`; by HTTP 1.0, which ends it with the connection.
fn get(place: &str) -> io::Result<String> {
    let begun = Instant::now();
    let address = place.to_socket_addrs()?.next().ok_or_else(|| io::Error::other("the name has no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIME_MAX)?;
    stream.set_write_timeout(Some(ANSWER_TIME_MAX))?;
    stream.write_all(format!("GET /varz HTTP/1.0\r\nHost: {place}\r\n\r\n").as_bytes())?;
    let (mut answer, mut part) = (Vec::new(), [0; 8 * 1024]);
    loop {
        let left = ANSWER_TIME_MAX.saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut part)?;
        if count == 0 {
            return String::from_utf8(answer).map_err(io::Error::other);
        }
        answer.extend_from_slice(&part[..count]);
        if answer.len() as u64 > ANSWER_BYTES_MAX || begun.elapsed() > ANSWER_TIME_MAX {
            return Err(io::Error::other("its answer does not end"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::{super::super::Verdict, *};

    /// A port that answers once; gives it as it is named.
    fn answers(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 256];
            let count = stream.read(&mut request).unwrap();
            assert!(request[..count].starts_with(b"GET /varz HTTP/1.0\r\n"));
            stream.write_all(answer.as_bytes()).unwrap();
        });
        format!("http://{address}/")
    }

    #[test]
    fn a_server_that_does_not_sync_before_it_acknowledges_is_told() {
        for (answer, verdict, words) in [
            (
                "HTTP/1.0 200 OK\r\n\r\n{\"server_name\":\"hub1\",\"jetstream\":{\"config\":{\"sync_interval\":120000000000,\"sync_always\":true}}}",
                Verdict::Ok,
                "hub1, which syncs before",
            ),
            (
                "HTTP/1.0 200 OK\r\n\r\n{\"server_name\":\"hub2\",\"jetstream\":{\"config\":{\"sync_interval\":120000000000}}}",
                Verdict::Warning,
                "syncs every 120 s",
            ),
            ("HTTP/1.0 200 OK\r\n\r\n{\"server_name\":\"leaf\",\"jetstream\":{}}", Verdict::Warning, "no JetStream"),
            ("HTTP/1.0 404 Not Found\r\n\r\n", Verdict::Warning, "answers 404"),
            ("HTTP/1.0 200 OK\r\n\r\n[]", Verdict::Warning, "not a NATS server's"),
            ("INFO {}\r\n", Verdict::Warning, "none of HTTP"),
        ] {
            let found = examine(&[answers(answer)]);
            assert!(found.len() == 1 && found[0].verdict == verdict && found[0].found.contains(words), "{found:?}");
        }
        let found = examine(&["hub1:8222".to_owned(), "http://127.0.0.1:1".to_owned()]);
        assert!(found[0].found.contains("begin with http://") && found[1].found.contains("refused"), "{found:?}");
    }
}
