//! Measurements of HTTP push, against a Bodkin that was started for them.
//!
//! `bodkin up --insecure --data NEW --port-offset 20000 --push-give-up-s 1 --push-backoff-max-ms 500`, and then
//! `cargo run --release -p bodkin-host --example push -- replay 20000 100000` (events)
//!
//! `bodkin up --insecure --data NEW --port-offset 20000`, and then
//! `cargo run --release -p bodkin-host --example push -- isolation 20000 16 2 2 20` (good, dead and slow subscribers, seconds)

mod http;
mod isolation;
mod replay;

use http::Ports;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<u64>().ok()).expect("a number; see the top of main.rs");
    let ports = Ports::at(number(1) as u16);
    match arguments[0].as_str() {
        "replay" => replay::run(ports, number(2)),
        "isolation" => isolation::run(ports, number(2) as usize, number(3) as usize, number(4) as usize, number(5)),
        other => panic!("expected replay or isolation, and got {other}"),
    }
}
