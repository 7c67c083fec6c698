//! What `bodkin bench ...` takes.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use crate::endpoint::Endpoint;

/// Load and experiments against an own server or any Arrowhead 4.x.
#[derive(Debug, Args)]
pub struct BenchCommand {
    #[command(subcommand)]
    pub(crate) experiment: Experiment,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Experiment {
    /// Registrations of services, each with a provider of its own
    Register(LoadOptions),
    /// Service Registry queries
    Query(LoadOptions),
    /// Inserts of authorization rules
    Authorize(LoadOptions),
    /// Dynamic orchestrations
    Orchestrate(LoadOptions),
    /// Start to ready and idle memory, with an empty and with a filled data directory
    Start(StartOptions),
    /// Events from publishers to subscribers, alternated with a bare relay as the floor
    Event(EventOptions),
    /// One side of `event`, told what to do on stdin
    #[command(hide = true)]
    Role,
}

/// Which cloud, and what is known about it.
#[derive(Debug, Clone, Default, Args)]
pub struct TargetOptions {
    /// Service Registry of the cloud under load [default: an own server, started by the bench]
    #[arg(long, value_name = "http://HOST:PORT")]
    pub target: Option<Endpoint>,
    /// Authorization system [default: asked of the Service Registry]
    #[arg(long, value_name = "http://HOST:PORT", requires = "target")]
    pub authorization: Option<Endpoint>,
    /// Orchestrator [default: asked of the Service Registry]
    #[arg(long, value_name = "http://HOST:PORT", requires = "target")]
    pub orchestrator: Option<Endpoint>,
    /// Event Handler [default: asked of the Service Registry]
    #[arg(long, value_name = "http://HOST:PORT", requires = "target")]
    pub event_handler: Option<Endpoint>,
    /// Bodkin's monitor port, for the time of each stage
    #[arg(long, value_name = "http://HOST:PORT", requires = "target")]
    pub monitor: Option<Endpoint>,
    /// Process whose memory is reported
    #[arg(long, value_name = "PID", requires = "target", value_parser = clap::value_parser!(i32).range(1..))]
    pub server_pid: Option<i32>,
    /// Where the own server's temporary data directory is made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    pub data: Option<PathBuf>,
    /// Address of the systems that the bench registers
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub provider_address: String,
}

/// Load by one kind of request.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("mode").required(true).args(["simultaneous", "rate", "sequential"])))]
pub struct LoadOptions {
    /// Release N requests on N new connections together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    simultaneous: Option<u32>,
    /// Open loop on kept connections: requests per second, latency from the intended send time
    #[arg(long, value_name = "R", value_parser = rate_per_s)]
    rate: Option<f64>,
    /// Closed loop on one kept connection
    #[arg(long)]
    sequential: bool,
    /// Requests of an open or closed loop [default: 100 with --rate, 2000 with --sequential]
    #[arg(long, value_name = "C", conflicts_with = "simultaneous", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    count: Option<u32>,
    /// Services in the cloud before; a comma list runs each and compares [default: as many as requests with --simultaneous, else 1000]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    services: Vec<u32>,
    /// Runs whose figures count
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    /// The cloud under load.
    pub target: TargetOptions,
}

/// How requests are let go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// All together, each on a connection of its own.
    Simultaneous {
        /// Requests and connections.
        count: u32,
    },
    /// At fixed times.
    OpenLoop {
        /// Requests a second.
        rate_per_s: f64,
        /// Requests of a run.
        count: u32,
    },
    /// The next when the last was answered.
    Sequential {
        /// Requests of a run.
        count: u32,
    },
}

impl LoadOptions {
    /// How requests are let go.
    pub fn mode(&self) -> Mode {
        match (self.simultaneous, self.rate) {
            (Some(count), _) => Mode::Simultaneous { count },
            (None, Some(rate_per_s)) => Mode::OpenLoop { rate_per_s, count: self.count.unwrap_or(100) },
            (None, None) => Mode::Sequential { count: self.count.unwrap_or(2000) },
        }
    }

    /// How many services the cloud shall hold in each round, ascending.
    pub fn services(&self) -> Vec<u32> {
        let mut services = self.services.clone();
        services.sort_unstable();
        services.dedup();
        if services.is_empty() {
            services.push(self.simultaneous.unwrap_or(1000));
        }
        services
    }
}

/// Start and idle memory.
#[derive(Debug, Clone, Args)]
pub struct StartOptions {
    /// Services in the data directory of the second part
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub services: u32,
    /// Starts whose figures count
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Where the temporary data directories are made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// Rocha 2019, chapter 7.
#[derive(Debug, Clone, Args)]
pub struct EventOptions {
    /// Publishers x subscribers x events: A 1x1x2000, B1 1x1x9000, B6 1x6x9000, C 10x10x1000 each
    #[arg(long, value_enum, ignore_case = true)]
    pub scenario: Scenario,
    /// Pin server, relay, publishers and subscribers to this core [default: placed by the kernel]
    #[arg(long, value_name = "K")]
    pub cpu: Option<usize>,
    /// Shortest run; the scenario's events are repeated until it is reached
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// Runs of broker and relay each whose figures count
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    /// The cloud under load.
    pub target: TargetOptions,
}

/// A scenario of Rocha 2019, chapter 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum Scenario {
    /// One publisher, one subscriber, 2000 events.
    A,
    /// One publisher, one subscriber, 9000 events.
    B1,
    /// One publisher, six subscribers, 9000 events.
    B6,
    /// Ten publishers, ten subscribers, 1000 events of each publisher.
    C,
}

fn rate_per_s(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e6 => Ok(rate),
        _ => Err("a rate is above 0 and at most 1000000 requests a second".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Shell {
        #[command(flatten)]
        bench: BenchCommand,
    }

    fn parse(line: &str) -> Result<Experiment, clap::Error> {
        Shell::try_parse_from(std::iter::once("bench").chain(line.split_whitespace())).map(|shell| shell.bench.experiment)
    }

    fn load(line: &str) -> LoadOptions {
        match parse(line).unwrap() {
            Experiment::Register(options)
            | Experiment::Query(options)
            | Experiment::Authorize(options)
            | Experiment::Orchestrate(options) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_mode_is_chosen_by_its_flag() {
        assert_eq!(load("register --simultaneous 10000").mode(), Mode::Simultaneous { count: 10_000 });
        assert_eq!(load("orchestrate --rate 1 --count 50").mode(), Mode::OpenLoop { rate_per_s: 1.0, count: 50 });
        assert_eq!(load("query --sequential").mode(), Mode::Sequential { count: 2000 });
        assert_eq!(load("query --sequential --repeat 2").repeat, 2);
    }

    #[test]
    fn services_are_a_list_in_ascending_order() {
        assert_eq!(load("query --sequential --services 100000,1000").services(), [1000, 100_000]);
        assert_eq!(load("orchestrate --simultaneous 7").services(), [7]);
        assert_eq!(load("orchestrate --sequential").services(), [1000]);
    }

    #[test]
    fn a_target_names_its_systems() {
        let options = load("query --sequential --target http://127.0.0.1:8443 --server-pid 4 --orchestrator http://127.0.0.1:1");
        assert_eq!(options.target.target.unwrap().address.port(), 8443);
        assert_eq!(options.target.orchestrator.unwrap().address.port(), 1);
        assert_eq!(options.target.server_pid, Some(4));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "register",
            "register --simultaneous 5 --sequential",
            "register --simultaneous 0",
            "register --simultaneous 5 --count 3",
            "register --rate 0",
            "register --rate nan",
            "query --sequential --server-pid 4",
            "query --sequential --target https://127.0.0.1:1",
            "query --sequential --target http://127.0.0.1:1 --data x",
            "event",
            "event --scenario D",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_scenario_is_named_in_any_case() {
        for (name, scenario) in [("A", Scenario::A), ("b1", Scenario::B1), ("B6", Scenario::B6), ("c", Scenario::C)] {
            match parse(&format!("event --scenario {name} --cpu 1")).unwrap() {
                Experiment::Event(options) => assert_eq!((options.scenario, options.cpu), (scenario, Some(1))),
                other => panic!("{other:?}"),
            }
        }
    }
}
