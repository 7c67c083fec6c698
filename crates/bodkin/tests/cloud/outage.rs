//! Kills in the middle of publishing: a listener that comes back has everything that was answered.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tempfile::TempDir;

use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Connection;
use crate::support::random::Random;
use crate::support::sse::EventStream;
use crate::support::stream::{Event, Told};

const ROUNDS: usize = 4;
const PUBLISHERS: usize = 3;
/// Answered publishes of each publisher from one start to the kill, at least and at most.
const ANSWERED: (u64, u64) = (5, 150);
const TYPE: &str = "outage";
const TARGET: &str = "/eventhandler/subscription?eventtype=outage";

/// One event on a kept connection; an error when it was not answered.
fn publish(connection: &mut Connection, publisher: usize, number: usize) -> io::Result<()> {
    let body = event(TYPE, system(&format!("outage-{publisher}"), 1), &format!("{publisher} {number}")).to_string();
    let answer = connection.request("POST", "/eventhandler/publish", &[("Content-Type", "application/json")], Some(body.as_bytes()))?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    Ok(())
}

/// Publishes on and on until the cloud is gone; gives the numbers that were answered, and the next one.
fn publish_until_killed(address: SocketAddr, publisher: usize, from: usize, answered: &AtomicUsize) -> (Vec<usize>, usize) {
    let mut connection = Connection::open(address).expect("the cloud is up");
    let mut numbers = Vec::new();
    for number in from.. {
        if publish(&mut connection, publisher, number).is_err() {
            return (numbers, number + 1);
        }
        numbers.push(number);
        answered.fetch_add(1, Ordering::SeqCst);
    }
    unreachable!("the numbers do not end")
}

/// What a listener has heard over all its connections.
#[derive(Default)]
struct Heard {
    events: Vec<Event>,
}

impl Heard {
    /// Listens from behind the last event, or from the beginning. What was heard in the turn of the kill may not have been written any
    /// more; then a little of what was heard before it comes again, under the same identities.
    fn listen(&self, cloud: &Cloud) -> EventStream {
        let address = cloud.address(System::EventHandler);
        match self.events.last() {
            Some(last) => EventStream::open(address, TARGET, &[("Last-Event-ID", &last.id)]),
            None => EventStream::open(address, &format!("{TARGET}&since=0"), &[]),
        }
    }

    fn take(&mut self, told: Vec<Told>) {
        for item in told {
            if let Told::Event(event) = item {
                assert_ne!(event.event_type, "bodkin-lost", "{event:?}");
                if !self.events.iter().any(|known| known.id == event.id) {
                    self.events.push(event);
                }
            }
        }
    }
}

#[test]
fn kills_in_the_middle_of_publishing_lose_nothing_for_a_listener_that_comes_back() {
    let mut random = Random::from_environment("events before the kills");
    let data = TempDir::new().expect("a temporary directory");
    let mut answered: Vec<Vec<usize>> = vec![Vec::new(); PUBLISHERS];
    let mut next = [0; PUBLISHERS];
    let mut heard = Heard::default();
    for round in 0..ROUNDS {
        let cloud = Launch::new().data(data.path()).start();
        if round == 0 {
            for publisher in 0..PUBLISHERS {
                cloud.register_system(&format!("outage-{publisher}"), 1);
            }
        }
        let stream = heard.listen(&cloud);
        let address = cloud.address(System::EventHandler);
        let enough = usize::try_from(random.between(ANSWERED.0, ANSWERED.1)).expect("a small number");
        let counts: [AtomicUsize; PUBLISHERS] = Default::default();
        let published: Vec<(Vec<usize>, usize)> = thread::scope(|scope| {
            let publishing: Vec<_> = next
                .iter()
                .enumerate()
                .map(|(publisher, from)| {
                    let count = &counts[publisher];
                    scope.spawn(move || publish_until_killed(address, publisher, *from, count))
                })
                .collect();
            while counts.iter().any(|count| count.load(Ordering::SeqCst) < enough) {
                thread::yield_now();
            }
            cloud.kill();
            publishing.into_iter().map(|handle| handle.join().expect("a publisher does not panic")).collect()
        });
        for (publisher, (numbers, after)) in published.into_iter().enumerate() {
            answered[publisher].extend(numbers);
            next[publisher] = after;
        }
        heard.take(stream.until_end());
    }
    let cloud = Launch::new().data(data.path()).start();
    let stream = heard.listen(&cloud);
    // What comes after everything else has come.
    let mut connection = cloud.connect(System::EventHandler);
    publish(&mut connection, 0, next[0]).expect("an answer");
    answered[0].push(next[0]);
    let last = format!("0 {}", next[0]);
    let told = stream.wait_until(|told| told.iter().any(|item| matches!(item, Told::Event(event) if event.data == last)), "last event");
    heard.take(told);
    assert_complete(&heard.events, &answered);
}

/// Everything answered was heard, nothing under two identities, each publisher's events in order.
#[track_caller]
fn assert_complete(heard: &[Event], answered: &[Vec<usize>]) {
    for (publisher, answered) in answered.iter().enumerate() {
        let of_publisher = |event: &Event| {
            let (name, number) = event.data.split_once(' ')?;
            (name == publisher.to_string()).then(|| number.parse::<usize>().expect("a number"))
        };
        let numbers: Vec<usize> = heard.iter().filter_map(of_publisher).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "publisher {publisher}: out of order or doubled");
        let heard: BTreeSet<usize> = numbers.into_iter().collect();
        let lost: Vec<&usize> = answered.iter().filter(|number| !heard.contains(number)).collect();
        assert!(lost.is_empty(), "publisher {publisher}: answered and lost: {lost:?}");
        // Beyond what was answered there is at most what each kill left without an answer.
        assert!(heard.len() <= answered.len() + ROUNDS, "publisher {publisher}: {} heard, {} answered", heard.len(), answered.len());
    }
}
