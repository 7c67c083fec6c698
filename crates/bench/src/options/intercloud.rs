//! Options of orchestrations between two clouds.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};

use super::secure::CertificateOptions;

/// Which of the two clouds is asked by the consumers (Deliorman 2020, section 5.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// The cloud under test asks its neighbor, whose answers are fixed
    #[value(name = "1")]
    ToCloud,
    /// The neighbor asks the cloud under test, which decides
    #[value(name = "2")]
    ToNeighbor,
}

/// Two own clouds in secure mode with authorities of their own, and a relay between them.
#[derive(Debug, Clone, Args)]
pub struct InterCloudOptions {
    /// Release N orchestrations on N new connections together; a comma list runs each; 0: none
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "40,50,100,1000", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    simultaneous: Vec<u32>,
    /// Orchestrations one after the other on a kept connection; 0: none
    #[arg(long, value_name = "C", default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub sequential: u32,
    /// Who is asked: 1, the cloud under test, which asks a neighbor with fixed answers; 2, the neighbor, which asks the cloud under test
    /// [default: 1,2; with --gateway 2]
    #[arg(long, value_enum, value_name = "CASE", value_delimiter = ',')]
    case: Vec<Case>,
    /// The cloud that is asked lets others in by its Gateway only, so that each orchestration opens a tunnel; what goes through tunnels is measured too
    #[arg(long)]
    pub gateway: bool,
    /// With --gateway: sessions that are held at once, each with a connection in use; 0: none
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(0..=1_900))]
    pub sessions: u32,
    /// With --gateway: megabytes of 10^6 bytes sent each way through a tunnel, and by plain TLS through as many hops; 0: none
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub tunnel_mb: u64,
    /// Messages of each length that go through the relay and back, beside the same over one TLS connection; 0: none
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub relay_messages: u32,
    /// Services in the cloud under test, each with a rule for the neighbor
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub services: u32,
    /// Runs whose figures count
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Where the clouds' temporary data directories are made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    /// Where certificates are.
    pub certificates: CertificateOptions,
}

impl InterCloudOptions {
    /// Two clouds of which the asked one has so many services; what loads they are under is somebody else's to say.
    pub fn of_services(services: u32, certificates: CertificateOptions) -> Self {
        Self {
            simultaneous: Vec::new(),
            sequential: 0,
            case: vec![Case::ToNeighbor],
            gateway: false,
            sessions: 0,
            tunnel_mb: 0,
            relay_messages: 0,
            services,
            repeat: 1,
            data: None,
            certificates,
        }
    }

    /// Which cases are run.
    ///
    /// # Errors
    /// One cannot be run so.
    pub fn cases(&self) -> anyhow::Result<Vec<Case>> {
        match (self.case.is_empty(), self.gateway) {
            (true, true) => Ok(vec![Case::ToNeighbor]),
            (true, false) => Ok(vec![Case::ToCloud, Case::ToNeighbor]),
            (false, true) if self.case.contains(&Case::ToCloud) => {
                bail!("case 1 has no --gateway: a neighbor with fixed answers opens no tunnel; case 2 does")
            }
            (false, _) => Ok(self.case.clone()),
        }
    }

    /// How many are released together, each in runs of its own.
    pub fn simultaneous(&self) -> impl Iterator<Item = u32> {
        self.simultaneous.iter().copied().filter(|count| *count > 0)
    }
}

impl Case {
    /// What a report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ToCloud => "case 1",
            Self::ToNeighbor => "case 2",
        }
    }
}
