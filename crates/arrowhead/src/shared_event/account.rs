//! What has come of the events of other clouds: each is taken once, and what is missing is counted.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::RangeInclusive,
};

use serde::Serialize;

use super::SharedIdentity;
use crate::{name::EventType, record::CloudId};

/// Streams, of a publisher and event type of a cloud, that are kept account of; the event of one more is refused and tried again by its cloud, for it cannot be told from a repeated one.
pub const ACCOUNTS_MAX: usize = 16_384;
/// Gaps of a run that may still be filled, by a dead letter that is sent once more; of more the oldest are lost for good.
const GAPS_MAX: usize = 32;
/// Runs of a publisher that are kept account of: the present one, and the one before, of which dead letters may be sent once more. What comes of older ones is passed over.
const RUNS_MAX: usize = 2;

/// What is to be done with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is new; so many in front of it are missing.
    New {
        /// Events.
        missing: u64,
    },
    /// It was missing, and is there now.
    Late,
    /// It is from before the first one that has come since the start: a dead letter that is sent once more, which nobody has counted as missing.
    Early,
    /// It has been taken before.
    Known,
}

/// The events of one run of a publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    /// The first number that has come: what went before it is nobody's loss.
    first: u64,
    /// The highest one.
    last: u64,
    /// What has not come, ascending.
    gaps: Vec<RangeInclusive<u64>>,
}

impl Run {
    fn begin(sequence: u64) -> Self {
        let before = sequence.checked_sub(1).map(|last| 0..=last);
        Self { first: sequence, last: sequence, gaps: before.into_iter().collect() }
    }

    fn take(&mut self, sequence: u64) -> Taken {
        if sequence <= self.last {
            return self.fill(sequence);
        }
        let missing = sequence - self.last - 1;
        if missing > 0 {
            self.gaps.push(self.last + 1..=sequence - 1);
            self.bound_gaps();
        }
        self.last = sequence;
        Taken::New { missing }
    }

    fn fill(&mut self, sequence: u64) -> Taken {
        let Some(at) = self.gaps.iter().position(|gap| gap.contains(&sequence)) else { return Taken::Known };
        let (first, last) = self.gaps.remove(at).into_inner();
        if sequence < last {
            self.gaps.insert(at, sequence + 1..=last);
        }
        if first < sequence {
            self.gaps.insert(at, first..=sequence - 1);
        }
        self.bound_gaps();
        if sequence < self.first { Taken::Early } else { Taken::Late }
    }

    fn bound_gaps(&mut self) {
        let surplus = self.gaps.len().saturating_sub(GAPS_MAX);
        self.gaps.drain(..surplus);
    }
}

/// The events of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stream {
    /// By incarnation: of [`RUNS_MAX`] runs.
    runs: BTreeMap<u64, Run>,
    /// The newest run that is not kept account of any more: it and those before are over.
    over: Option<u64>,
}

impl Stream {
    fn take(&mut self, SharedIdentity { incarnation, sequence, .. }: SharedIdentity) -> Taken {
        if let Some(run) = self.runs.get_mut(&incarnation) {
            return run.take(sequence);
        }
        if self.over.is_some_and(|over| incarnation <= over) {
            return Taken::Known;
        }
        self.runs.insert(incarnation, Run::begin(sequence));
        if self.runs.len() > RUNS_MAX {
            self.over = self.runs.pop_first().map(|(oldest, _)| oldest);
        }
        Taken::New { missing: 0 }
    }
}

/// Events of one type of one cloud, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Events that were taken.
    pub taken: u64,
    /// Events that are missing between those.
    pub lost: u64,
    /// Events that came once more, and were passed over.
    pub repeated: u64,
    /// Attempts to share an event that were refused, because its type is not accepted of its cloud.
    pub refused: u64,
}

/// Of all clouds.
#[derive(Debug, Default)]
pub struct Accounts {
    streams: BTreeMap<(CloudId, EventType, u64), Stream>,
    accounts: BTreeMap<(CloudId, EventType), Account>,
    /// Refused events of types that there was no room for an account of.
    refused_besides: u64,
}

impl Accounts {
    /// Says what is to be done with an event, without noting it; `None`: there are [`ACCOUNTS_MAX`] streams, and it is of one more.
    pub fn look(&self, cloud: CloudId, event_type: &EventType, identity: SharedIdentity) -> Option<Taken> {
        match self.streams.get(&(cloud, event_type.clone(), identity.publisher)) {
            Some(stream) => Some(stream.clone().take(identity)),
            None if self.streams.len() >= ACCOUNTS_MAX => None,
            None => Some(Taken::New { missing: 0 }),
        }
    }

    /// Notes an event that was taken before the start, so that it is known; nothing is counted. While there are [`ACCOUNTS_MAX`] streams none of another one is noted.
    pub fn recall(&mut self, cloud: CloudId, event_type: &EventType, identity: SharedIdentity) {
        if self.look(cloud, event_type, identity).is_some() {
            self.streams.entry((cloud, event_type.clone(), identity.publisher)).or_default().take(identity);
        }
    }

    /// Notes an event that was taken, or passed over because it was before.
    pub fn note(&mut self, cloud: CloudId, event_type: &EventType, identity: SharedIdentity) -> Taken {
        let stream = self.streams.entry((cloud, event_type.clone(), identity.publisher));
        let taken = stream.or_default().take(identity);
        let account = self.accounts.entry((cloud, event_type.clone())).or_default();
        match taken {
            Taken::New { missing } => (account.taken, account.lost) = (account.taken + 1, account.lost + missing),
            Taken::Early => account.taken += 1,
            Taken::Late => (account.taken, account.lost) = (account.taken + 1, account.lost.saturating_sub(1)),
            Taken::Known => account.repeated += 1,
        }
        taken
    }

    /// Notes an event whose type is not accepted. Clouds choose these types: an account of one more than [`ACCOUNTS_MAX`] is not begun, and its events count in the sum only.
    /// Gives whether it is the first one of its account.
    pub fn refuse(&mut self, cloud: CloudId, event_type: &EventType) -> bool {
        let has_room = self.accounts.len() < ACCOUNTS_MAX;
        let account = match self.accounts.entry((cloud, event_type.clone())) {
            Entry::Occupied(account) => account.into_mut(),
            Entry::Vacant(place) if has_room => place.insert(Account::default()),
            Entry::Vacant(_) => {
                self.refused_besides += 1;
                return false;
            }
        };
        account.refused += 1;
        account.refused == 1
    }

    /// Of each cloud and event type.
    pub fn all(&self) -> impl Iterator<Item = (CloudId, &EventType, Account)> {
        self.accounts.iter().map(|((cloud, event_type), account)| (*cloud, event_type, *account))
    }

    /// Of everything together.
    pub fn sum(&self) -> Account {
        let besides = Account { refused: self.refused_besides, ..Account::default() };
        self.accounts.values().fold(besides, |sum, account| Account {
            taken: sum.taken + account.taken,
            lost: sum.lost + account.lost,
            repeated: sum.repeated + account.repeated,
            refused: sum.refused + account.refused,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heat() -> EventType {
        EventType::parse("heat").unwrap()
    }

    fn account(taken: u64, lost: u64, repeated: u64) -> Account {
        Account { taken, lost, repeated, refused: 0 }
    }

    fn identity(incarnation: u64, sequence: u64) -> SharedIdentity {
        SharedIdentity { publisher: 1, incarnation, sequence }
    }

    /// Takes numbers of run 1; gives what became of each, and the account.
    fn taken(sequences: &[u64]) -> (Vec<Taken>, Account) {
        let mut accounts = Accounts::default();
        let all = sequences.iter().map(|sequence| accounts.note(CloudId(2), &heat(), identity(1, *sequence))).collect();
        (all, accounts.sum())
    }

    #[test]
    fn an_event_is_taken_once_and_what_is_missing_is_counted() {
        use Taken::*;
        let new = New { missing: 0 };
        assert_eq!(taken(&[5, 6, 6, 5]), (vec![new, new, Known, Known], account(2, 0, 2)));
        assert_eq!(taken(&[5, 9]), (vec![new, New { missing: 3 }], account(2, 3, 0)));
        assert_eq!(taken(&[5, 9, 7, 7, 6, 8]).1, account(5, 0, 1));
        // Dead letters from before the start of this account, each once; nobody has missed them here.
        assert_eq!(taken(&[5, 3, 9, 0, 3, 7, 5]).0, [new, Early, New { missing: 3 }, Early, Known, Late, Known]);
        assert_eq!(taken(&[5, 3, 9, 0, 3, 7, 5]).1, account(5, 2, 2));
        assert_eq!(taken(&[u64::MAX, u64::MAX]).1, account(1, 0, 1));
    }

    #[test]
    fn another_run_of_a_publisher_begins_anew_and_the_one_before_the_former_is_over() {
        let mut accounts = Accounts::default();
        let mut take = |incarnation, sequence| accounts.note(CloudId(2), &heat(), identity(incarnation, sequence));
        assert_eq!(take(1, 40), Taken::New { missing: 0 });
        assert_eq!(take(2, 3), Taken::New { missing: 0 });
        // A dead letter of the run before is sent once more.
        assert_eq!((take(1, 38), take(1, 38), take(1, 40)), (Taken::Early, Taken::Known, Taken::Known));
        assert_eq!((take(2, 4), take(3, 1)), (Taken::New { missing: 0 }, Taken::New { missing: 0 }));
        assert_eq!((take(1, 37), take(2, 2), take(2, 4)), (Taken::Known, Taken::Early, Taken::Known));
        // A run that was never heard of is older than those that are kept: once, and no more.
        let mut stream = Stream::default();
        let mut take = |incarnation| stream.take(identity(incarnation, 1));
        assert_eq!(
            [take(5), take(6), take(4), take(4), take(3)],
            [Taken::New { missing: 0 }, Taken::New { missing: 0 }, Taken::New { missing: 0 }, Taken::Known, Taken::Known]
        );
        // Other publishers, event types and clouds have numbers of their own.
        let other = EventType::parse("cold").unwrap();
        assert_eq!(accounts.note(CloudId(2), &other, identity(1, 9)), Taken::New { missing: 0 });
        assert_eq!(accounts.note(CloudId(3), &heat(), identity(1, 9)), Taken::New { missing: 0 });
        assert_eq!(accounts.all().count(), 3);
    }

    #[test]
    fn what_was_taken_before_the_start_is_known_and_not_counted() {
        let mut accounts = Accounts::default();
        for sequence in [5, 6, 9] {
            accounts.recall(CloudId(2), &heat(), identity(1, sequence));
        }
        assert_eq!((accounts.sum(), accounts.all().count()), (account(0, 0, 0), 0));
        let mut note = |sequence| accounts.note(CloudId(2), &heat(), identity(1, sequence));
        assert_eq!([note(9), note(6), note(7)], [Taken::Known, Taken::Known, Taken::Late]);
        assert_eq!((note(11), accounts.sum()), (Taken::New { missing: 1 }, account(2, 1, 2)));
    }

    #[test]
    fn streams_and_gaps_are_bounded() {
        let mut accounts = Accounts::default();
        for publisher in 0..ACCOUNTS_MAX as u64 {
            accounts.note(CloudId(2), &heat(), SharedIdentity { publisher, incarnation: 1, sequence: 0 });
        }
        let more = SharedIdentity { publisher: ACCOUNTS_MAX as u64, incarnation: 1, sequence: 0 };
        accounts.recall(CloudId(2), &heat(), more);
        assert_eq!(accounts.look(CloudId(2), &heat(), more), None);
        assert_eq!(accounts.look(CloudId(2), &heat(), identity(1, 0)), Some(Taken::Known));
        // What is refused has no stream, and an account while there is room.
        let types: Vec<EventType> = (0..ACCOUNTS_MAX + 5).map(|number| EventType::parse(&format!("type-{number}")).unwrap()).collect();
        // All streams are of one event type, which has one account.
        let told = types.iter().chain(&types).filter(|event_type| accounts.refuse(CloudId(3), event_type)).count();
        assert_eq!((accounts.all().count(), told), (ACCOUNTS_MAX, ACCOUNTS_MAX - 1));
        assert_eq!(accounts.sum().refused, 2 * types.len() as u64);
        let mut run = Run::begin(0);
        for sequence in (0..4 * GAPS_MAX as u64).step_by(2) {
            run.take(sequence);
        }
        assert_eq!((run.gaps.len(), run.take(1)), (GAPS_MAX, Taken::Known), "the oldest gap is closed for good");
        // A gap that is filled in the middle is two.
        let mut run = Run::begin(u64::MAX);
        for sequence in (0..4 * GAPS_MAX as u64).step_by(2) {
            assert_eq!(run.take(sequence), Taken::Early);
        }
        assert!(run.gaps.len() <= GAPS_MAX, "{}", run.gaps.len());
    }

    proptest! {
        #[test]
        fn every_number_is_taken_once_whatever_the_order(order in Just((0u64..60).collect::<Vec<_>>()).prop_shuffle(), repeats in proptest::collection::vec(0u64..60, 0..30)) {
            let mut accounts = Accounts::default();
            let mut new = std::collections::BTreeSet::new();
            for sequence in order.iter().copied().chain(repeats) {
                let looked = accounts.look(CloudId(2), &heat(), identity(1, sequence));
                let taken = accounts.note(CloudId(2), &heat(), identity(1, sequence));
                prop_assert_eq!(looked, Some(taken));
                if taken != Taken::Known {
                    prop_assert!(new.insert(sequence), "{} was taken twice", sequence);
                }
            }
            prop_assert_eq!(new.len(), 60);
            prop_assert_eq!((accounts.sum().taken, accounts.sum().lost), (60, 0));
        }
    }
}
