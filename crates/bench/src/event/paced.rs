//! Events at fixed times, whatever became of those before: the open loop of a publisher.
//!
//! Event `n` of a publisher is due at `start + n / rate` and carries that time, so that waiting for a free connection is
//! part of its latency. Each connection is a thread, which sleeps until its event is due.

use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::anyhow;

use super::payload::monotonic_ns;
use super::publisher::{Connection, PublisherOrder, Receipts};
use crate::wire::Wire;

const PIECE_BYTES: usize = 4096;

/// Sends for as many seconds as ordered; gives how many each publisher sent.
///
/// # Errors
/// A connection broke or stayed silent, or too much was refused.
pub fn publish(
    order: &PublisherOrder,
    rate_per_s: f64,
    connections: Vec<Connection>,
    streams: Vec<Wire<TcpStream>>,
) -> anyhow::Result<(Vec<u64>, Receipts)> {
    let events = ((rate_per_s * f64::from(order.seconds)).ceil() as u64).max(1);
    let taken: Vec<AtomicU64> = order.requests.iter().map(|_| AtomicU64::new(0)).collect();
    let schedule = Schedule { start_ns: monotonic_ns(), gap_ns: 1e9 / rate_per_s, events };
    let mut receipts = Receipts::default();
    thread::scope(|scope| {
        let run = |(mut connection, mut stream): (Connection, Wire<TcpStream>)| {
            let (taken, schedule) = (&taken, &schedule);
            scope.spawn(move || schedule.follow(&mut connection, &mut stream, taken))
        };
        let running: Vec<_> = connections.into_iter().zip(streams).map(run).collect();
        for thread in running {
            receipts.append(thread.join().map_err(|_| anyhow!("a publisher's thread ended by a panic"))??);
        }
        anyhow::Ok(())
    })?;
    Ok((vec![events; order.requests.len()], receipts))
}

struct Schedule {
    start_ns: u64,
    gap_ns: f64,
    events: u64,
}

impl Schedule {
    fn follow(&self, connection: &mut Connection, stream: &mut Wire<TcpStream>, taken: &[AtomicU64]) -> anyhow::Result<Receipts> {
        let mut receipts = Receipts::default();
        let mut piece = [0; PIECE_BYTES];
        loop {
            let sequence = taken[usize::from(connection.publisher)].fetch_add(1, Ordering::Relaxed);
            if sequence >= self.events {
                return Ok(receipts);
            }
            connection.carry(sequence);
            let due_ns = self.due_ns(sequence);
            thread::sleep(Duration::from_nanos(due_ns.saturating_sub(monotonic_ns())));
            loop {
                connection.exchange(stream, &mut piece, due_ns)?;
                if receipts.take(connection)? {
                    break;
                }
            }
        }
    }

    fn due_ns(&self, sequence: u64) -> u64 {
        self.start_ns + (sequence as f64 * self.gap_ns) as u64
    }
}
