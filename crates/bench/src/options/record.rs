//! What is recorded of a cloud.

use std::fmt;
use std::str::FromStr;

use anyhow::Context;
use clap::Args;

use super::intercloud::InterCloudOptions;
use super::secure::CertificateOptions;
use super::target::TargetOptions;
use super::value;
use crate::endpoint::Endpoint;
use crate::event::Shape;
use crate::options::Scenario;
use crate::realtime::cpep::recorded::GraphPlan;

/// Most publishers, and most subscribers, of a load.
const SIDE_MAX: usize = 1_000;
/// Percent of a graph's declared rate at the most.
const PERCENT_MAX: u32 = 10_000;
/// Most workers of a graph.
const WORKERS_MAX: u32 = 64;
/// Most consumers that ask for orchestrations at once.
const CONSUMERS_MAX: i64 = 1_000;
/// Standard ports of the Service Registry and of Bodkin's monitor: an offset moves both.
const SERVICE_REGISTRY_PORT: u16 = 8443;
const MONITOR_PORT: u16 = 8440;

/// Loads that are put on a cloud, one after the other and again.
#[derive(Debug, Clone, Args)]
pub struct RecordOptions {
    /// Service Registry of the cloud under load [default: an own server, started for it]
    #[arg(long, value_name = "http://HOST:PORT")]
    pub cloud: Option<Endpoint>,
    /// The cloud's monitor port, for the time of each stage [default: as far from 8440 as the Service Registry is from 8443]
    #[arg(long, value_name = "http://HOST:PORT", requires = "cloud")]
    pub monitor: Option<Endpoint>,
    /// Events: publishers x subscribers, as 4x2, with a rate of each publisher as 4x2@500, or a scenario of `bench event`
    #[arg(long = "load", value_name = "PxS[@R]|NAME", value_delimiter = ',', default_value = "1x2,1x4,4x4,8x8")]
    pub loads: Vec<EventLoad>,
    /// Shortest run with events
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub seconds: u32,
    /// Runs of each load
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Orchestrations of a run; 0 for none
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub orchestrations: u32,
    /// Consumers that ask for these, each again when it has its answer; a comma list is a load each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,4", value_parser = clap::value_parser!(u32).range(1..=CONSUMERS_MAX))]
    pub orchestration_consumers: Vec<u32>,
    /// Services in the cloud while orchestrations are asked for
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub services: u32,
    /// Orchestrations of a run that another cloud answers, between two own secure clouds with a relay; 0 for none
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub intercloud: u32,
    /// Consumers that ask for these, each again when it has its answer; a comma list is a load each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,4", requires = "intercloud", value_parser = clap::value_parser!(u32).range(1..=CONSUMERS_MAX))]
    pub consumers: Vec<u32>,
    /// Loads of the graph of --graph: percent of the rate that its file declares for its suppliers, and its workers where they are other than in the file, as 50 or 100:1; a comma list is a load each
    #[arg(long = "graph-load", value_name = "PERCENT[:WORKERS]", value_delimiter = ',', default_value = "50,100", requires = "graph")]
    pub graph_loads: Vec<GraphLoad>,
    /// The graph that is put under load; whoever reads its file knows it.
    #[arg(skip)]
    pub graph_plan: Option<GraphPlan>,
    /// Where the certificates of these two clouds are.
    #[command(flatten)]
    pub certificates: CertificateOptions,
    /// Pin an own server and both sides to this processor [default: placed by the kernel]
    #[arg(long, value_name = "K")]
    pub core: Option<usize>,
}

impl RecordOptions {
    /// The cloud as other experiments have it.
    ///
    /// # Errors
    /// The place of the monitor cannot be told from that of the Service Registry.
    pub fn target(&self) -> anyhow::Result<TargetOptions> {
        let mut target = TargetOptions { provider_address: "127.0.0.1".into(), ..TargetOptions::default() };
        if let Some(cloud) = &self.cloud {
            target.monitor = Some(self.monitor.clone().map_or_else(|| monitor_beside(cloud), Ok)?);
            target.target = Some(cloud.clone());
        }
        Ok(target)
    }

    /// The two clouds between which orchestrations lead to another cloud.
    pub fn neighbors(&self) -> InterCloudOptions {
        InterCloudOptions::of_services(self.services, self.certificates.clone())
    }
}

fn monitor_beside(cloud: &Endpoint) -> anyhow::Result<Endpoint> {
    let (host, _) = cloud.authority.rsplit_once(':').context("a cloud is HOST:PORT")?;
    let port = (u32::from(cloud.address.port()) + u32::from(MONITOR_PORT)).checked_sub(u32::from(SERVICE_REGISTRY_PORT));
    let port = port.context("where the monitor listens cannot be told from the port of the Service Registry: give --monitor")?;
    Endpoint::resolve(&format!("{host}:{port}"))
}

/// How often the suppliers of a graph push, and how many workers it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphLoad {
    /// Percent of the declared rate; 1 or more.
    pub percent: u32,
    /// Workers, of each level where they are apart; none: as many as the file says.
    pub workers: Option<u32>,
}

impl fmt::Display for GraphLoad {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.percent)?;
        self.workers.map_or(Ok(()), |workers| write!(out, ":{workers}"))
    }
}

impl FromStr for GraphLoad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (percent, workers) = text.split_once(':').map_or((text, None), |(percent, workers)| (percent, Some(workers)));
        let number = |text: &str, most: u32| text.parse::<u32>().ok().filter(|number| (1..=most).contains(number));
        let workers = workers.map(|workers| number(workers, WORKERS_MAX).ok_or(()));
        match (number(percent, PERCENT_MAX), workers.transpose()) {
            (Some(percent), Ok(workers)) => Ok(Self { percent, workers }),
            _ => Err(format!(
                "`{text}` is no load of a graph: percent of its rate, 1 to {PERCENT_MAX}, and workers where they are others, 1 to {WORKERS_MAX}, as 50 or 100:1"
            )),
        }
    }
}

/// How many publishers and subscribers, and how fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EventLoad {
    /// Publishers, each with a connection.
    pub publishers: u16,
    /// Subscribers, each of which hears all.
    pub subscribers: usize,
    /// Events a second of each publisher; none: the next goes when the last is answered.
    pub rate_per_s: Option<f64>,
}

impl EventLoad {
    /// The load of a scenario.
    pub fn of(scenario: Scenario) -> Self {
        let (publishers, subscribers, _) = Shape::counts(scenario);
        Self { publishers, subscribers, rate_per_s: None }
    }

    /// How many of what.
    pub fn shape(self) -> Shape {
        const EVENTS_PER_ROUND: u64 = 1_000;
        let Self { publishers, subscribers, rate_per_s } = self;
        Shape { publishers, subscribers, events_per_round: EVENTS_PER_ROUND, rate_per_s, pause_ms: None, connections: 1 }
    }
}

impl fmt::Display for EventLoad {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}x{}", self.publishers, self.subscribers)?;
        self.rate_per_s.map_or(Ok(()), |rate| write!(out, "@{rate}"))
    }
}

impl FromStr for EventLoad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let scenarios = [("A", Scenario::A), ("B1", Scenario::B1), ("B6", Scenario::B6), ("C", Scenario::C), ("D", Scenario::D)];
        if let Some((_, scenario)) = scenarios.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            return Ok(Self::of(*scenario));
        }
        let wrong = || format!("`{text}` is no load: publishers x subscribers as 4x2 or 4x2@500, each 1 to {SIDE_MAX}, or A, B1, B6, C, D");
        let (shape, rate) = text.split_once('@').map_or((text, None), |(shape, rate)| (shape, Some(rate)));
        let side = |text: &str| text.parse::<usize>().ok().filter(|count| (1..=SIDE_MAX).contains(count));
        let (publishers, subscribers) =
            shape.split_once('x').and_then(|(publishers, subscribers)| side(publishers).zip(side(subscribers))).ok_or_else(wrong)?;
        let publishers = u16::try_from(publishers).map_err(|_| wrong())?;
        Ok(Self { publishers, subscribers, rate_per_s: rate.map(value::rate_per_s).transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_read_as_it_is_written() {
        for text in ["1x1", "4x2", "10x10@250", "1000x1000@0.5"] {
            assert_eq!(text.parse::<EventLoad>().map(|load| load.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("b6".parse(), Ok(EventLoad { publishers: 1, subscribers: 6, rate_per_s: None }));
        for text in ["", "x", "0x1", "1x1001", "1x1@", "1x1@-1", "E", "1*2"] {
            assert!(text.parse::<EventLoad>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_load_of_a_graph_is_read_as_it_is_written() {
        for text in ["50", "100:1", "250:16"] {
            assert_eq!(text.parse::<GraphLoad>().map(|load| load.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "0", "100:", "100:0", "100:65", "-1", "1.5", "100000"] {
            assert!(text.parse::<GraphLoad>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_monitor_is_moved_as_far_as_the_service_registry() {
        let at = |text: &str| monitor_beside(&text.parse().unwrap()).map(|monitor| monitor.address.port()).ok();
        assert_eq!((at("http://127.0.0.1:8443"), at("http://127.0.0.1:18443")), (Some(8440), Some(18440)));
        assert_eq!(at("http://127.0.0.1:2"), None);
    }
}
