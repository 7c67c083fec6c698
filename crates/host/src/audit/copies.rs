//! The audit log is copied into the database that several nodes share, so that any node shows what all were asked (`bodkin_store::shared`).
//!
//! The copy is behind the log and never in its way: an answer waits for the log's own file, not for the copy.

use std::time::Duration;

use bodkin_arrowhead::audit::AuditQuery;
use bodkin_store::{
    Store, StoreError,
    audit::{AuditReader, Head},
    shared::{AuditCopy, Exchange},
};
use tokio::task::spawn_blocking;

use super::{Audit, note_checkpoint};

/// How often the log is looked at for what is to be copied.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Lines of one look: more than one look's lines are copied later, or never.
const LINES_PER_LOOK: usize = 2_000;
/// Bytes of one look's lines.
const BYTES_PER_LOOK: usize = 4 << 20;
/// Lines that may wait to be copied; of more, the oldest are only at this node, which the copy tells.
const BEHIND_MAX: u64 = 20_000;

/// What is copied, and how far.
#[derive(Clone, Debug)]
struct Copier {
    reader: AuditReader,
    /// The last line of the copy; `None`: not known yet.
    copied: Option<u64>,
}

impl Audit {
    /// Copies the log for the other nodes, until the task is aborted.
    pub async fn copy(self, store: Store) {
        let mut copier = Copier { reader: self.log.reader(), copied: None };
        let mut is_told = false;
        store.exchanged(Exchange::AuditCopy);
        loop {
            let (mut work, head, to) = (copier.clone(), self.log.head(), store.clone());
            let copied = spawn_blocking(move || work.copy(&to, head).map(|()| work)).await;
            match copied {
                Ok(Ok(reached)) => {
                    copier = reached;
                    is_told = false;
                    if copier.copied.is_some_and(|copied| copied >= head.number) {
                        store.exchanged(Exchange::AuditCopy);
                    }
                }
                Ok(Err(error)) => {
                    // It is not known what of it is there.
                    copier.copied = None;
                    if !std::mem::replace(&mut is_told, true) {
                        tracing::warn!(%error, "the other nodes do not see what this one's audit log says");
                    }
                }
                // The runtime is gone.
                Err(_) => return,
            }
            tokio::time::sleep(LOOK_PERIOD).await;
        }
    }
}

/// Notes the log's last entry in the database, and copies what the other nodes have not seen.
pub async fn end(store: &Store, reader: AuditReader, head: Head) {
    note_checkpoint(store, head).await;
    let store = store.clone();
    let copied = spawn_blocking(move || Copier { reader, copied: None }.copy(&store, head)).await;
    if let Ok(Err(error)) = copied {
        tracing::warn!(%error, "the other nodes do not see the last entries of this one's audit log");
    }
}

impl Copier {
    /// Copies the lines that are there, some at a time.
    fn copy(&mut self, store: &Store, head: Head) -> Result<(), StoreError> {
        let copied = match self.copied {
            Some(copied) => copied,
            None => match store.begin_audit(|reached| self.has(reached))? {
                Some(reached) => *self.copied.insert(reached),
                // There are no others.
                None => return Ok(()),
            },
        };
        if head.number <= copied {
            return Ok(());
        }
        let copies = self.next(copied, head).map_err(|error| StoreError::Unavailable(format!("The audit log cannot be read: {error}.")))?;
        let Some(last) = copies.last() else { return Ok(()) };
        let last = number_of(last);
        store.bring_audit(&copies)?;
        self.copied = Some(last);
        Ok(())
    }

    /// What comes behind a line, and is on disk.
    fn next(&self, copied: u64, head: Head) -> std::io::Result<Vec<AuditCopy>> {
        let from = if head.number - copied > BEHIND_MAX { head.number - BEHIND_MAX / 2 } else { copied + 1 };
        let mut cursor = self.reader.cursor(from);
        let (mut copies, mut bytes, mut next) = (Vec::new(), 0, copied + 1);
        while copies.len() < LINES_PER_LOOK
            && bytes < BYTES_PER_LOOK
            && let Some(read) = cursor.read()?
        {
            let (number, at) = (read.entry.number, read.entry.at);
            if number > head.number {
                break;
            }
            // The log has let go of lines, or there were too many.
            if number > next {
                tracing::warn!(from = next, through = number - 1, "entries of the audit log are not copied for the other nodes");
                copies.push(AuditCopy::Skipped { through: Head { number: number - 1, hash: read.entry.previous }, at });
            }
            // A line that is no UTF-8 is no entry, and was passed over.
            let text = String::from_utf8_lossy(&read.line).into_owned();
            bytes += text.len();
            copies.push(AuditCopy::Line { number, at, text });
            next = number + 1;
        }
        Ok(copies)
    }

    /// Whether the log has this line. One that it has let go of is believed.
    fn has(&self, reached: Head) -> bool {
        let from = AuditQuery { from: reached.number, ..AuditQuery::default() };
        match self.reader.first(&from, 1).map(|read| read.into_iter().next()) {
            Ok(Some(read)) if read.entry.number == reached.number => Head::hash_of(&read.line) == reached.hash,
            Ok(Some(read)) if read.entry.number == reached.number + 1 => read.entry.previous == reached.hash,
            Ok(Some(_)) | Err(_) => true,
            // It ends before.
            Ok(None) => false,
        }
    }
}

fn number_of(copy: &AuditCopy) -> u64 {
    match copy {
        AuditCopy::Line { number, .. } => *number,
        AuditCopy::Skipped { through, .. } => through.number,
    }
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::audit::{Event, Kind};
    use bodkin_store::audit::AuditLog;

    use super::*;
    use crate::{
        audit::{AUDIT_LIMITS, start_event},
        control::now,
    };

    #[tokio::test]
    async fn what_is_too_much_is_told_with_the_hash_that_the_next_line_follows() {
        let place = tempfile::tempdir().unwrap();
        let (log, _thread) = AuditLog::open(place.path(), AUDIT_LIMITS, None, now(), start_event("test")).unwrap();
        for _ in 0..40 {
            log.record(now(), Event::own(Kind::Change, "something")).await.unwrap();
        }
        let (copier, head) = (Copier { reader: log.reader(), copied: None }, log.head());
        let copies = copier.next(10, head).unwrap();
        assert_eq!((copies.len(), number_of(&copies[0]), number_of(copies.last().unwrap())), (31, 11, 41));
        assert_eq!(copier.next(10, Head { number: 12, ..head }).unwrap().len(), 2, "what is not on disk is not copied");
        // As if it were far behind.
        let far = Copier { reader: log.reader(), copied: None }.next(0, Head { number: BEHIND_MAX + 30, ..head }).unwrap();
        assert_eq!(far, [], "those lines are not there");
        let all = log.reader().first(&AuditQuery::default(), 100).unwrap();
        let has = |number: u64, hash| copier.has(Head { number, hash });
        assert!(has(41, head.hash) && has(5, all[5].entry.previous));
        assert!(!has(5, head.hash) && !has(42, head.hash), "it is another log");
    }
}
