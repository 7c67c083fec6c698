//! The last things that were seen, for the report of a failure.

use std::{collections::VecDeque, fmt};

use crate::{clock::Time, effects::Fact, fault::Fault, network::ProcessId, roster::Process};

/// Entries that are kept.
const ENTRIES_MAX: usize = 60;

#[derive(Clone, Copy, Debug)]
enum Entry {
    Fact(Fact),
    Fault(Fault),
    Started(ProcessId),
    Killed(ProcessId),
}

/// See the module.
#[derive(Debug, Default)]
pub struct Trace {
    entries: VecDeque<(Time, Entry)>,
}

impl Trace {
    /// Something that was seen of a process. That a leader acts is not kept: it always does.
    pub(crate) fn note(&mut self, at: Time, fact: Fact) {
        if !matches!(fact, Fact::Acts { .. }) {
            self.push(at, Entry::Fact(fact));
        }
    }

    pub(crate) fn inflicted(&mut self, at: Time, fault: Fault) {
        self.push(at, Entry::Fault(fault));
    }

    pub(crate) fn started(&mut self, at: Time, process: ProcessId) {
        self.push(at, Entry::Started(process));
    }

    pub(crate) fn killed(&mut self, at: Time, process: ProcessId) {
        self.push(at, Entry::Killed(process));
    }

    fn push(&mut self, at: Time, entry: Entry) {
        if self.entries.len() == ENTRIES_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back((at, entry));
    }

    /// A line for each entry.
    pub fn lines(&self) -> Vec<String> {
        self.entries.iter().map(|(at, entry)| format!("{:>12.3} us  {entry}", at.0 as f64 / 1e3)).collect()
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fact(fact) => write!(f, "{fact:?}"),
            Self::Fault(fault) => write!(f, "FAULT {fault:?}"),
            Self::Started(process) => write!(f, "{:?} starts", Process::of(*process)),
            Self::Killed(process) => write!(f, "{:?} dies", Process::of(*process)),
        }
    }
}
