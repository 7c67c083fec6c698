//! What is in the stream of an edge, read back from it: each event once?

use std::{collections::BTreeMap, thread, time::Duration};

use anyhow::{Context, anyhow, bail, ensure};
use bodkin_nats::{
    lane::{Identity, Record, Records},
    protocol::{Headers, Subject, decode_base64},
};
use serde::Deserialize;
use serde_json::json;

use super::bare::Bare;

/// How often a message that is not given, as while the stream has no leader, is asked for again.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_millis(100);
/// The code of an answer that there is no further message.
const NO_MESSAGE: u64 = 10_037;

/// Events of a lane.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Those that are there, each counted once.
    pub events: u64,
    /// Those that are there again, or behind a later one.
    pub doubled: u64,
    /// Those that are told to be lost in front of the stream.
    pub lost: u64,
    /// The last number of each publisher's incarnation and topic.
    last: BTreeMap<(u64, u64, String), Option<u64>>,
}

#[derive(Deserialize)]
struct Answer {
    message: Option<Message>,
    error: Option<Error>,
}

#[derive(Deserialize)]
struct Error {
    #[serde(default)]
    err_code: u64,
    description: String,
}

#[derive(Deserialize)]
struct Message {
    seq: u64,
    hdrs: String,
    data: String,
}

impl Stored {
    /// Reads a subject, batch by batch.
    ///
    /// # Errors
    /// A message is no batch, a batch does not follow the one before it, or the servers do not answer.
    pub fn read(bare: &mut Bare, stream: &str, subject: &str) -> anyhow::Result<Self> {
        let (mut stored, mut lane) = (Self::default(), LaneReader::new(stream, subject)?);
        while lane.next(bare, |record| stored.take(record))? {}
        Ok(stored)
    }

    fn take(&mut self, record: Record<'_>) {
        let (topic, publisher, incarnation, sequence) = match record {
            Record::Lost { count, .. } => return self.lost += count,
            Record::Event { topic, publisher, incarnation, sequence, .. } => (topic, publisher, incarnation, sequence),
        };
        let last = self.last.entry((publisher, incarnation, topic.to_owned())).or_default();
        if last.is_none_or(|last| sequence > last) {
            *last = Some(sequence);
            self.events += 1;
        } else {
            self.doubled += 1;
        }
    }
}

/// Reads the batches of one lane, in their order.
#[derive(Debug)]
pub struct LaneReader {
    call: Subject,
    subject: String,
    from: u64,
    before: Option<Identity>,
}

impl LaneReader {
    /// Begins with the first batch.
    ///
    /// # Errors
    /// Returns an error if the stream's name is no part of a subject.
    pub fn new(stream: &str, subject: &str) -> anyhow::Result<Self> {
        let call = Subject::new(&format!("$JS.API.STREAM.MSG.GET.{stream}"))?;
        Ok(Self { call, subject: subject.to_owned(), from: 1, before: None })
    }

    /// Calls `take` with each record of the next batch; false if there is no further one yet.
    ///
    /// # Errors
    /// Returns an error if a message is no batch, a batch does not follow the one before it, or the servers do not answer.
    /// A batch that does not follow was taken; the next call continues after it.
    pub fn next(&mut self, bare: &mut Bare, mut take: impl FnMut(Record<'_>)) -> anyhow::Result<bool> {
        let Some(Message { seq, hdrs, data }) = next(bare, &self.call, &self.subject, self.from)? else { return Ok(false) };
        let identity = Identity::read(&Headers::read(&decode_base64(&hdrs)?)?)?;
        let before = self.before.replace(identity);
        self.from = seq + 1;
        for record in Records::new(&decode_base64(&data)?) {
            take(record?);
        }
        let follows = before.is_none_or(|Identity { epoch, last, .. }| identity.epoch > epoch || identity.first == last + 1);
        ensure!(follows, "{identity:?} does not follow {before:?}");
        Ok(true)
    }
}

/// The first message of a subject from this sequence on.
fn next(bare: &mut Bare, call: &Subject, subject: &str, from: u64) -> anyhow::Result<Option<Message>> {
    let body = json!({ "seq": from, "next_by_subj": subject }).to_string();
    let mut why = anyhow!("it was not asked");
    for _ in 0..TRIES {
        let answer = bare.ask(call, &Headers::default(), body.as_bytes())?;
        match serde_json::from_slice(&answer.payload).context("an answer of JetStream is not understood")? {
            Answer { message: Some(message), .. } => return Ok(Some(message)),
            Answer { error: Some(error), .. } if error.err_code == NO_MESSAGE => return Ok(None),
            Answer { error: Some(error), .. } => why = anyhow!(error.description),
            Answer { .. } => bail!("an answer of JetStream has neither a message nor an error"),
        }
        thread::sleep(PAUSE);
    }
    Err(why.context("a message cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_twice_is_counted_apart() {
        let mut stored = Stored::default();
        let event = |topic, sequence| Record::Event { topic, publisher: 1, incarnation: 1, sequence, created_ns: 0, payload: b"" };
        [("A", 0), ("B", 1), ("A", 2), ("A", 2), ("A", 1), ("A", 4)]
            .into_iter()
            .for_each(|(topic, sequence)| stored.take(event(topic, sequence)));
        stored.take(Record::Lost { topic: "A", count: 7 });
        assert_eq!((stored.events, stored.doubled, stored.lost), (4, 2, 7));
    }
}
