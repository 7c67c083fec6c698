//! What the machine does for an event, from its acceptance to the subscriber's acknowledgement, without sockets: to be counted by callgrind or timed.
//!
//! ```text
//! work_per_message TOPICS ROUNDS BURST eager|lazy
//! ```
//! Every round has an event of each topic, `BURST` of them in a turn. The work of one event is the difference between two numbers of rounds; `docs/experiments/shard.md`
//! has the commands and what they said.

mod workload;

use workload::Workload;

#[expect(clippy::disallowed_methods, reason = "a program for measurements, not part of the machine")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, topics, rounds, burst, replication] = &arguments[..] else { panic!("usage: work_per_message TOPICS ROUNDS BURST eager|lazy") };
    let number = |text: &str| text.parse::<usize>().expect("a number");
    let is_eager = replication == "eager";
    let mut workload = Workload::new(number(topics), is_eager);
    for _ in 0..number(rounds) {
        workload.round(number(burst));
    }
    workload.check(is_eager);
}
