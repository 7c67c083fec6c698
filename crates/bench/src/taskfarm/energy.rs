//! What a run takes out of a node's battery, estimated: the M3 node of the thesis, whose radio listens whenever it does not send. The radio's currents are its datasheet's, the processor's are given.

use super::cell::Ended;
use crate::options::TaskfarmOptions;

/// What the node's regulator gives.
const SUPPLY_V: f64 = 3.3;
/// AT86RF231 (Atmel 8111): receiving (RX_ON).
const RADIO_RECEIVES_MA: f64 = 12.3;
/// AT86RF231: sending at 3 dBm (BUSY_TX).
const RADIO_SENDS_MA: f64 = 14.0;

/// What a node's processor takes, in milliampere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Processor {
    /// While it runs.
    pub runs_ma: f64,
    /// While it sleeps between interrupts.
    pub sleeps_ma: f64,
}

impl Processor {
    /// As the options have it.
    pub fn of(options: &TaskfarmOptions) -> Self {
        Self { runs_ma: options.processor_runs_ma, sleeps_ma: options.processor_sleeps_ma }
    }
}

/// The estimate for one node.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Energy {
    /// Over the whole run.
    pub millijoules: f64,
    /// On average.
    pub milliwatts: f64,
}

/// That of a station from its start until its connections were over.
pub fn estimate(ended: &Ended, processor: Processor) -> Energy {
    let on_s = seconds(ended.said.connect_us + ended.said.work_us + ended.said.close_us);
    let (sends_s, runs_s) = (seconds(ended.usage.air_us).min(on_s), seconds(ended.busy_us).min(on_s));
    let radio_mc = RADIO_SENDS_MA * sends_s + RADIO_RECEIVES_MA * (on_s - sends_s);
    let processor_mc = processor.runs_ma * runs_s + processor.sleeps_ma * (on_s - runs_s);
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
        let processor = Processor { runs_ma: 30.0, sleeps_ma: 6.0 };
        let idle = estimate(&ended(0, 0), processor);
        assert!((idle.milliwatts - 3.3 * (12.3 + 6.0)).abs() < 1e-9 && (idle.millijoules - 10.0 * idle.milliwatts).abs() < 1e-9);
        let (sends, works) = (estimate(&ended(1_000_000, 0), processor), estimate(&ended(0, 1_000_000), processor));
        assert!((sends.millijoules - idle.millijoules - 3.3 * 1.7).abs() < 1e-9);
        assert!((works.millijoules - idle.millijoules - 3.3 * 24.0).abs() < 1e-9);
    }
}
