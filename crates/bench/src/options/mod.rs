//! What `bodkin bench ...` takes.

mod cpep;
mod crash;
mod event;
mod fleet;
mod intercloud;
mod load;
mod nodes;
mod outage;
mod realtime;
mod record;
mod secure;
mod series;
mod target;
mod taskfarm;
#[cfg(test)]
mod tests;
pub mod value;

pub use cpep::{CpepOptions, Precedence, Processor};
pub use crash::CrashOptions;
pub use event::{DeadLetterOptions, EventOptions, ReplayOptions, Scenario, Transport};
pub use fleet::FleetOptions;
pub use intercloud::{Case, InterCloudOptions};
pub use load::{DataOptions, LabOptions, LoadOptions, Mode, PageOptions, Round, StartOptions};
pub use nodes::NodesOptions;
pub use outage::OutageOptions;
pub use realtime::{
    ArrecOptions, Configuration, CoverOptions, DurableOptions, FrameOptions, GroupSize, Recovery, ReplicationStrategy, Sockets,
    ZmtpOptions, ZmtpScenario,
};
pub use record::{EventLoad, GraphLoad, RecordOptions};
pub use secure::HandshakeOptions;
pub use target::{ServerOptions, TargetOptions};
pub use taskfarm::{Form, Part, TaskfarmOptions};

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::threshold::Threshold;

/// Load and experiments against an own server or any Arrowhead 4.x.
#[derive(Debug, Args)]
pub struct BenchCommand {
    #[command(subcommand)]
    pub(crate) experiment: Experiment,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Where a report goes besides stdout, and what it has to meet.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputOptions {
    /// Write the report as one self-contained HTML file
    #[arg(long, global = true, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write the report as JSON
    #[arg(long, global = true, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
    /// What every outcome that has the figure must meet, as p99<10ms, errors<1 or events_per_s>30000; exit code 4 when one does not
    #[arg(long, global = true, value_name = "FIGURE<VALUE")]
    pub threshold: Vec<Threshold>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Experiment {
    /// Registrations of services, each with a provider of its own
    Register(LoadOptions),
    /// Removals of registered services
    Unregister(LoadOptions),
    /// Service Registry queries
    Query(LoadOptions),
    /// Inserts of authorization rules
    Authorize(LoadOptions),
    /// Dynamic orchestrations
    Orchestrate(LoadOptions),
    /// Orchestrations from the store
    OrchestrateStore(LoadOptions),
    /// Pages of 100 registered services
    List(LoadOptions),
    /// Tokens; in insecure mode Arrowhead answers 500, which is then the right answer
    Token(LoadOptions),
    /// Subscriptions to events
    Subscribe(LoadOptions),
    /// Removals of subscriptions
    Unsubscribe(LoadOptions),
    /// Every management list, page by page, in rows a second
    Page(PageOptions),
    /// The test data of Deliorman 2020, section 5.3
    Data(DataOptions),
    /// Start to ready and idle memory, with an empty and with a filled data directory
    Start(StartOptions),
    /// One full mutual TLS handshake in memory: the floor of whatever makes a connection for each request
    Handshake(HandshakeOptions),
    /// Events from publishers to subscribers, alternated with a bare relay as the floor
    Event(EventOptions),
    /// Events from the event log over an event stream
    Replay(ReplayOptions),
    /// Events that a subscriber refused, delivered when it takes them
    DeadLetters(DeadLetterOptions),
    /// Events over ZMTP, alternated with a bare relay as the floor
    Zmtp(ZmtpOptions),
    /// From a publisher's send to the word that its event is safe, alternated with a bare chain of four hops as the floor
    Cover(CoverOptions),
    /// From a publisher's send to the word that its event is kept on one node: in memory, in the event log, on the disk
    Durable(DurableOptions),
    /// Topics with deadlines and bounds on losses, the Primary killed in the middle (Wang 2019, chapter 3)
    Frame(FrameOptions),
    /// What replication costs and saves while events are processed, the Primary killed in the middle (Wang 2019, chapter 4)
    Arrec(ArrecOptions),
    /// Events processed on their way by a graph: six sets of Wang 2019, chapter 2, and Flink beside them
    Cpep(CpepOptions),
    /// Faults of a real pair in network namespaces: gaps, losses, order
    Crash(CrashOptions),
    /// Orchestrations that lead to another cloud, through a relay (Deliorman 2020, section 5.6.2; Rocha 2019, section 5.3)
    Intercloud(InterCloudOptions),
    /// Several nodes of one cloud on a PostgreSQL database: races, how far they are behind each other, what reads cost
    Nodes(NodesOptions),
    /// Faults of nodes on one database and of a fleet's edges, their links and their servers: losses, duplicates, order
    Outage(OutageOptions),
    /// Events into a JetStream stream on three servers, beside a bare client; a backlog that is drained beside live traffic
    ///
    /// A run takes five times --seconds, as long as --pace needs for --events, three times as long as it takes to publish these twice as fast as --rate, and half a minute: about three minutes as it comes, and nine for three runs. With --kills the first of the live loads lasts twelve seconds for each.
    Fleet(FleetOptions),
    /// The use cases of the C library of small nodes on an emulated radio channel (Müller 2019)
    Taskfarm(TaskfarmOptions),
    /// The full series in one report
    Lab(LabOptions),
    /// One side of `event`, told what to do on stdin
    #[command(hide = true)]
    Role,
}

impl Experiment {
    /// Returns true if the experiment mounts disks for its nodes.
    pub(crate) fn mounts_disks(&self) -> bool {
        match self {
            Self::Outage(options) => options.with_disks,
            Self::Crash(options) => options.mounts_disks(),
            _ => false,
        }
    }
}
