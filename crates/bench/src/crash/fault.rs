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
    /// The leader stands still for 2 s, and continues after another node leads.
    #[value(name = "stop-2s")]
    Stop2000,
    /// The standby stands still for 2 s.
    StopBackup,
    /// The operator starts a switchover: `bodkin pair hand-over`.
    HandOver,
    /// The cable between the two brokers is pulled for a second.
    CutPair,
    /// The cable between the publishers and the leader is pulled for a second.
    CutPublishers,
    /// All the leader's cables are pulled for a second: it lives, and must not lead on.
    CutLeader,
    /// All the witness's cables are pulled for a second.
    CutWitness,
    /// All the standby's cables are pulled for a second.
    CutBackup,
    /// The witness is killed.
    KillWitness,
    /// The Backup is killed.
    KillBackup,
    /// A second process is started as Primary of the same pair, on a host of its own, for some seconds.
    SecondPrimary,
    /// As `second-primary`, with a copy of the Primary's data directory.
    CopiedPrimary,
    /// The witness is started with another lease; `bodkin status` has to report it.
    OtherWitness,
    /// The standby is started without one of the topics; `bodkin status` has to report it.
    OtherBackup,
    /// The standby's disk is full for some seconds.
    FullBackup,
    /// The witness's disk is full for some seconds, and the leader is killed: another node leads when the witness can vote.
    FullWitness,
    /// The standby's disk takes no write for a second.
    SlowBackup,
}

/// How long a second Primary runs, a configuration differs, or a disk is full.
pub const LASTING: Duration = Duration::from_secs(4);
/// For so long a cable is pulled.
pub const CUT: Duration = Duration::from_secs(1);

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 23] = [
        Self::None,
        Self::Kill,
        Self::HostLoss,
        Self::Stop1,
        Self::Stop20,
        Self::Stop200,
        Self::Stop2000,
        Self::StopBackup,
        Self::HandOver,
        Self::CutPair,
        Self::CutPublishers,
        Self::CutLeader,
        Self::CutWitness,
        Self::CutBackup,
        Self::KillWitness,
        Self::KillBackup,
        Self::SecondPrimary,
        Self::CopiedPrimary,
        Self::OtherWitness,
        Self::OtherBackup,
        Self::FullBackup,
        Self::FullWitness,
        Self::SlowBackup,
    ];

    /// Whether somebody else has to lead behind it; `None`: that depends on times.
    pub fn replaces_leader(self) -> Option<bool> {
        match self {
            Self::Kill | Self::HostLoss | Self::CutLeader | Self::HandOver => Some(true),
            Self::None
            | Self::CutPair
            | Self::CutPublishers
            | Self::CutWitness
            | Self::CutBackup
            | Self::KillWitness
            | Self::KillBackup
            | Self::StopBackup
            | Self::SecondPrimary
            | Self::CopiedPrimary
            | Self::OtherWitness
            | Self::OtherBackup
            | Self::FullBackup
            | Self::SlowBackup => Some(false),
            Self::Stop1 | Self::Stop20 | Self::Stop200 | Self::Stop2000 | Self::FullWitness => None,
        }
    }

    /// Whether the publishers can reach whoever leads all the while, so that their gap is bounded by the fail-over.
    pub fn is_bounded_by_failover(self) -> bool {
        !matches!(self, Self::CutPublishers | Self::FullWitness)
    }

    /// Returns true if the nodes need disks of their own.
    pub fn needs_disks(self) -> bool {
        matches!(self, Self::FullBackup | Self::FullWitness | Self::SlowBackup)
    }

    /// For how long a node stands still.
    pub fn stop(self) -> Option<Duration> {
        let milliseconds = match self {
            Self::Stop1 => 1,
            Self::Stop20 => 20,
            Self::Stop200 => 200,
            Self::Stop2000 | Self::StopBackup => 2000,
            _ => return None,
        };
        Some(Duration::from_millis(milliseconds))
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().expect("no fault is hidden").get_name().to_owned()
    }
}
