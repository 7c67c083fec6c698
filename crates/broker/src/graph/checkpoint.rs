//! Checkpoints: all that a graph is at an instant, as bytes for the Backup. Which instants, and what hangs on them: [`Cover`].
//!
//! A form byte (1), a digest of the graph's file, the names of the topics of which events are kept for the graph, how far it has taken each run of their publishers, what the
//! [machine](Machine::save) holds, the payloads of that, and for each operator its state behind its last round. `docs/formats/replica-link.md` has the table.

use super::{
    OperatorId, SupplierId, Taken,
    cover::Cover,
    machine::{EventSlot, HeldError, Machine},
};
use crate::{
    event::{Incarnation, PublisherId, Sequence},
    wire::{
        WireError,
        codec::{Field, Reader},
    },
};

/// The form of a checkpoint that this version writes and reads.
const FORM: u8 = 1;

/// Why a graph does not go on from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Its bytes are none of this form.
    #[error("it cannot be read: {0}")]
    Bytes(#[from] WireError),
    /// It is of a graph from another file.
    #[error("it is of a graph of this name from another file")]
    OtherGraph,
    /// What it holds cannot be in this graph.
    #[error("it does not fit the graph: {0}")]
    Held(#[from] HeldError),
}

/// A checkpoint whose head was read.
#[derive(Clone, Debug)]
pub struct Checkpoint<'a> {
    digest: u64,
    topics: Vec<&'a str>,
    taken: Vec<Taken>,
    held: &'a [u8],
    payloads_and_states: &'a [u8],
}

/// Appends the checkpoint of a graph whose file has this digest. `payload` appends that of an event, `state` that of an operator behind its last round; `held` is a buffer that is kept.
pub fn write(
    digest: u64,
    (machine, cover): (&Machine, &Cover),
    held: &mut Vec<EventSlot>,
    mut payload: impl FnMut(EventSlot, &mut Vec<u8>),
    mut state: impl FnMut(OperatorId, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let graph = machine.graph();
    FORM.write(out);
    digest.write(out);
    let kept = || graph.suppliers().iter().enumerate().filter(|(at, _)| cover.keeps(SupplierId::of(*at)));
    (kept().count() as u16).write(out);
    kept().for_each(|(_, supplier)| (&*supplier.topic).write(out));
    (cover.taken().count() as u32).write(out);
    for Taken { supplier, publisher, incarnation, through } in cover.taken() {
        (supplier.index() as u16).write(out);
        publisher.write(out);
        incarnation.write(out);
        through.write(out);
    }
    with_length(out, |out| machine.save(held, out));
    held.iter().for_each(|slot| payload(*slot, out));
    (0..graph.operators().len()).for_each(|at| with_length(out, |out| state(OperatorId::of(at), out)));
}

/// Appends what `write` appends behind its length in four bytes.
fn with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    0_u32.write(out);
    write(out);
    let length = u32::try_from(out.len() - at - 4).expect("a checkpoint is far shorter");
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

impl<'a> Checkpoint<'a> {
    /// Of the graph's file.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Reads the head.
    pub fn read(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        match u8::read(&mut reader, "form")? {
            FORM => {}
            found => return Err(WireError::Value { field: "form", expected: "1", found: found.into() }),
        }
        let digest = u64::read(&mut reader, "digest")?;
        let count = u16::read(&mut reader, "topics")?;
        let topics = (0..count).map(|_| <&str>::read(&mut reader, "topic")).collect::<Result<_, _>>()?;
        let count = u32::read(&mut reader, "runs")?;
        let taken = (0..count).map(|_| read_taken(&mut reader)).collect::<Result<_, _>>()?;
        let length = u32::read(&mut reader, "held")?;
        let held = reader.take("held", length as usize)?;
        Ok(Self { digest, topics, taken, held, payloads_and_states: Field::read(&mut reader, "payloads")? })
    }

    /// The topics of which events are kept for the graph.
    pub fn topics(&self) -> &[&'a str] {
        &self.topics
    }

    /// How far the graph had taken each run.
    pub fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// Has a graph at its beginning go on from here: `fill` is given the events that it holds, `restore` the operators' states. The machine begins nothing before it is [resumed](Machine::resume).
    pub fn restore(
        &self,
        digest: u64,
        (machine, cover): (&mut Machine, &mut Cover),
        mut fill: impl FnMut(EventSlot, &[u8]),
        mut restore: impl FnMut(OperatorId, &[u8]),
    ) -> Result<(), CheckpointError> {
        if digest != self.digest {
            return Err(CheckpointError::OtherGraph);
        }
        if self.taken.iter().any(|taken| taken.supplier.index() >= machine.graph().suppliers().len()) {
            return Err(HeldError::Graph("there is no such supplier").into());
        }
        let (mut restored, mut held) = (machine.clone(), Vec::new());
        restored.restore(self.held, &mut held)?;
        let mut reader = Reader::new(self.payloads_and_states);
        let payload = |slot: &EventSlot| reader.take("payload", restored.record(*slot).bytes as usize);
        let payloads: Vec<&[u8]> = held.iter().map(payload).collect::<Result<_, _>>()?;
        let state = |_| {
            let length = u32::read(&mut reader, "state")?;
            reader.take("state", length as usize)
        };
        let states: Vec<&[u8]> = (0..machine.graph().operators().len()).map(state).collect::<Result<_, _>>()?;
        reader.end()?;
        *machine = restored;
        cover.inherit(&self.taken);
        held.into_iter().zip(payloads).for_each(|(slot, payload)| fill(slot, payload));
        states.into_iter().enumerate().for_each(|(at, state)| restore(OperatorId::of(at), state));
        Ok(())
    }
}

fn read_taken(reader: &mut Reader<'_>) -> Result<Taken, WireError> {
    Ok(Taken {
        supplier: SupplierId::of(u16::read(reader, "supplier")?.into()),
        publisher: PublisherId::read(reader, "publisher")?,
        incarnation: Incarnation::read(reader, "incarnation")?,
        through: Sequence::read(reader, "through")?,
    })
}

#[cfg(test)]
mod tests;
