//! `bench dead-letters`: events that a subscriber refused, and how fast they are delivered once it takes them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use serde_json::Value;

use super::manner::Manner;
use super::pushed::{PushOrder, PushReceiver};
use super::replay::{PUBLISHERS, fill, filled};
use super::subscription::Publishers;
use super::tally::{Sent, SubscriberReport};
use crate::client::Client;
use crate::cloud::{Cloud, Directory};
use crate::load::Measured;
use crate::machine::Conditions;
use crate::options::{DeadLetterOptions, ServerOptions};
use crate::report::{Outcome, Report};
use crate::request::{self, RunTag};
use crate::statistics::Figure;

/// An event that is refused once is dead, and the next one is tried at once: how events die is not what is measured.
const ARGUMENTS: [&str; 4] = ["--push-attempts-max", "1", "--push-breaker-failures", "4294967295"];
/// Longest time without one more dead letter while some are missing.
const STANDSTILL_MAX: Duration = Duration::from_secs(120);
/// Time between two looks at how many there are.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Calls of the replay, each of which may take a part of them.
const REPLAYS_MAX: u32 = 100_000;

/// The answer to `GET /api/v1/dead-letters`, as far as it is needed.
#[derive(Deserialize)]
struct Letters {
    count: u64,
}

/// The answer to `POST /api/v1/dead-letters/replay`.
#[derive(Deserialize)]
struct Replayed {
    replayed: u64,
    failed: u64,
    remaining: u64,
}

/// Lets events die, replays them and reports.
///
/// # Errors
/// The server does not start, has no dead letters, or refuses an event.
pub fn run(options: &DeadLetterOptions) -> anyhow::Result<Report> {
    let mut report = Report::new(format!("{} dead letters, replayed", options.events));
    let warm_up = "none".to_string();
    let mut conditions = Conditions::begin("placed by the kernel".into(), String::new(), warm_up, options.repeat);
    conditions.start_from("empty, before each run".into());
    let mut outcome = Outcome::new("one subscriber".into());
    let server = ServerOptions { arguments: ARGUMENTS.map(String::from).to_vec(), ..options.server.clone() };
    for _ in 0..options.repeat {
        let cloud = Cloud::start(Directory::new(server.data.as_deref())?, &server)?;
        conditions.server = cloud.description();
        if let Some(directory) = cloud.directory() {
            conditions.data_on(&directory.data());
        }
        let (figures, note) = one(&cloud, options.events)?;
        outcome.push(figures, Measured::default());
        report.note(note);
        cloud.close()?;
    }
    report.outcomes = vec![outcome];
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn one(cloud: &Cloud, events: u32) -> anyhow::Result<(Vec<Figure>, String)> {
    let tag = RunTag::now();
    let publishers = Publishers::register(cloud, &tag, PUBLISHERS, "127.0.0.1")?;
    let receiver = PushReceiver::listen(&PushOrder { manners: vec![Manner::Prompt], publishers: usize::from(PUBLISHERS) })?;
    receiver.refuse.store(true, Ordering::Relaxed);
    let (refuse, ports) = (Arc::clone(&receiver.refuse), receiver.ports().to_vec());
    let sent = Arc::new(OnceLock::new());
    let heard = Arc::clone(&sent);
    let receiving = thread::spawn(move || receiver.receive(&heard));
    publishers.subscribe(cloud, &tag.event_type(0), &ports)?;
    let published = fill(cloud, &publishers, &tag.event_type(0), events)?;
    let total: u64 = published.sent.iter().sum();
    let died = wait_for_dead(cloud, total)?;
    refuse.store(false, Ordering::Relaxed);
    sent.set(Sent(published.sent.clone())).map_err(|_| anyhow!("told twice what was sent"))?;
    let started = Instant::now();
    let replayed = replay(cloud, total)?;
    let seconds = started.elapsed().as_secs_f64();
    let received = receiving.join().map_err(|_| anyhow!("the subscriber's thread ended by a panic"))??;
    let left = count(&mut Client::connect(cloud.api()?)?, cloud)?;
    Ok((figures(&replayed, &received, seconds, died, left), filled(&published)))
}

/// Waits until so many events are dead; gives how long that took.
fn wait_for_dead(cloud: &Cloud, total: u64) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let mut client = Client::connect(cloud.api()?)?;
    let (mut dead, mut since) = (0, started);
    while dead < total {
        thread::sleep(LOOK_EVERY);
        let now = count(&mut client, cloud)?;
        if now > dead {
            (dead, since) = (now, Instant::now());
        } else if since.elapsed() > STANDSTILL_MAX {
            let state: Value = client.ask(&request::get(cloud.api()?, "/api/v1/subscriptions", "application/json"), 200)?;
            bail!("{dead} of {total} events are dead letters and no more come for {} s: {state}", STANDSTILL_MAX.as_secs());
        }
    }
    Ok(started.elapsed())
}

fn count(client: &mut Client, cloud: &Cloud) -> anyhow::Result<u64> {
    let path = "/api/v1/dead-letters?page=0&item_per_page=1";
    let letters: Letters = client.ask(&request::get(cloud.api()?, path, "application/json"), 200).context("asking for dead letters")?;
    Ok(letters.count)
}

/// Replays until nothing remains; the sums of all calls.
fn replay(cloud: &Cloud, total: u64) -> anyhow::Result<Replayed> {
    let mut client = Client::connect(cloud.api()?)?;
    let mut sum = Replayed { replayed: 0, failed: 0, remaining: total };
    for _ in 0..REPLAYS_MAX {
        let answer: Replayed = client.ask(&request::post_empty(cloud.api()?, "/api/v1/dead-letters/replay"), 200)?;
        sum = Replayed { replayed: sum.replayed + answer.replayed, failed: sum.failed + answer.failed, remaining: answer.remaining };
        if answer.remaining == 0 || answer.replayed == 0 {
            break;
        }
    }
    Ok(sum)
}

fn figures(replayed: &Replayed, received: &SubscriberReport, seconds: f64, died: Duration, left: u64) -> Vec<Figure> {
    vec![
        Figure::median("events_per_s", replayed.replayed as f64 / seconds),
        Figure::median("duration_s", seconds),
        Figure::median("until_all_dead_s", died.as_secs_f64()),
        Figure::sum("replayed", replayed.replayed),
        Figure::sum("errors", replayed.failed),
        Figure::sum("left", left),
        Figure::sum("delivered", received.deliveries),
        Figure::sum("lost", received.lost),
        Figure::sum("out_of_order", received.out_of_order),
        Figure::sum("duplicates", received.duplicates),
    ]
}
