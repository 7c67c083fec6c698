//! What an edge keeps of the graph, and how it changes: the rules of the table of graphs.

use super::Place;

/// A row. A version of the file is named by where it has the operator: who comes back to a place comes back to the same file.
#[derive(Clone, Debug)]
pub(super) struct Database {
    /// The present version.
    pub runs: Place,
    /// What has gone to the other edge, and is not known to be there.
    pub given: Option<Vec<u8>>,
    /// What has come from there, and is not at work yet.
    pub taken: Option<Vec<u8>>,
    /// The version whose checkpoint the Backup may have.
    pub previous: Option<Place>,
}

impl Database {
    pub fn new() -> Self {
        Self { runs: Place::Press, given: None, taken: None, previous: None }
    }

    /// The operator goes.
    #[must_use]
    pub fn gives(&self, to: Place, given: Vec<u8>) -> Self {
        Self { runs: to, given: Some(given), taken: None, previous: self.previous.or(Some(self.runs)) }
    }

    /// The operator comes.
    #[must_use]
    pub fn takes(&self, here: Place, taken: Vec<u8>) -> Self {
        Self { runs: here, given: None, taken: Some(taken), previous: self.previous.or(Some(self.runs)) }
    }

    /// What was given is there.
    #[must_use]
    pub fn was_taken(&self) -> Self {
        Self { given: None, ..self.clone() }
    }

    /// A version is at work.
    #[must_use]
    pub fn is_at_work(&self, version: Place) -> Self {
        if version == self.runs { Self { taken: None, previous: None, ..self.clone() } } else { self.clone() }
    }

    /// Whether nothing is kept for a Backup that has not got the present version.
    pub fn is_settled(&self) -> bool {
        self.taken.is_none() && self.previous.is_none()
    }
}
