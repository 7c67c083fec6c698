//! What a machine holds, as bytes from which another one of the same graph goes on: a consistent cut of the graph (Chandy and Lamport 1985; one thread sees all of it at once).
//!
//! Events are written by their slots; payloads and the states of operators, as they were behind the last round that is over, are the caller's. A round that runs is written as one that is still to
//! be run, on the same events: the operator's state does not know it yet. Bytes that do not fit the graph are refused, and nothing has changed then.

use super::{
    super::spec::{OperatorId, Source},
    Lead, Machine,
    inputs::Round,
    level::Move,
    node::{Node, Redo},
    progress::STREAMS_MAX,
    queue_len,
    store::{EventSlot, Record, Store},
};
use crate::{
    event::{Incarnation, PublisherId, Sequence},
    wire::{
        WireError,
        codec::{Field, Reader},
    },
};

/// Why bytes are not what a machine of this graph holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeldError {
    /// They cannot be read.
    #[error(transparent)]
    Bytes(#[from] WireError),
    /// They say what cannot be in this graph.
    #[error("{0} in this graph")]
    Graph(&'static str),
}

impl Machine {
    /// Appends what it holds to `out`; the events whose payloads belong to it are put into `held`, in the order in which [`Self::restore`] gives them.
    pub fn save(&self, held: &mut Vec<EventSlot>, out: &mut Vec<u8>) {
        held.clear();
        for level in &self.levels {
            held.extend(level.arrivals().chain(level.shares().map(|share| share.slot)));
        }
        for node in &self.nodes {
            held.extend(node.inputs.events());
            held.extend(node.round_to_run().into_iter().flat_map(|(_, events, _)| events));
        }
        held.sort_unstable();
        held.dedup();
        (held.len() as u32).write(out);
        for slot in held.iter() {
            let Record { lead, begin_ns, end_ns, bytes, is_marked, .. } = *self.store.record(*slot);
            slot.number().write(out);
            write_made(lead, begin_ns, end_ns, is_marked, out);
            bytes.write(out);
        }
        for level in &self.levels {
            (level.arrivals().len() as u32).write(out);
            level.arrivals().for_each(|slot| slot.number().write(out));
            (level.shares().len() as u32).write(out);
            for Move { reader, input, slot } in level.shares() {
                (reader.index() as u32).write(out);
                (input as u32).write(out);
                slot.number().write(out);
            }
        }
        self.nodes.iter().for_each(|node| save_node(node, out));
        for output in &self.outputs {
            output.shed.write(out);
            (output.follows.newest().len() as u32).write(out);
            output.follows.newest().for_each(|lead| write_lead(lead, out));
        }
    }

    /// Goes on from what another one has [saved](Self::save): the caller fills the slots that are in `held` then, gives the operators their states, and says [`Self::resume`].
    ///
    /// # Panics
    /// If this one has taken an event.
    pub fn restore(&mut self, bytes: &[u8], held: &mut Vec<EventSlot>) -> Result<(), HeldError> {
        assert_eq!(self.store.held(), 0, "a machine goes on from another one before it takes events");
        held.clear();
        let mut restored = self.clone();
        let mut reader = Reader::new(bytes);
        restored.read(&mut reader, held)?;
        reader.end()?;
        if held.iter().any(|slot| restored.store.holders(*slot) == 0) {
            return Err(HeldError::Graph("nobody holds one of the events"));
        }
        (0..restored.nodes.len()).for_each(|at| restored.enqueue(OperatorId::of(at)));
        restored.is_suspended = true;
        *self = restored;
        Ok(())
    }

    fn read(&mut self, reader: &mut Reader<'_>, held: &mut Vec<EventSlot>) -> Result<(), HeldError> {
        for _ in 0..u32::read(reader, "events")? {
            let number = u32::read(reader, "a slot")?;
            let slot = self.store.numbered(number).ok_or(HeldError::Graph("there is no such slot"))?;
            if held.last().is_some_and(|last| *last >= slot) {
                return Err(HeldError::Graph("slots are not in order"));
            }
            let source = self.store.record(slot).source;
            let Round { lead, begin_ns, end_ns, is_marked, .. } = read_made(reader)?;
            let bytes = u32::read(reader, "bytes")?;
            if !self.graph.shape(source).fits(bytes as usize) {
                return Err(HeldError::Graph("an event has another shape"));
            }
            self.store.adopt(slot, Record { source, lead, begin_ns, end_ns, bytes, is_marked });
            held.push(slot);
        }
        (0..self.levels.len()).try_for_each(|level| self.read_level(level, reader))?;
        (0..self.nodes.len()).try_for_each(|at| self.read_node(OperatorId::of(at), reader))?;
        for output in &mut self.outputs {
            output.shed = u32::read(reader, "shed results")?;
            let streams = u32::read(reader, "streams of an output")?;
            if streams as usize > STREAMS_MAX {
                return Err(HeldError::Graph("there are more streams than an output keeps apart"));
            }
            for _ in 0..streams {
                output.follows.advance(read_lead(reader)?);
            }
        }
        Ok(())
    }

    fn read_level(&mut self, level: usize, reader: &mut Reader<'_>) -> Result<(), HeldError> {
        const TOO_MANY: HeldError = HeldError::Graph("more events wait than may");
        for _ in 0..u32::read(reader, "arrivals")? {
            let slot = read_any_slot(reader, &self.store)?;
            let source = self.store.record(slot).source;
            let Source::Supplier(supplier) = source else { return Err(HeldError::Graph("a result arrives")) };
            if self.level_of(source) != level {
                return Err(HeldError::Graph("an event waits at another level"));
            }
            let (most, store) = (queue_len(&self.graph, self.policy, supplier), &self.store);
            if self.levels[level].arrive(slot, most, |other| store.record(other).source == source).is_some() {
                return Err(TOO_MANY);
            }
            self.store.hold(slot);
        }
        for _ in 0..u32::read(reader, "shared events")? {
            let reader_number = u32::read(reader, "an operator")? as usize;
            let input = u32::read(reader, "an input")? as usize;
            let edge = self.graph.operators().get(reader_number).and_then(|operator| operator.inputs.get(input));
            let edge = *edge.ok_or(HeldError::Graph("there is no such input"))?;
            let slot = read_slot(reader, &self.store, edge.from)?;
            if self.level_of(edge.from) != level || self.nodes[reader_number].level == level {
                return Err(HeldError::Graph("an event is shared by another level"));
            }
            let share = Move { reader: OperatorId::of(reader_number), input, slot };
            if self.levels[level].share(share, edge.usage.events()).is_some() {
                return Err(TOO_MANY);
            }
            self.store.hold(slot);
        }
        Ok(())
    }

    fn read_node(&mut self, operator: OperatorId, reader: &mut Reader<'_>) -> Result<(), HeldError> {
        let spec = self.graph.operator(operator);
        let node = &mut self.nodes[operator.index()];
        node.inputs.restore(spec, reader, &mut self.store)?;
        if !bool::read(reader, "whether a round runs")? {
            return Ok(());
        }
        let round = read_made(reader)?;
        let (mut events, mut counts) = std::mem::take(&mut node.spare);
        for edge in &spec.inputs {
            let count = u16::read(reader, "events of a round")?;
            if usize::from(count) > edge.usage.events() {
                return Err(HeldError::Graph("a round has more events than it may"));
            }
            counts.push(count);
            for _ in 0..count {
                let slot = read_slot(reader, &self.store, edge.from)?;
                self.store.hold(slot);
                events.push(slot);
            }
        }
        node.redo = Some(Redo { round, events, counts });
        Ok(())
    }

    /// The level at which a source's events are.
    fn level_of(&self, source: Source) -> usize {
        match source {
            Source::Supplier(supplier) => self.suppliers[supplier.index()].0,
            Source::Operator(operator) => self.nodes[operator.index()].level,
        }
    }
}

fn save_node(node: &Node, out: &mut Vec<u8>) {
    node.inputs.save(out);
    let round = node.round_to_run();
    round.is_some().write(out);
    let Some((round, events, counts)) = round else { return };
    write_made(round.lead, round.begin_ns, round.end_ns, round.is_marked, out);
    let mut events = events.iter();
    for count in counts {
        count.write(out);
        events.by_ref().take(usize::from(*count)).for_each(|slot| slot.number().write(out));
    }
}

fn write_made(lead: Lead, begin_ns: u64, end_ns: u64, is_marked: bool, out: &mut Vec<u8>) {
    write_lead(lead, out);
    begin_ns.write(out);
    end_ns.write(out);
    is_marked.write(out);
}

/// What is known of an event, or of a round and so of its result.
fn read_made(reader: &mut Reader<'_>) -> Result<Round, WireError> {
    Ok(Round {
        lead: read_lead(reader)?,
        begin_ns: u64::read(reader, "a creation")?,
        end_ns: u64::read(reader, "an end of validity")?,
        is_marked: bool::read(reader, "a mark")?,
        begun_ns: 0,
    })
}

fn write_lead(Lead { publisher, incarnation, sequence, branch }: Lead, out: &mut Vec<u8>) {
    publisher.write(out);
    incarnation.write(out);
    sequence.write(out);
    branch.write(out);
}

fn read_lead(reader: &mut Reader<'_>) -> Result<Lead, WireError> {
    Ok(Lead {
        publisher: PublisherId::read(reader, "a publisher")?,
        incarnation: Incarnation::read(reader, "an incarnation")?,
        sequence: Sequence::read(reader, "a sequence")?,
        branch: u8::read(reader, "a way")?,
    })
}

fn read_any_slot(reader: &mut Reader<'_>, store: &Store) -> Result<EventSlot, HeldError> {
    let slot = store.numbered(u32::read(reader, "a slot")?);
    slot.filter(|slot| store.is_taken(*slot)).ok_or(HeldError::Graph("there is no such event"))
}

/// A slot that holds an event of this source.
pub(super) fn read_slot(reader: &mut Reader<'_>, store: &Store, source: Source) -> Result<EventSlot, HeldError> {
    let slot = read_any_slot(reader, store)?;
    if store.record(slot).source == source { Ok(slot) } else { Err(HeldError::Graph("an event is of another source")) }
}
