//! What goes with an operator from one host to another: its state behind its last round, what waits at its inputs, and how far it has taken what it is made of.
//!
//! It is taken where nothing is under way in the part that the operator leaves ([`Machine::is_idle`](super::machine::Machine::is_idle)), and read where it has taken nothing yet. Publishers are told
//! apart by the edge that they are heard on, so that their numbers change on the way ([`super::placement::origin`]).

use super::{
    machine::{Lead, Waiting, WaitingEvent},
    placement::{
        EdgeId,
        origin::{self, NoOrigin},
    },
};
use crate::{
    event::{Incarnation, PublisherId, Sequence},
    wire::{
        WireError,
        codec::{Field, Reader},
    },
};

/// The form that this version writes and reads.
const FORM: u8 = 1;

/// An operator on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Of the file that says where it is now (the first eight bytes of its SHA-256).
    pub digest: u64,
    /// Its name.
    pub operator: String,
    /// The edge that it was on.
    pub from: String,
    /// What it has saved.
    pub state: Vec<u8>,
    /// What waits at its inputs.
    pub inputs: Vec<InputHandover>,
    /// The last event of each run that it has taken.
    pub taken: Vec<SourceTaken>,
}

/// What waits at an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputHandover {
    /// What comes in there, by its name in the whole graph: a supplier's topic or an operator.
    pub source: String,
    /// The events with their payloads.
    pub waiting: Waiting<(WaitingEvent, Vec<u8>)>,
}

/// How far a run of a source was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTaken {
    /// The source's name in the whole graph.
    pub source: String,
    /// Whose.
    pub publisher: PublisherId,
    /// In which numbering.
    pub incarnation: Incarnation,
    /// The last event.
    pub through: Sequence,
}

impl Handover {
    /// The bytes of it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        FORM.write(&mut out);
        self.digest.write(&mut out);
        (&*self.operator).write(&mut out);
        (&*self.from).write(&mut out);
        write_bytes(&self.state, &mut out);
        (self.inputs.len() as u16).write(&mut out);
        for InputHandover { source, waiting: Waiting { events, fresh, came } } in &self.inputs {
            (&**source).write(&mut out);
            fresh.write(&mut out);
            came.write(&mut out);
            (events.len() as u16).write(&mut out);
            for (event, payload) in events {
                write_event(event, &mut out);
                write_bytes(payload, &mut out);
            }
        }
        (self.taken.len() as u32).write(&mut out);
        for SourceTaken { source, publisher, incarnation, through } in &self.taken {
            (&**source).write(&mut out);
            publisher.write(&mut out);
            incarnation.write(&mut out);
            through.write(&mut out);
        }
        out
    }

    /// Reads the bytes of one.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        match u8::read(&mut reader, "form")? {
            FORM => {}
            found => return Err(WireError::Value { field: "form", expected: "1", found: found.into() }),
        }
        let digest = u64::read(&mut reader, "digest")?;
        let operator = <&str>::read(&mut reader, "operator")?.to_owned();
        let from = <&str>::read(&mut reader, "edge")?.to_owned();
        let state = read_bytes(&mut reader, "state")?;
        let count = u16::read(&mut reader, "inputs")?;
        let inputs = (0..count).map(|_| read_input(&mut reader)).collect::<Result<_, _>>()?;
        let count = u32::read(&mut reader, "runs")?;
        let taken = (0..count).map(|_| read_taken(&mut reader)).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Self { digest, operator, from, state, inputs, taken })
    }

    /// The same as publishers are called on the edge `to`, where it was taken on `from`; `made` says where the events of a source are made, of `edges` edges.
    pub fn arrived(mut self, from: EdgeId, to: EdgeId, edges: usize, made: impl Fn(&str) -> Option<EdgeId>) -> Result<Self, NoOrigin> {
        for InputHandover { source, waiting } in &mut self.inputs {
            for (event, _) in &mut waiting.events {
                event.lead = match made(source) {
                    Some(edge) if edge == from => {
                        Lead { publisher: origin::arrived(from, edges, event.lead.sender())?, branch: 0, ..event.lead }
                    }
                    Some(edge) if edge == to => {
                        let (publisher, branch) = origin::at_home(to, event.lead.publisher);
                        Lead { publisher, branch, ..event.lead }
                    }
                    _ => event.lead,
                };
            }
        }
        for taken in &mut self.taken {
            match made(&taken.source) {
                Some(edge) if edge == from => taken.publisher = origin::arrived(from, edges, taken.publisher)?,
                Some(edge) if edge == to => taken.publisher = origin::at_home(to, taken.publisher).0,
                _ => {}
            }
        }
        Ok(self)
    }
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    u32::try_from(bytes.len()).expect("a state and an event are far shorter").write(out);
    out.extend_from_slice(bytes);
}

fn read_bytes(reader: &mut Reader<'_>, field: &'static str) -> Result<Vec<u8>, WireError> {
    let length = u32::read(reader, field)?;
    reader.take(field, length as usize).map(<[u8]>::to_vec)
}

fn write_event(event: &WaitingEvent, out: &mut Vec<u8>) {
    let WaitingEvent { lead: Lead { publisher, incarnation, sequence, branch }, begin_ns, end_ns, is_marked, bytes: _ } = event;
    publisher.write(out);
    incarnation.write(out);
    sequence.write(out);
    branch.write(out);
    begin_ns.write(out);
    end_ns.write(out);
    is_marked.write(out);
}

fn read_input(reader: &mut Reader<'_>) -> Result<InputHandover, WireError> {
    let source = <&str>::read(reader, "source")?.to_owned();
    let (fresh, came) = (u16::read(reader, "new events")?, u64::read(reader, "the newest arrival")?);
    let count = u16::read(reader, "events of an input")?;
    let events = (0..count).map(|_| read_event(reader)).collect::<Result<_, _>>()?;
    Ok(InputHandover { source, waiting: Waiting { events, fresh, came } })
}

fn read_event(reader: &mut Reader<'_>) -> Result<(WaitingEvent, Vec<u8>), WireError> {
    let lead = Lead {
        publisher: PublisherId::read(reader, "a publisher")?,
        incarnation: Incarnation::read(reader, "an incarnation")?,
        sequence: Sequence::read(reader, "a sequence")?,
        branch: u8::read(reader, "a way")?,
    };
    let (begin_ns, end_ns) = (u64::read(reader, "a creation")?, u64::read(reader, "an end of validity")?);
    let is_marked = bool::read(reader, "a mark")?;
    let payload = read_bytes(reader, "a payload")?;
    let bytes = payload.len() as u32;
    Ok((WaitingEvent { lead, begin_ns, end_ns, is_marked, bytes }, payload))
}

fn read_taken(reader: &mut Reader<'_>) -> Result<SourceTaken, WireError> {
    Ok(SourceTaken {
        source: <&str>::read(reader, "source")?.to_owned(),
        publisher: PublisherId::read(reader, "publisher")?,
        incarnation: Incarnation::read(reader, "incarnation")?,
        through: Sequence::read(reader, "through")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRESS: usize = 0;
    const OFFICE: usize = 1;
    const EDGES: usize = 2;

    fn event(publisher: u64, branch: u8) -> (WaitingEvent, Vec<u8>) {
        let lead = Lead { publisher: PublisherId(publisher), incarnation: Incarnation(3), sequence: Sequence(4), branch };
        (WaitingEvent { lead, begin_ns: 5, end_ns: 6, is_marked: true, bytes: 2 }, vec![7, 8])
    }

    fn handover(source: &str, publisher: u64, branch: u8) -> Handover {
        let waiting = Waiting { events: vec![event(publisher, branch)], fresh: 1, came: 9 };
        let taken =
            SourceTaken { source: source.to_owned(), publisher: PublisherId(publisher), incarnation: Incarnation(3), through: Sequence(4) };
        let inputs = vec![InputHandover { source: source.to_owned(), waiting }];
        Handover { digest: 1, operator: "mean".to_owned(), from: "press".to_owned(), state: vec![1, 2, 3], inputs, taken: vec![taken] }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_shorter_is() {
        let handover = handover("smooth", 7, 2);
        let bytes = handover.encode();
        assert_eq!(Handover::decode(&bytes), Ok(handover));
        for length in 0..bytes.len() {
            assert!(Handover::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        let mut other = bytes;
        other[0] = 2;
        assert!(Handover::decode(&other).expect_err("another form").to_string().contains("form"));
    }

    /// Publishers of what waits and of what was taken, at the office, of a source that was taken at the press.
    fn at_the_office(made: usize, publisher: u64, branch: u8) -> (Lead, Vec<u64>) {
        let (press, office) = (EdgeId::of(PRESS), EdgeId::of(OFFICE));
        let arrived = handover("smooth", publisher, branch).arrived(press, office, EDGES, |_| Some(EdgeId::of(made))).expect("it arrives");
        (arrived.inputs[0].waiting.events[0].0.lead, arrived.taken.iter().map(|taken| taken.publisher.0).collect())
    }

    #[test]
    fn publishers_are_called_as_the_links_call_them() {
        let over = |publisher| origin::arrived(EdgeId::of(PRESS), EDGES, PublisherId(publisher)).expect("it is small").0;
        let (lead, taken) = at_the_office(PRESS, 7, 0);
        assert_eq!((lead.publisher.0, lead.branch, taken), (over(7), 0, vec![over(7)]));
        let (lead, _) = at_the_office(PRESS, 7, 2);
        assert_eq!((lead.publisher.0, lead.branch), (over(7 | 2 << 56), 0), "the way stays part of the name");
        // What was the office's own is its own again.
        let from_office = origin::arrived(EdgeId::of(OFFICE), EDGES, PublisherId(7 | 2 << 56)).expect("it is small").0;
        let (lead, taken) = at_the_office(OFFICE, from_office, 0);
        assert_eq!((lead.publisher.0, lead.branch, taken), (7, 2, vec![7]));
    }
}
