//! Which process published a batch: in the batch's headers, so that a lane continues behind its own batches only.
//!
//! Names and numbers of lanes can be equal by mistake: two edges have one name, or a copy of a data directory runs. The
//! database and the incarnation cannot (`docs/design/identity.md`).

use std::{fmt, str::FromStr, sync::Arc};

use bodkin_broker::Epoch;
use bodkin_nats::lane::Identity;
use bodkin_store::identity::{DatabaseId, DirectoryIdentity, Incarnation, InvalidIdentity};

/// The process that published a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// First half of the identity of its database.
    pub database: u64,
    /// Its incarnation; of a pair the epoch in which its node led.
    pub incarnation: u64,
}

impl fmt::Display for Writer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:016x}.{:016x}", self.database, self.incarnation)
    }
}

impl FromStr for Writer {
    type Err = InvalidIdentity;

    fn from_str(text: &str) -> Result<Self, InvalidIdentity> {
        let (database, incarnation) = text.split_once('.').ok_or(InvalidIdentity)?;
        let number = |text: &str| text.parse::<Incarnation>().map(|Incarnation(number)| number);
        Ok(Self { database: number(database)?, incarnation: number(incarnation)? })
    }
}

/// What keeps two processes from publishing in one lane at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// Nothing but their names: an edge by itself.
    None,
    /// One node of a pair leads in an epoch.
    Epoch(Epoch),
    /// One process has the node's name in the shared database.
    Name,
}

/// Batches of an earlier start that may come after this process has begun. One can be in flight, and a server that is behind may show older ones first.
const LATE_BATCHES_MAX: u32 = 3;

/// Batches of an earlier start of this edge, as this process finds them in the stream.
///
/// A copy of the directory has the same earlier starts as the original. If the original publishes more often than the copy can look and publish, the copy is
/// refused each time, and the original never meets a batch of the copy. So the copy has to notice the original.
#[derive(Debug, Default)]
pub struct EarlierStart {
    newest: Option<(Writer, Identity)>,
    late: u32,
}

impl EarlierStart {
    /// Returns true if the earlier start still publishes: another process runs. `identity` is what the stream has last, and `writer` who published it.
    pub fn still_publishes(&mut self, writer: Writer, identity: Identity) -> bool {
        match self.newest {
            Some((known, newest)) if known == writer && identity <= newest => {}
            found => {
                self.late += u32::from(found.is_some());
                self.newest = Some((writer, identity));
            }
        }
        self.late > LATE_BATCHES_MAX
    }
}

/// Which batches of a lane this process may continue behind.
#[derive(Clone, Debug)]
pub struct Writers {
    own: Writer,
    directory: Arc<DirectoryIdentity>,
    exclusion: Exclusion,
}

impl Writers {
    /// Of a process on this database and data directory.
    pub fn new(database: &DatabaseId, directory: Arc<DirectoryIdentity>, exclusion: Exclusion) -> Self {
        let incarnation = match exclusion {
            Exclusion::Epoch(epoch) => epoch.0,
            Exclusion::None | Exclusion::Name => directory.incarnation.0,
        };
        Self { own: Writer { database: database.half(), incarnation }, directory, exclusion }
    }

    /// This process.
    pub fn own(&self) -> Writer {
        self.own
    }

    /// Returns true if this process continues what the other one published.
    ///
    /// `is_begun`: this process has published in the lane itself, so that only a second process can be behind it.
    pub fn continues(&self, other: Writer, is_begun: bool) -> bool {
        if other == self.own {
            return true;
        }
        let descends = self.directory.descends_from(Incarnation(other.incarnation));
        other.database == self.own.database
            && match self.exclusion {
                Exclusion::None => descends,
                // A directory that was an edge by itself may be that of a pair now.
                Exclusion::Epoch(epoch) => other.incarnation < epoch.0 || descends,
                Exclusion::Name => !is_begun,
            }
    }

    /// Returns true if a batch of the other process is of this data directory's own event log. Nodes of a pair have a log each.
    pub fn is_own_or_earlier(&self, other: Writer) -> bool {
        !matches!(self.exclusion, Exclusion::Epoch(_)) && other.database == self.own.database && self.continues(other, false)
    }

    /// Returns true if the other process is an earlier start of an edge by itself, which nothing but its end keeps from publishing.
    pub fn is_earlier_start(&self, other: Writer) -> bool {
        self.exclusion == Exclusion::None && other != self.own
    }

    /// Says that the lane stands, and what to do.
    pub fn told(&self, other: Writer) -> String {
        let why = if other.database == self.own.database {
            "a copy of this data directory runs, or this one was restored from a backup"
        } else {
            "another edge has this one's name, or this edge replaces it"
        };
        format!(
            "the stream's last batch of this lane is of process {other}, and this one is {}: {why}. End the other one, or give this edge another name; \
            bodkin fleet adopt has the lane continue behind that batch",
            self.own
        )
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Writers of a directory that was started twice, and the writer of the first start.
    pub fn restarted(exclusion: Exclusion) -> (Writers, Writer) {
        let place = tempfile::tempdir().unwrap();
        let first = DirectoryIdentity::begin(place.path()).unwrap();
        let second = DirectoryIdentity::begin(place.path()).unwrap();
        let writers = Writers::new(&DatabaseId::draw().unwrap(), Arc::new(second), exclusion);
        let earlier = Writer { incarnation: first.incarnation.0, ..writers.own };
        (writers, earlier)
    }

    #[test]
    fn writer_is_read_as_written() {
        let writer = Writer { database: 0xa1, incarnation: u64::MAX };
        assert_eq!((writer.to_string().parse(), "a1.b2".parse::<Writer>().is_err()), (Ok(writer), true));
    }

    #[test]
    fn only_own_earlier_starts_are_continued() {
        let (writers, earlier) = restarted(Exclusion::None);
        let own = writers.own();
        let stranger = Writer { incarnation: 7, ..own };
        let other_cloud = Writer { database: own.database ^ 1, ..own };
        let continued = [own, earlier, stranger, other_cloud].map(|writer| writers.continues(writer, true));
        assert_eq!(continued, [true, true, false, false]);
        for foreign in [stranger, other_cloud] {
            let told = writers.told(foreign);
            assert!(told.contains(&foreign.to_string()) && told.contains(&own.to_string()) && told.contains("adopt"), "{told}");
        }
    }

    #[test]
    fn earlier_start_that_still_publishes_is_noticed() {
        let (writers, earlier) = restarted(Exclusion::None);
        let batch = |last| Identity { epoch: 1, first: 1, last };
        assert!(writers.is_earlier_start(earlier) && !writers.is_earlier_start(writers.own()));
        let mut seen = EarlierStart::default();
        // A server that is behind shows what was there before.
        let late = [9, 9, 8, 10, 9, 11, 12].map(|last| seen.still_publishes(earlier, batch(last)));
        assert_eq!(late, [false; 7]);
        assert!(seen.still_publishes(earlier, batch(13)) && seen.still_publishes(earlier, batch(13)));
        let (pair, other) = restarted(Exclusion::Epoch(Epoch(5)));
        assert!(!pair.is_earlier_start(other));
    }

    #[test]
    fn pair_continues_behind_earlier_epochs() {
        let (writers, earlier) = restarted(Exclusion::Epoch(Epoch(5)));
        let of = |incarnation| Writer { incarnation, ..writers.own() };
        let continued = [of(5), of(4), of(6), earlier].map(|writer| writers.continues(writer, true));
        assert_eq!(continued, [true, true, false, true]);
    }

    #[test]
    fn node_continues_behind_its_name_until_begun() {
        let (writers, _) = restarted(Exclusion::Name);
        let restored = Writer { incarnation: 7, ..writers.own() };
        assert!(writers.continues(restored, false) && !writers.continues(restored, true));
    }
}
