//! Which run of each publisher numbers a topic's events, on which link it is, and what it is told at the end of the turn.

use std::collections::HashMap;

use bodkin_broker::{Few, Incarnation, PublisherId, Sequence, StreamIdentity, TopicId, wire::RefusalReason};

use super::{super::LinkKey, refusals::Refusals};

/// The latest run of each publisher on each topic. There are no more than the broker has numbered streams.
#[derive(Default)]
pub struct Runs {
    /// By topic, then in the order of the publishers.
    rows: Vec<Few<Run>>,
    /// Those that are to be told how far they are covered, each once.
    untold: Vec<(TopicId, PublisherId)>,
    /// What was refused of those runs for good.
    refusals: HashMap<StreamIdentity, Refusals>,
}

/// A run of a publisher on a topic.
struct Run {
    publisher: PublisherId,
    incarnation: Incarnation,
    /// Where it was heard last.
    link: LinkKey,
    /// Of a best-effort topic: the last event that was taken.
    last: Sequence,
    /// Of a durable real-time topic: what the broker has covered, and what was written to the event log.
    covered: Sequence,
    logged: Sequence,
    /// It is told that everything up to here is covered.
    told: Sequence,
    /// The next event that the publisher sends again on this link, and the last one; `None`: it has sent them all. A cover that passed the next one could be
    /// told before that one is refused.
    resends: Option<(Sequence, Sequence)>,
    is_untold: bool,
}

impl Run {
    /// How far the cover may be told now.
    fn tellable(&self) -> Sequence {
        self.resends.map_or(self.told, |(next, _)| self.told.min(Sequence(next.0.saturating_sub(1))))
    }
}

/// What an event of a best-effort topic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It comes for the first time.
    New,
    /// It was taken already.
    Known,
}

/// A later run of the publisher has published, with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaterRun(pub Incarnation);

/// What a publisher is told: everything of its run up to here is covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// Whose stream.
    pub stream: StreamIdentity,
    /// The last event.
    pub through: Sequence,
    /// On which link.
    pub link: LinkKey,
}

impl Runs {
    /// Whether a run may number a topic's events: no later one has.
    pub fn admit(&self, stream: StreamIdentity) -> Result<(), LaterRun> {
        match self.latest(stream.topic, stream.publisher) {
            Some(run) if run.incarnation > stream.incarnation => Err(LaterRun(run.incarnation)),
            _ => Ok(()),
        }
    }

    /// What an event of a best-effort topic is.
    pub fn place(&self, stream: StreamIdentity, sequence: Sequence) -> Place {
        let last = self.of(stream).map_or(Sequence(0), |run| run.last);
        if sequence <= last { Place::Known } else { Place::New }
    }

    /// Notes where a run is heard; true if it was not heard there last.
    pub fn heard(&mut self, stream: StreamIdentity, link: LinkKey) -> bool {
        let begun = || Run {
            publisher: stream.publisher,
            incarnation: stream.incarnation,
            link,
            last: Sequence(0),
            covered: Sequence(0),
            logged: Sequence(0),
            told: Sequence(0),
            resends: None,
            is_untold: false,
        };
        let topic = stream.topic.0 as usize;
        if topic >= self.rows.len() {
            self.rows.resize_with(topic + 1, Few::default);
        }
        let runs = &mut self.rows[topic];
        let found = place(runs, stream.publisher);
        let is_new = found.is_err();
        let at = found.unwrap_or_else(|at| {
            runs.insert(at, begun());
            at
        });
        let run = &mut runs[at];
        let is_elsewhere = is_new || run.link != link;
        if run.incarnation < stream.incarnation {
            let former = StreamIdentity { incarnation: run.incarnation, ..stream };
            *run = Run { is_untold: run.is_untold, ..begun() };
            self.refusals.remove(&former);
        } else if is_elsewhere {
            (run.link, run.resends) = (link, None);
        }
        is_elsewhere
    }

    /// The publisher sends again on this link what it keeps. A run that is not known has nothing to hold back.
    pub fn resume(&mut self, stream: StreamIdentity, link: LinkKey, (from, to): (Sequence, Sequence)) {
        let Some(run) = self.of_mut(stream) else { return };
        (run.link, run.resends) = (link, (from <= to).then_some((from, to)));
        self.forget(stream, |refusals| refusals.forget_before(from));
    }

    /// The publisher has sent everything up to `last` that it will send on this link: it may have given up what it was to send again.
    pub fn sent_all(&mut self, stream: StreamIdentity, link: LinkKey, last: Sequence) {
        if self.link(stream) == Some(link) {
            self.passed(stream, last);
        }
    }

    /// Notes that an event was taken, now or before.
    ///
    /// # Errors
    /// Returns why an event that cannot be taken any more was refused before.
    pub fn accept(&mut self, stream: StreamIdentity, sequence: Sequence, place: Place) -> Result<(), RefusalReason> {
        self.passed(stream, sequence);
        match place {
            Place::New => self.forget(stream, |refusals| refusals.forget(sequence)),
            Place::Known => {
                let reason = self.refusals.get(&stream).and_then(|refusals| refusals.reason(sequence));
                return reason.map_or(Ok(()), Err);
            }
        }
        Ok(())
    }

    fn forget(&mut self, stream: StreamIdentity, forget: impl FnOnce(&mut Refusals)) {
        if let Some(refusals) = self.refusals.get_mut(&stream) {
            forget(refusals);
            if refusals.is_empty() {
                self.refusals.remove(&stream);
            }
        }
    }

    /// Notes that an event was refused for good as it came.
    pub fn refuse(&mut self, stream: StreamIdentity, sequence: Sequence, reason: RefusalReason) {
        self.passed(stream, sequence);
        self.note_refusal(stream, sequence, reason);
    }

    /// Notes that an event was refused for good, some time after it came.
    pub fn note_refusal(&mut self, stream: StreamIdentity, sequence: Sequence, reason: RefusalReason) {
        if self.of(stream).is_some() {
            self.refusals.entry(stream).or_default().note(sequence, reason);
        }
    }

    /// An event that the publisher may have sent again has been answered, or will be covered.
    fn passed(&mut self, stream: StreamIdentity, sequence: Sequence) {
        let Some(run) = self.of_mut(stream) else { return };
        let Some((next, to)) = run.resends.filter(|(next, _)| sequence >= *next) else { return };
        run.resends = (sequence < to).then_some((Sequence(sequence.0 + 1), to));
        if run.told >= next {
            self.repeat(stream);
        }
    }

    /// Notes the last event of a best-effort topic that was taken.
    pub fn taken(&mut self, stream: StreamIdentity, sequence: Sequence) {
        if let Some(run) = self.of_mut(stream) {
            run.last = sequence;
        }
    }

    /// Everything up to here is covered: it is told at the end of the turn, once for what has come together. A stream that no link numbers is no error.
    pub fn cover(&mut self, stream: StreamIdentity, through: Sequence) {
        let Some(run) = self.of_mut(stream) else { return };
        run.told = run.told.max(through);
        if !std::mem::replace(&mut run.is_untold, true) {
            self.untold.push((stream.topic, stream.publisher));
        }
    }

    /// Notes what the broker has covered of a durable stream; gives how far it may be told once the log is synced.
    pub fn covered_durable(&mut self, stream: StreamIdentity, through: Sequence) -> Option<Sequence> {
        let run = self.of_mut(stream)?;
        run.covered = run.covered.max(through);
        Some(run.covered.min(run.logged)).filter(|through| through.0 > 0)
    }

    /// Notes what of a durable stream has been written to the event log, or was dropped in front of it; gives how far it may be told once the log is synced,
    /// if the broker had covered it before.
    pub fn logged(&mut self, stream: StreamIdentity, through: Sequence) -> Option<Sequence> {
        let run = self.of_mut(stream)?;
        let was_held_up = run.covered > run.logged;
        run.logged = run.logged.max(through);
        was_held_up.then(|| run.covered.min(run.logged))
    }

    /// What a run was told last is told again.
    pub fn repeat(&mut self, stream: StreamIdentity) {
        if let Some(told) = self.of(stream).map(|run| run.told) {
            self.cover(stream, told);
        }
    }

    /// The next of those to be told.
    pub fn next_untold(&mut self) -> Option<Cover> {
        while let Some((topic, publisher)) = self.untold.pop() {
            let Some(run) = self.latest_mut(topic, publisher) else { continue };
            run.is_untold = false;
            let through = run.tellable();
            if through.0 > 0 {
                let stream = StreamIdentity { topic, publisher, incarnation: run.incarnation };
                return Some(Cover { stream, through, link: run.link });
            }
        }
        None
    }

    /// Whether nobody is to be told anything.
    pub fn is_told(&self) -> bool {
        self.untold.is_empty()
    }

    /// Where a run was heard last.
    pub fn link(&self, stream: StreamIdentity) -> Option<LinkKey> {
        self.of(stream).map(|run| run.link)
    }

    fn of(&self, stream: StreamIdentity) -> Option<&Run> {
        self.latest(stream.topic, stream.publisher).filter(|run| run.incarnation == stream.incarnation)
    }

    fn of_mut(&mut self, stream: StreamIdentity) -> Option<&mut Run> {
        self.latest_mut(stream.topic, stream.publisher).filter(|run| run.incarnation == stream.incarnation)
    }

    fn latest(&self, topic: TopicId, publisher: PublisherId) -> Option<&Run> {
        let runs = self.rows.get(topic.0 as usize)?;
        Some(&runs[place(runs, publisher).ok()?])
    }

    fn latest_mut(&mut self, topic: TopicId, publisher: PublisherId) -> Option<&mut Run> {
        let runs = self.rows.get_mut(topic.0 as usize)?;
        let at = place(runs, publisher).ok()?;
        Some(&mut runs[at])
    }
}

/// Where a publisher's run is, or would be.
fn place(runs: &[Run], publisher: PublisherId) -> Result<usize, usize> {
    runs.binary_search_by_key(&publisher, |run| run.publisher)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    const LINK: LinkKey = LinkKey { slot: 3, serial: NonZeroU64::new(7).unwrap() };

    fn run(incarnation: u64) -> StreamIdentity {
        StreamIdentity { topic: TopicId(1), publisher: PublisherId(2), incarnation: Incarnation(incarnation) }
    }

    #[test]
    fn a_later_run_ends_an_earlier_one() {
        let mut runs = Runs::default();
        runs.heard(run(5), LINK);
        runs.taken(run(5), Sequence(9));
        assert_eq!((runs.place(run(5), Sequence(9)), runs.place(run(5), Sequence(10))), (Place::Known, Place::New));
        assert_eq!((runs.admit(run(5)), runs.admit(run(4))), (Ok(()), Err(LaterRun(Incarnation(5)))));
        runs.heard(run(6), LINK);
        assert_eq!((runs.place(run(6), Sequence(1)), runs.admit(run(5))), (Place::New, Err(LaterRun(Incarnation(6)))));
        runs.cover(run(5), Sequence(9));
        assert_eq!(runs.next_untold(), None, "an earlier run is told nothing");
    }

    #[test]
    fn what_is_covered_in_a_turn_is_told_once() {
        let mut runs = Runs::default();
        runs.heard(run(5), LINK);
        for through in [1, 3, 2] {
            runs.cover(run(5), Sequence(through));
        }
        assert!(!runs.is_told());
        assert_eq!(runs.next_untold(), Some(Cover { stream: run(5), through: Sequence(3), link: LINK }));
        assert_eq!((runs.next_untold(), runs.is_told()), (None, true));
        // Its next session is told again.
        let next = LinkKey { slot: 4, serial: NonZeroU64::new(8).unwrap() };
        runs.heard(run(5), next);
        runs.cover(run(5), Sequence(3));
        assert_eq!(runs.next_untold(), Some(Cover { stream: run(5), through: Sequence(3), link: next }));
    }

    #[test]
    fn what_is_durable_is_covered_when_it_is_in_the_log_too() {
        let mut runs = Runs::default();
        runs.heard(run(5), LINK);
        assert_eq!(runs.covered_durable(run(5), Sequence(2)), None, "the Backup has it, and it is not dispatched");
        assert_eq!(runs.logged(run(5), Sequence(1)), Some(Sequence(1)));
        assert_eq!(runs.logged(run(5), Sequence(2)), Some(Sequence(2)));
        assert_eq!(runs.logged(run(5), Sequence(3)), None, "its cover is still to come");
        assert_eq!(runs.covered_durable(run(5), Sequence(3)), Some(Sequence(3)));
    }
}
