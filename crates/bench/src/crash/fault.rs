//! What goes wrong.

use std::time::Duration;

use clap::ValueEnum;

/// A fault, which strikes whoever leads unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// Nothing, for as long as the others take: nobody else may lead.
    None,
    /// The leader's process is killed; what is in its sockets is still sent.
    Kill,
    /// The leader's cables are pulled, then its process is killed: what is in its sockets is lost.
    HostLoss,
    /// The leader stands still for 1 ms.
    #[value(name = "stop-1ms")]
    Stop1,
    /// The leader stands still for 20 ms.
    #[value(name = "stop-20ms")]
    Stop20,
    /// The leader stands still for 200 ms: a zombie, if its lease is shorter.
    #[value(name = "stop-200ms")]
    Stop200,
    /// The cable between the two brokers is pulled for a second.
    CutPair,
    /// The cable between the publishers and the leader is pulled for a second.
    CutPublishers,
    /// All the leader's cables are pulled for a second: it lives, and must not lead on.
    CutLeader,
    /// The witness is killed.
    KillWitness,
    /// The Backup is killed.
    KillBackup,
}

/// For so long a cable is pulled.
pub const CUT: Duration = Duration::from_secs(1);

impl Fault {
    /// Whether somebody else has to lead behind it; `None`: that depends on times.
    pub fn replaces_leader(self) -> Option<bool> {
        match self {
            Self::Kill | Self::HostLoss | Self::CutLeader => Some(true),
            Self::None | Self::CutPair | Self::CutPublishers | Self::KillWitness | Self::KillBackup => Some(false),
            Self::Stop1 | Self::Stop20 | Self::Stop200 => None,
        }
    }

    /// Whether the publishers can reach whoever leads all the while, so that their gap is bounded by the fail-over.
    pub fn is_bounded_by_failover(self) -> bool {
        self != Self::CutPublishers
    }

    /// For how long the leader stands still.
    pub fn stop(self) -> Option<Duration> {
        let milliseconds = match self {
            Self::Stop1 => 1,
            Self::Stop20 => 20,
            Self::Stop200 => 200,
            _ => return None,
        };
        Some(Duration::from_millis(milliseconds))
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().expect("no fault is hidden").get_name().to_owned()
    }
}
