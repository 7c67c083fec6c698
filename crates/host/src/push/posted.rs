//! What became of dead letters that were posted again, and which of them stay dead letters.

use bodkin_store::delivery::{DeadLetters, RefusedAgain};

use super::{dead_letters::Chunk, link::PushError};

/// What became of a chunk's first events.
#[derive(Debug, Default)]
pub struct Posted {
    /// Events that are done with: answered, or passed over.
    pub done: usize,
    /// Those of them that were not sent, for the subscriber may not get them any more.
    pub passed_over: u64,
    /// Those of them that were not taken: which ones, and why.
    pub refused: Vec<(usize, String)>,
    /// Why it does not go on.
    pub trouble: Option<PushError>,
}

/// Refusals that may go on with the next event: events of a range that were refused one after the other are one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streak {
    /// The row that the events were of.
    of: i64,
    /// Why they were refused.
    reason: String,
    /// The row to which they came.
    pub row: i64,
}

impl Posted {
    /// Events that were taken.
    pub fn taken(&self) -> u64 {
        self.done as u64 - self.passed_over - self.refused.len() as u64
    }

    /// What was refused once more, as letters. Neighbours of a range stay one row, and go on the streak in front of the chunk, so
    /// that a backlog that is refused does not become a row for each of its events.
    pub fn refused_again(&self, rows: &[DeadLetters], chunk: &Chunk, streak: Option<&Streak>) -> Vec<RefusedAgain> {
        let mut all: Vec<RefusedAgain> = Vec::new();
        let mut behind = 0;
        for (at, reason) in &self.refused {
            let (row, position) = (&rows[chunk.rows[*at]], chunk.events[*at].position.expect("a dead letter is in the log"));
            let is_neighbour = row.is_range && *at == behind;
            behind = at + 1;
            match all.last_mut() {
                Some(RefusedAgain { of, letters }) if is_neighbour && *of == row.id && letters.reason == *reason => {
                    (letters.last, letters.is_range) = (position, true);
                    letters.events += 1;
                }
                former => {
                    let streak =
                        streak.filter(|streak| former.is_none() && is_neighbour && (streak.of, &streak.reason) == (row.id, reason));
                    let letters = DeadLetters {
                        id: streak.map_or(0, |streak| streak.row),
                        first: position,
                        last: position,
                        is_range: false,
                        events: 1,
                        attempts: row.attempts.saturating_add(1),
                        reason: reason.clone(),
                        ..row.clone()
                    };
                    all.push(RefusedAgain { of: row.id, letters });
                }
            }
        }
        all
    }

    /// The streak that the last event is of; `row` is the one to which the last refused one came.
    pub fn streak(&self, rows: &[DeadLetters], chunk: &Chunk, row: i64) -> Option<Streak> {
        let (at, reason) = self.refused.last().filter(|(at, _)| at + 1 == self.done)?;
        Some(Streak { of: rows[chunk.rows[*at]].id, reason: reason.clone(), row })
    }
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::record::SubscriptionId;
    use bodkin_broker::{EventId, Incarnation, PublisherId, Sequence, TopicId};
    use bodkin_store::event_log::Position;

    use super::{super::link::PushEvent, *};

    fn row(id: i64, first: u64, last: u64) -> DeadLetters {
        DeadLetters {
            id,
            subscription: SubscriptionId(1),
            log: None,
            first: Position(first),
            last: Position(last),
            is_range: last > first,
            events: last + 1 - first,
            attempts: 1,
            reason: "away".into(),
            died_at: 0,
        }
    }

    fn event(position: u64) -> PushEvent {
        let id = EventId { publisher: PublisherId(1), incarnation: Incarnation(1), topic: TopicId(0), sequence: Sequence(position) };
        PushEvent { position: Some(Position(position)), id, accepted_ns: 0, json: Default::default() }
    }

    /// Posts the events of a range (row 7, from place 10 on) and of a single letter (row 8) behind it; gives the rows of what was
    /// refused as (first, last, events, the row that is continued).
    fn check(claim: &str, refused: &[(usize, &str)], streak: Option<&Streak>, expected: &[(u64, u64, u64, i64)]) {
        let rows = [row(7, 10, 14), row(8, 20, 20)];
        let chunk =
            Chunk { events: [10, 11, 13, 14, 20].map(event).to_vec(), rows: vec![0, 0, 0, 0, 1], next: vec![Position(15), Position(21)] };
        let refused: Vec<_> = refused.iter().map(|(at, reason)| (*at, reason.to_string())).collect();
        let posted = Posted { done: 5, refused, ..Posted::default() };
        let found: Vec<_> = posted.refused_again(&rows, &chunk, streak).into_iter().map(|one| one.letters).collect();
        assert!(found.iter().all(|letters| letters.attempts == 2 && letters.is_range == (letters.events > 1)), "{claim}: {found:?}");
        let found: Vec<_> = found.iter().map(|letters| (letters.first.0, letters.last.0, letters.events, letters.id)).collect();
        assert_eq!(found, expected, "{claim}");
    }

    #[test]
    fn refused_neighbours_of_a_range_stay_one_row() {
        check("all", &[(0, "no"), (1, "no"), (2, "no"), (3, "no"), (4, "no")], None, &[(10, 14, 4, 0), (20, 20, 1, 0)]);
        check("with one taken between", &[(0, "no"), (2, "no"), (3, "no")], None, &[(10, 10, 1, 0), (13, 14, 2, 0)]);
        check("for another reason", &[(0, "no"), (1, "never")], None, &[(10, 10, 1, 0), (11, 11, 1, 0)]);
        let streak = |of, reason: &str| Streak { of, reason: reason.into(), row: 9 };
        check("behind refused ones", &[(0, "no"), (1, "no"), (3, "no")], Some(&streak(7, "no")), &[(10, 11, 2, 9), (14, 14, 1, 0)]);
        check("of another row", &[(0, "no")], Some(&streak(6, "no")), &[(10, 10, 1, 0)]);
        check("behind ones refused otherwise", &[(0, "no")], Some(&streak(7, "never")), &[(10, 10, 1, 0)]);
        check("behind a taken one", &[(1, "no")], Some(&streak(7, "no")), &[(11, 11, 1, 0)]);
    }

    #[test]
    fn a_streak_goes_on_behind_the_last_event_only() {
        let (rows, chunk) = ([row(7, 10, 14)], Chunk { events: [10, 11].map(event).to_vec(), rows: vec![0, 0], next: vec![Position(12)] });
        let posted = |at| Posted { done: 2, refused: vec![(at, "no".into())], ..Posted::default() };
        assert_eq!(posted(1).streak(&rows, &chunk, 9), Some(Streak { of: 7, reason: "no".into(), row: 9 }));
        assert_eq!(posted(0).streak(&rows, &chunk, 9), None);
        assert_eq!(posted(0).taken(), 1);
    }
}
