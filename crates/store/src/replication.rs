//! What leaves the writer for a node that repeats it: the statements of each operation, in the order of the commits.
//!
//! A statement is noted with its values in it, so ids and times come out the same: the other database is the same, row by row and in the
//! counters that give ids. Which rows the snapshot has to read again is noted in front. An operation that was refused leaves nothing. Statements
//! must not ask for anything that differs between the nodes (`random()`, `unixepoch()`): what is drawn goes in as a value.

mod operation;

use std::{cell::RefCell, path::PathBuf};

use bodkin_arrowhead::{name::EventType, snapshot::Change};
use rusqlite::Statement;

pub use self::operation::NoOperation;
pub(crate) use self::operation::{Operation, Touched};
use crate::{StoreError, table::Kind, writer::Answer};

/// Takes what is committed, on the writer's thread; it must not wait.
pub type Outlet = Box<dyn FnMut(Committed) + Send>;

/// What has happened to the database, in this order.
pub enum Committed {
    /// Operations that were committed together.
    Group(Group),
    /// A copy was written that has everything in front of it and nothing behind it; or why there is none.
    Copy(Result<PathBuf, String>),
}

/// Operations on the disk of this node, and who waits for their answers.
pub struct Group {
    /// What each did, as [`crate::following::Following::operation`] takes it. Those that changed nothing are not there.
    pub operations: Vec<Vec<u8>>,
    waiting: Vec<Answer>,
}

impl Group {
    /// Answers everybody: what they did counts.
    pub fn release(self) {
        self.waiting.into_iter().for_each(|answer| answer(Ok(())));
    }

    /// Tells everybody that it is not known whether what they did counts.
    pub fn lose(self, why: &str) {
        self.waiting.into_iter().for_each(|answer| answer(Err(StoreError::Unavailable(why.to_owned()))));
    }
}

/// What a group's operations do.
#[derive(Default)]
pub(crate) struct Journal {
    /// Statements of the operation that is being carried out.
    begun: RefCell<Vec<u8>>,
    /// Topics that it has declared or forgotten.
    topics: Vec<EventType>,
    finished: Vec<Vec<u8>>,
}

impl Journal {
    /// Notes a statement that was run with the values that are bound to it.
    pub fn note(&self, statement: &Statement<'_>) {
        let text = statement.expanded_sql().expect("a statement of ours fits into memory");
        let mut begun = self.begun.borrow_mut();
        begun.extend_from_slice(text.as_bytes());
        begun.extend_from_slice(b";\n");
    }

    /// Notes that a topic's declaration is another one, or gone.
    pub fn note_topic(&mut self, event_type: &EventType) {
        self.topics.push(event_type.clone());
    }

    /// The operation is part of its group; these are its changes.
    pub fn finish(&mut self, changes: &[Change]) {
        let (begun, topics) = (self.begun.take(), std::mem::take(&mut self.topics));
        if !begun.is_empty() {
            self.finished.push(operation::encode(changes.iter().map(Kind::of), &topics, &begun));
        }
    }

    /// The operation was taken back.
    pub fn give_up(&mut self) {
        self.begun.get_mut().clear();
        self.topics.clear();
    }

    pub fn committed(self, waiting: Vec<Answer>) -> Committed {
        Committed::Group(Group { operations: self.finished, waiting })
    }
}
