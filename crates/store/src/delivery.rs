//! How far pushed subscriptions are in the event log, which are paused, and which events were given up.

use std::collections::BTreeSet;

use bodkin_arrowhead::record::{Subscription, SubscriptionId};

use crate::{
    database::{DatabaseResult, Row, params},
    draft::{Draft, OperationError},
    event_log::{LogId, Position, RecordName},
};

/// The tables. Who is at the present and not paused has no row in `delivery`.
pub(crate) const MIGRATION: &str = "
CREATE TABLE delivery (
    subscription_id INTEGER PRIMARY KEY REFERENCES subscription (id) ON DELETE CASCADE,
    cursor INTEGER,
    paused INTEGER NOT NULL
) STRICT;
CREATE TABLE delivery_present (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL
) STRICT;
CREATE TABLE dead_letter (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    subscription_id INTEGER NOT NULL REFERENCES subscription (id) ON DELETE CASCADE,
    first_position INTEGER NOT NULL,
    last_position INTEGER NOT NULL,
    is_range INTEGER NOT NULL,
    events INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    reason TEXT NOT NULL,
    died_at INTEGER NOT NULL
) STRICT;
CREATE INDEX dead_letter_subscription ON dead_letter (subscription_id, first_position);
";
/// Which log positions are of, and what another node of a pair finds the same places by; `NULL`: the node's own log.
pub(crate) const LOGS_MIGRATION: &str = "
ALTER TABLE delivery_present ADD COLUMN log INTEGER;
ALTER TABLE delivery_present ADD COLUMN after_record BLOB;
ALTER TABLE delivery ADD COLUMN after_record BLOB;
ALTER TABLE dead_letter ADD COLUMN log INTEGER;
";

/// What is known of deliveries at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveriesAtStart {
    /// The log that all positions are of; `None`: that of the node.
    pub log: Option<LogId>,
    /// Where those are that have no place of their own; `None` before the first checkpoint.
    pub present: Option<Position>,
    /// A record before the present that both logs of a pair have: the other node finds the present by it.
    pub after: Option<RecordName>,
    /// Those that are elsewhere than the present, or paused.
    pub rows: Vec<DeliveryRow>,
    /// Dead letters of each subscription that has some.
    pub dead_letters: Vec<(SubscriptionId, u64)>,
}

/// Where a subscription is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Which one.
    pub subscription: SubscriptionId,
    /// Everything in front of it is delivered or dead; `None` is the present.
    pub cursor: Option<Position>,
    /// A record before the cursor that both logs have, like [`DeliveriesAtStart::after`].
    pub after: Option<RecordName>,
    /// Whether the operator holds its events back.
    pub paused: bool,
}

/// Where deliveries are that have no place of their own, to be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// The log that all positions are of, if the nodes of a pair share what is written; `None`: that of the node.
    pub log: Option<LogId>,
    /// Everything in front of it is delivered or dead.
    pub position: Position,
    /// As [`DeliveriesAtStart::after`].
    pub after: RecordName,
}

/// Where one delivery is, to be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// As [`DeliveryRow::cursor`].
    pub cursor: Position,
    /// As [`DeliveryRow::after`].
    pub after: RecordName,
}

/// Events of a subscription that were given up together: a single one, or what its filter lets through of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetters {
    /// Row id; 0 while it has none.
    pub id: i64,
    /// Whose.
    pub subscription: SubscriptionId,
    /// The log that the positions are of; `None`: that of the node.
    pub log: Option<LogId>,
    /// Position of the first one.
    pub first: Position,
    /// Position of the last one.
    pub last: Position,
    /// Whether it is a range, of which the subscription's filter lets some through.
    pub is_range: bool,
    /// How many they are.
    pub events: u64,
    /// How often the first one was tried.
    pub attempts: u32,
    /// Why they were given up.
    pub reason: String,
    /// When, in seconds since 1970; set when they are added.
    pub died_at: i64,
}

/// How far a row of dead letters was replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowReplayed {
    /// The row's id.
    pub id: i64,
    /// Where it goes on; behind its last place it is done with.
    pub next: Position,
    /// How many of its events are done with.
    pub events: u64,
}

/// Events that were refused once more, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedAgain {
    /// The row they were of.
    pub of: i64,
    /// The row to which they come. Its id is that of an earlier one that they continue, or 0.
    pub letters: DeadLetters,
}

/// What noting a replay has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayNoted {
    /// By how many letters the subscription has fewer than before, without those that went for want of room.
    pub fewer: i64,
    /// The letters of each row that went because there were too many rows.
    pub surplus: Vec<(SubscriptionId, u64)>,
    /// The row that the last refused events came to.
    pub refused_to: Option<i64>,
}

/// Rows that are removed at once because there are too many: the writer has others to serve.
const SURPLUS_ROWS_MAX: i64 = 1000;

const COLUMNS: &str = "id, subscription_id, log, first_position, last_position, is_range, events, attempts, reason, died_at";

fn position(stored: i64) -> Position {
    Position(stored.unsigned_abs())
}

fn stored(position: Position) -> i64 {
    i64::try_from(position.0).expect("a log has fewer than 2^63 events")
}

/// A log's identity as databases keep it.
fn number_of(log: LogId) -> i64 {
    i64::try_from(log.0).expect("an identity has 63 bits")
}

fn log_id(stored: i64) -> LogId {
    LogId(stored.unsigned_abs())
}

fn dead_letters(row: &Row<'_>) -> DatabaseResult<DeadLetters> {
    Ok(DeadLetters {
        id: row.get(0)?,
        subscription: SubscriptionId(row.get(1)?),
        log: row.get::<Option<i64>>(2)?.map(log_id),
        first: position(row.get(3)?),
        last: position(row.get(4)?),
        is_range: row.get(5)?,
        events: row.get::<i64>(6)?.unsigned_abs(),
        attempts: row.get(7)?,
        reason: row.get(8)?,
        died_at: row.get(9)?,
    })
}

fn events_of(row: &Row<'_>) -> DatabaseResult<(SubscriptionId, u64)> {
    Ok((SubscriptionId(row.get(0)?), row.get::<i64>(1)?.unsigned_abs()))
}

impl Draft<'_> {
    /// Reads where every delivery was left.
    pub fn deliveries_at_start(&mut self) -> Result<DeliveriesAtStart, OperationError> {
        let row = |row: &Row<'_>| {
            let cursor = row.get::<Option<i64>>(1)?.map(position);
            let after = row.get::<Option<[u8; RecordName::BYTES]>>(2)?.map(RecordName::from_bytes);
            Ok(DeliveryRow { subscription: SubscriptionId(row.get(0)?), cursor, after, paused: row.get(3)? })
        };
        let present = |row: &Row<'_>| {
            let after = row.get::<Option<[u8; RecordName::BYTES]>>(2)?.map(RecordName::from_bytes);
            Ok((position(row.get(0)?), row.get::<Option<i64>>(1)?.map(log_id), after))
        };
        let present = self.rows("SELECT position, log, after_record FROM delivery_present", (), present)?.pop();
        Ok(DeliveriesAtStart {
            log: present.and_then(|(_, log, _)| log),
            present: present.map(|(position, _, _)| position),
            after: present.and_then(|(_, _, after)| after),
            rows: self.rows("SELECT subscription_id, cursor, after_record, paused FROM delivery", (), row)?,
            dead_letters: self.rows(
                "SELECT subscription_id, CAST(sum(events) AS BIGINT) FROM dead_letter GROUP BY subscription_id",
                (),
                events_of,
            )?,
        })
    }

    /// Behind every position that is known here, or every one of a node's own log and this one; 0 if none is.
    pub fn positions_end(&mut self, log: Option<LogId>) -> Result<Position, OperationError> {
        let end = self.id(
            "SELECT coalesce(max(known), 0) FROM (
                 SELECT max(position) AS known FROM delivery_present WHERE coalesce(log = CAST(?1 AS BIGINT), TRUE)
                 UNION ALL SELECT max(cursor) FROM delivery WHERE NOT EXISTS (SELECT 1 FROM delivery_present WHERE log <> CAST(?1 AS BIGINT))
                 UNION ALL SELECT max(last_position) + 1 FROM dead_letter WHERE coalesce(log = CAST(?1 AS BIGINT), TRUE)
             ) AS places",
            [log.map(number_of)],
        )?;
        Ok(position(end.unwrap_or_default()))
    }

    /// Notes the present, and the places of those that have left it or come back to it. Who has ended meanwhile is skipped.
    pub fn note_deliveries(&mut self, present: Present, places: &[(SubscriptionId, Option<Place>)]) -> Result<(), OperationError> {
        self.run(
            "INSERT INTO delivery_present (id, position, log, after_record) VALUES (1, ?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET position = excluded.position, log = excluded.log, after_record = excluded.after_record",
            params![stored(present.position), present.log.map(number_of), present.after.to_bytes()],
        )?;
        for (subscription, place) in places {
            self.run(
                "INSERT INTO delivery (subscription_id, cursor, after_record, paused) SELECT id, ?2, ?3, FALSE FROM subscription WHERE id = ?1
                 ON CONFLICT (subscription_id) DO UPDATE SET cursor = excluded.cursor, after_record = excluded.after_record",
                params![subscription.0, place.map(|place| stored(place.cursor)), place.map(|place| place.after.to_bytes())],
            )?;
        }
        self.run("DELETE FROM delivery WHERE cursor IS NULL AND NOT paused", ())?;
        Ok(())
    }

    /// Holds a subscription's events back, or lets them go. False if there is no such subscription.
    pub fn pause_delivery(&mut self, subscription: SubscriptionId, paused: bool) -> Result<bool, OperationError> {
        let changed = self.run(
            "INSERT INTO delivery (subscription_id, cursor, paused) SELECT id, NULL, ?2 FROM subscription WHERE id = ?1
             ON CONFLICT (subscription_id) DO UPDATE SET paused = excluded.paused",
            params![subscription.0, paused],
        )?;
        Ok(changed > 0)
    }

    /// Forgets what a subscription has not got: it is another subscriber's or to another event type from now on, and begins with
    /// the present. Whether it is paused stays.
    pub(crate) fn begin_delivery_anew(&mut self, subscription: SubscriptionId) -> Result<(), OperationError> {
        self.run("UPDATE delivery SET cursor = NULL, after_record = NULL WHERE subscription_id = ?1", [subscription.0])?;
        let gone: u64 = self.remove_dead_letters(Some(subscription))?.iter().map(|(_, events)| events).sum();
        if gone > 0 {
            tracing::warn!(subscription = subscription.0, events = gone, "dead letters go with the change of their subscription");
        }
        Ok(())
    }

    /// Adds dead letters, a range to the range that it continues. If there are more than `rows_max` rows then, the oldest go:
    /// gives the events of each subscription that went. A subscription that has ended meanwhile, or is another's, has none.
    pub fn add_dead_letters(
        &mut self,
        whose: &Subscription,
        added: &DeadLetters,
        rows_max: usize,
    ) -> Result<Vec<(SubscriptionId, u64)>, OperationError> {
        if !self.snapshot().subscriptions().get(&whose.id).is_some_and(|now| whose.is_continued_by(now)) {
            return Ok(Vec::new());
        }
        let continued = self.run(
            "UPDATE dead_letter SET last_position = ?3, events = events + ?4, died_at = ?5
             WHERE ?6 AND is_range AND subscription_id = ?1 AND last_position + 1 = ?2 AND (log IS NULL OR log = ?7)",
            params![
                added.subscription.0,
                stored(added.first),
                stored(added.last),
                i64::try_from(added.events).unwrap_or(i64::MAX),
                self.now_seconds(),
                added.is_range,
                added.log.map(number_of)
            ],
        )?;
        if continued > 0 {
            return Ok(Vec::new());
        }
        self.insert_dead_letters(added)?;
        let surplus = self.surplus_rows(rows_max)?;
        if surplus <= 0 {
            return Ok(Vec::new());
        }
        self.rows(
            "DELETE FROM dead_letter WHERE id IN (SELECT id FROM dead_letter ORDER BY id LIMIT ?1) RETURNING subscription_id, events",
            [surplus.min(SURPLUS_ROWS_MAX)],
            events_of,
        )
    }

    /// How many rows there are more than there may be.
    fn surplus_rows(&self, rows_max: usize) -> Result<i64, OperationError> {
        let rows = self.id("SELECT count(*) FROM dead_letter", ())?.unwrap_or_default();
        Ok(rows - i64::try_from(rows_max).unwrap_or(i64::MAX))
    }

    /// Gives the row's id.
    fn insert_dead_letters(&mut self, added: &DeadLetters) -> Result<Option<i64>, OperationError> {
        let id = self.id(
            "INSERT INTO dead_letter (subscription_id, first_position, last_position, is_range, events, attempts, reason, died_at, log)
             SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM subscription WHERE id = ?1 RETURNING id",
            params![
                added.subscription.0,
                stored(added.first),
                stored(added.last),
                added.is_range,
                i64::try_from(added.events).unwrap_or(i64::MAX),
                added.attempts,
                added.reason.as_str(),
                self.now_seconds(),
                added.log.map(number_of),
            ],
        )?;
        Ok(id)
    }

    /// The dead letters of a subscription, or of all, in the order of subscription and position: rows until there are
    /// `events` events behind the first `skipped` ones, and how many of the first row's events are still to be skipped.
    pub fn dead_letters(
        &mut self,
        subscription: Option<SubscriptionId>,
        skipped: u64,
        events: u64,
    ) -> Result<(Vec<DeadLetters>, u64), OperationError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM (SELECT {COLUMNS}, CAST(sum(events) OVER (ORDER BY subscription_id, first_position, id) AS BIGINT) AS upto
             FROM dead_letter WHERE CAST(?1 AS BIGINT) IS NULL OR subscription_id = ?1) AS counted
             WHERE upto > ?2 AND upto - events < ?2 + ?3 ORDER BY subscription_id, first_position, id"
        );
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX / 2);
        let chosen = params![subscription.map(|id| id.0), number(skipped), number(events)];
        let rows = self.rows(&sql, chosen, dead_letters)?;
        let Some(first) = rows.first() else { return Ok((rows, 0)) };
        let in_front = self.id(
            "SELECT CAST(coalesce(sum(events), 0) AS BIGINT) FROM dead_letter WHERE (CAST(?1 AS BIGINT) IS NULL OR subscription_id = ?1)
             AND (subscription_id, first_position, id) < (?2, ?3, ?4)",
            params![subscription.map(|id| id.0), first.subscription.0, stored(first.first), first.id],
        )?;
        let in_front = in_front.unwrap_or_default().unsigned_abs();
        Ok((rows, skipped.saturating_sub(in_front)))
    }

    /// Names the log that the positions of dead letters are of, where only the node itself has known it.
    pub fn name_log_of_dead_letters(&mut self, log: LogId) -> Result<(), OperationError> {
        self.run("UPDATE dead_letter SET log = ?1 WHERE log IS NULL", [number_of(log)])?;
        Ok(())
    }

    /// How many dead letters of a subscription have their events in another log than this one.
    pub fn dead_letters_elsewhere(&mut self, subscription: SubscriptionId, log: LogId) -> Result<u64, OperationError> {
        let counted = self.id(
            "SELECT CAST(coalesce(sum(events), 0) AS BIGINT) FROM dead_letter WHERE subscription_id = ?1 AND log <> ?2",
            [subscription.0, number_of(log)],
        )?;
        Ok(counted.unwrap_or_default().unsigned_abs())
    }

    /// How many dead letters a subscription has, or all have.
    pub fn dead_letter_count(&mut self, subscription: Option<SubscriptionId>) -> Result<u64, OperationError> {
        let counted = self.id(
            "SELECT CAST(coalesce(sum(events), 0) AS BIGINT) FROM dead_letter WHERE CAST(?1 AS BIGINT) IS NULL OR subscription_id = ?1",
            [subscription.map(|id| id.0)],
        )?;
        Ok(counted.unwrap_or_default().unsigned_abs())
    }

    /// The row of dead letters that a subscription got last; `None` if it has none.
    pub fn newest_dead_letters(&mut self, subscription: SubscriptionId) -> Result<Option<i64>, OperationError> {
        Ok(self.id("SELECT id FROM dead_letter WHERE subscription_id = ?1 ORDER BY id DESC LIMIT 1", [subscription.0])?)
    }

    /// The first rows of a subscription's dead letters whose events are in this log, in the order of position, but none that is
    /// younger than `newest`.
    pub fn first_dead_letters(
        &mut self,
        subscription: SubscriptionId,
        log: LogId,
        newest: i64,
        rows_max: u64,
    ) -> Result<Vec<DeadLetters>, OperationError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM dead_letter WHERE subscription_id = ?1 AND id <= ?2 AND (log IS NULL OR log = ?4)
             ORDER BY first_position, id LIMIT ?3"
        );
        let rows_max = i64::try_from(rows_max).unwrap_or(i64::MAX);
        self.rows(&sql, params![subscription.0, newest, rows_max, number_of(log)], dead_letters)
    }

    /// Notes how far a subscription's dead letters were replayed. Those that were refused once more come to a row of their own, or to
    /// the one that they continue. Rows that were removed meanwhile stay removed, with what was refused of them, and a range
    /// that was continued goes on.
    ///
    /// If there are more than `rows_max` rows then, and one for the row that is replayed in part, the subscription's own oldest
    /// events go, for it was its rows that became more.
    pub fn note_replayed(
        &mut self,
        subscription: SubscriptionId,
        rows: &[RowReplayed],
        refused: &[RefusedAgain],
        rows_max: usize,
    ) -> Result<ReplayNoted, OperationError> {
        let (mut noted, mut there, mut in_part) = (ReplayNoted::default(), BTreeSet::new(), 0);
        for row in rows {
            let Some(before) = self.id("SELECT events FROM dead_letter WHERE id = ?1", [row.id])? else { continue };
            there.insert(row.id);
            let after = self.id(
                "UPDATE dead_letter SET first_position = ?2, events = CASE WHEN events > ?3 THEN events - ?3 ELSE 1 END WHERE id = ?1 AND last_position >= ?2
                 RETURNING events",
                params![row.id, stored(row.next), i64::try_from(row.events).unwrap_or(i64::MAX)],
            )?;
            match after {
                Some(_) => in_part = 1,
                None => drop(self.run("DELETE FROM dead_letter WHERE id = ?1", [row.id])?),
            }
            noted.fewer += before - after.unwrap_or_default();
        }
        for RefusedAgain { letters, .. } in refused.iter().filter(|refused| there.contains(&refused.of)) {
            noted.refused_to = self.add_refused(letters)?;
            noted.fewer -= i64::try_from(letters.events).unwrap_or(i64::MAX);
        }
        if noted.refused_to.is_some() {
            let most = SURPLUS_ROWS_MAX.max(i64::try_from(refused.len()).unwrap_or(i64::MAX));
            let surplus = (self.surplus_rows(rows_max)? - in_part).clamp(0, most);
            let oldest = "DELETE FROM dead_letter WHERE id IN
                (SELECT id FROM dead_letter WHERE subscription_id = ?1 ORDER BY first_position, id LIMIT ?2) RETURNING subscription_id, events";
            noted.surplus = self.rows(oldest, [subscription.0, surplus], events_of)?;
        }
        Ok(noted)
    }

    /// Adds letters that were refused once more, to the row that they continue if it is there; gives the row's id.
    fn add_refused(&mut self, letters: &DeadLetters) -> Result<Option<i64>, OperationError> {
        let continued = self.id(
            "UPDATE dead_letter SET last_position = ?2, is_range = TRUE, events = events + ?3, died_at = ?4 WHERE id = ?1 RETURNING id",
            params![letters.id, stored(letters.last), i64::try_from(letters.events).unwrap_or(i64::MAX), self.now_seconds()],
        )?;
        if continued.is_some() { Ok(continued) } else { self.insert_dead_letters(letters) }
    }

    /// Removes the dead letters of a subscription, or of all; gives the events of each row that went.
    pub fn remove_dead_letters(&mut self, subscription: Option<SubscriptionId>) -> Result<Vec<(SubscriptionId, u64)>, OperationError> {
        self.rows(
            "DELETE FROM dead_letter WHERE CAST(?1 AS BIGINT) IS NULL OR subscription_id = ?1 RETURNING subscription_id, events",
            [subscription.map(|id| id.0)],
            events_of,
        )
    }
}
