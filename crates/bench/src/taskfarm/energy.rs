//! What a run takes out of a node's battery, estimated from datasheets: the M3 node of the thesis, whose radio listens whenever it does not send.

use super::cell::Ended;

/// What the node's regulator gives.
const SUPPLY_V: f64 = 3.3;
/// AT86RF231 (Atmel 8111): receiving (RX_ON).
const RADIO_RECEIVES_MA: f64 = 12.3;
/// AT86RF231: sending at 3 dBm (BUSY_TX).
const RADIO_SENDS_MA: f64 = 14.0;
/// STM32F103xE (ST 14611), typical, 72 MHz, peripherals without a clock: running from flash.
const PROCESSOR_RUNS_MA: f64 = 30.5;
/// STM32F103xE: asleep between interrupts (Sleep mode), likewise.
const PROCESSOR_SLEEPS_MA: f64 = 6.4;

/// The estimate for one node.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Energy {
    /// Over the whole run.
    pub millijoules: f64,
    /// On average.
    pub milliwatts: f64,
}

/// That of a station from its start until its connections were over.
pub fn estimate(ended: &Ended) -> Energy {
    let on_s = seconds(ended.said.connect_us + ended.said.work_us + ended.said.close_us);
    let (sends_s, runs_s) = (seconds(ended.usage.air_us).min(on_s), seconds(ended.busy_us).min(on_s));
    let radio_mc = RADIO_SENDS_MA * sends_s + RADIO_RECEIVES_MA * (on_s - sends_s);
    let processor_mc = PROCESSOR_RUNS_MA * runs_s + PROCESSOR_SLEEPS_MA * (on_s - runs_s);
    let millijoules = SUPPLY_V * (radio_mc + processor_mc);
    Energy { millijoules, milliwatts: if on_s > 0.0 { millijoules / on_s } else { 0.0 } }
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::super::channel::Usage;
    use super::super::station::Said;
    use super::*;

    fn ended(air_us: u64, busy_us: u64) -> Ended {
        let said = Said { connect_us: 500_000, work_us: 9_000_000, close_us: 500_000, counted: 0, messages: 0 };
        Ended { said, usage: Usage { air_us, ..Usage::default() }, busy_us }
    }

    #[test]
    fn a_node_that_only_listens_takes_its_floor_and_work_costs_more_than_sending() {
        let idle = estimate(&ended(0, 0));
        assert!((idle.milliwatts - 3.3 * (12.3 + 6.4)).abs() < 1e-9 && (idle.millijoules - 10.0 * idle.milliwatts).abs() < 1e-9);
        let (sends, works) = (estimate(&ended(1_000_000, 0)), estimate(&ended(0, 1_000_000)));
        assert!((sends.millijoules - idle.millijoules - 3.3 * 1.7).abs() < 1e-9);
        assert!(works.millijoules > sends.millijoules);
    }
}
