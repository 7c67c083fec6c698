//! How fast dead letters are replayed to one local subscriber that answers 200 at once.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::http::{Ports, answer, call, event, request};

/// Requests that the subscriber has answered.
static ANSWERED: AtomicU64 = AtomicU64::new(0);

/// Requests a publisher has in flight.
const IN_FLIGHT: usize = 50;

/// Publishes to a subscriber that is not there, waits until it is given up, and replays to it when it is.
pub fn run(ports: Ports, events: u64) -> io::Result<()> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    ports.subscribe(&ports.publisher()?, port)?;
    let published = Instant::now();
    publish(ports.event_handler, &event("21.5"), events)?;
    println!("published {events} events at {:.0}/s", events as f64 / published.elapsed().as_secs_f64());
    wait(ports.monitor, |delivery| delivery["deadLetters"].as_u64() >= Some(events - 1))?;
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    thread::spawn(move || {
        listener.incoming().map_while(Result::ok).for_each(|stream| drop(thread::spawn(move || answer(stream, |_| count()))))
    });
    wait(ports.monitor, |delivery| delivery["state"] == "live")?;

    let live = ANSWERED.load(SeqCst);
    let begun = Instant::now();
    let replayed = call(ports.monitor, "POST", "/api/v1/dead-letters/replay", &Value::Null)?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("the subscriber answered {} requests meanwhile", ANSWERED.load(SeqCst) - live);
    println!("{replayed} in {seconds:.2} s: {:.0}/s", replayed["replayed"].as_f64().unwrap_or_default() / seconds);
    Ok(())
}

/// Publishes on one connection, some events at once.
fn publish(port: u16, event: &Value, events: u64) -> io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let one = request("POST", "/eventhandler/publish", event);
    let mut answers = vec![0; 64 * 1024];
    let mut left = events as usize;
    while left > 0 {
        let some = left.min(IN_FLIGHT);
        stream.write_all(&one.repeat(some))?;
        let mut answered = 0;
        while answered < some {
            let length = stream.read(&mut answers)?;
            answered += answers[..length].windows(13).filter(|bytes| bytes == b"HTTP/1.1 200 ").count();
        }
        left -= some;
    }
    Ok(())
}

/// Waits until the one delivery is as wanted.
fn wait(port: u16, is_wanted: impl Fn(&Value) -> bool) -> io::Result<()> {
    while !is_wanted(&call(port, "GET", "/api/v1/subscriptions", &Value::Null)?["data"][0]) {
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn count() {
    ANSWERED.fetch_add(1, SeqCst);
}
