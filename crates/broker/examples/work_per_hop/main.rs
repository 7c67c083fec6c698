//! What the machine of graphs does for a round of an operator: input queue, pending, hand-over, result. To be counted by callgrind or timed.
//!
//! ```text
//! work_per_hop COPIES ROUNDS
//! ```
//! A copy of the graph has 7 operators. The work of one hop is the difference between two numbers of rounds; `docs/experiments/graphs.md` has the commands and what they said.

mod workload;

use workload::Workload;

#[expect(clippy::disallowed_methods, reason = "a program for measurements, not part of the machine")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, copies, rounds] = &arguments[..] else { panic!("usage: work_per_hop COPIES ROUNDS") };
    let number = |text: &str| text.parse::<usize>().expect("a number");
    let mut workload = Workload::new(number(copies));
    (0..number(rounds)).for_each(|_| workload.round());
    workload.check();
}
