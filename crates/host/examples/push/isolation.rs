//! What dead and slow subscribers cost the others: the time from a publisher's send to the receive of those that answer at once.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use crate::http::{Ports, answer, event, request};

/// Time between two events.
const PERIOD: Duration = Duration::from_millis(4);
/// What a slow subscriber takes for an event.
const SLOWNESS: Duration = Duration::from_millis(200);

/// Publishes for some seconds to `good` subscribers beside `dead` and `slow` ones; prints the good ones' percentiles.
pub fn run(ports: Ports, good: usize, dead: usize, slow: usize, seconds: u64) -> io::Result<()> {
    let (started, entry) = (Instant::now(), ports.publisher()?);
    let times_ns: Arc<Mutex<Vec<u64>>> = Arc::default();
    for index in 0..good + dead + slow {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        ports.subscribe(&entry, listener.local_addr()?.port())?;
        let (is_slow, times_ns) = (index >= good + dead, times_ns.clone());
        if (good..good + dead).contains(&index) {
            continue;
        }
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let times_ns = times_ns.clone();
                thread::spawn(move || {
                    answer(stream, |request| match is_slow {
                        true => thread::sleep(SLOWNESS),
                        false => times_ns.lock().expect("nobody panics").push(nanos(started).saturating_sub(sent_ns(request))),
                    })
                });
            }
        });
    }
    let mut publisher = TcpStream::connect(("127.0.0.1", ports.event_handler))?;
    publisher.set_nodelay(true)?;
    let (begun, mut answered) = (Instant::now(), [0; 4096]);
    let events = u64::from(seconds as u32) * 1000 / PERIOD.as_millis() as u64;
    for number in 0..events {
        thread::sleep((PERIOD * number as u32).saturating_sub(begun.elapsed()));
        publisher.write_all(&request("POST", "/eventhandler/publish", &event(&format!("t{};", nanos(started)))))?;
        publisher.read(&mut answered).map(drop)?;
    }
    thread::sleep(Duration::from_secs(1));
    let mut times_ns = std::mem::take(&mut *times_ns.lock().expect("nobody panics"));
    times_ns.sort_unstable();
    let at = |share: f64| times_ns[((times_ns.len() - 1) as f64 * share) as usize] / 1000;
    let expected = events as usize * good;
    println!(
        "{good} good, {dead} dead, {slow} slow: {} of {expected} received; p50 {} us, p99 {} us, p99.9 {} us",
        times_ns.len(),
        at(0.5),
        at(0.99),
        at(0.999)
    );
    Ok(())
}

fn nanos(started: Instant) -> u64 {
    started.elapsed().as_nanos() as u64
}

/// The time in an event's payload.
fn sent_ns(request: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(request);
    let payload = text.split("\"payload\":\"t").nth(1).and_then(|rest| rest.split(';').next());
    payload.and_then(|digits| digits.parse().ok()).expect("the event is one of ours")
}
