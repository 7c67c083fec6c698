//! Events while a graph needs them: one instance each, in slots that are all there from the beginning.

use super::{
    super::spec::{Graph, OperatorId, Source, SupplierId},
    Lead,
};

/// Where an event's payload is: the host has a buffer for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventSlot(u32);

impl EventSlot {
    /// Its number, from 0 on.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) fn number(self) -> u32 {
        self.0
    }
}

/// What is known of an event besides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it comes from.
    pub source: Source,
    /// What it is named after.
    pub lead: Lead,
    /// From when on it is valid: the latest creation of what it was made of, in nanoseconds of UTC.
    pub begin_ns: u64,
    /// From when on it is no longer valid.
    pub end_ns: u64,
    /// Length of the payload.
    pub bytes: u32,
    /// Made of what was not valid, and marked as such.
    pub is_marked: bool,
}

#[derive(Clone, Debug)]
struct Slot {
    record: Record,
    /// When the last of the first operators began that it comes of; 0 of a supplier's event, and where that was on another node.
    begun_ns: u64,
    /// Who needs it: places of operators, rounds that run, queues.
    holders: u32,
}

/// All slots; each source has its own.
#[derive(Clone, Debug)]
pub(super) struct Store {
    slots: Vec<Slot>,
    free: Vec<Vec<EventSlot>>,
    suppliers: usize,
}

impl Store {
    /// `queued` is how many events of a supplier may wait to be taken.
    pub fn new(graph: &Graph, queued: impl Fn(SupplierId) -> usize) -> Self {
        let suppliers = (0..graph.suppliers().len()).map(|supplier| {
            let id = SupplierId::of(supplier);
            (Source::Supplier(id), queued(id) + 1)
        });
        let operators = (0..graph.operators().len()).map(|operator| (Source::Operator(OperatorId::of(operator)), 1));
        let mut store = Self { slots: Vec::new(), free: Vec::new(), suppliers: graph.suppliers().len() };
        for (source, own) in suppliers.chain(operators) {
            // Each reader may keep what a round needs in its place, as much in a round that runs, and as much on its way to it.
            let read = graph.readers(source).map(|(operator, input)| 3 * graph.operator(operator).inputs[input].usage.events());
            let count = own + read.sum::<usize>();
            let first = store.slots.len();
            let record = Record { source, lead: Lead::NONE, begin_ns: 0, end_ns: 0, bytes: 0, is_marked: false };
            store.slots.extend((0..count).map(|_| Slot { record, begun_ns: 0, holders: 0 }));
            let number = |slot: usize| EventSlot(u32::try_from(slot).expect("slots are far fewer"));
            store.free.push((first..first + count).rev().map(number).collect());
        }
        store
    }

    fn place(&self, source: Source) -> usize {
        match source {
            Source::Supplier(supplier) => supplier.index(),
            Source::Operator(operator) => self.suppliers + operator.index(),
        }
    }

    /// A slot for an event of a source, with one holder. There always is one: all places that may hold an event have theirs.
    pub fn take(&mut self, source: Source) -> EventSlot {
        let place = self.place(source);
        let slot = self.free[place].pop().expect("every place that holds an event has a slot");
        self.slots[slot.index()].holders = 1;
        slot
    }

    /// Says what the event in a slot is, and when the last of the first operators began that it comes of; 0 of a supplier's event.
    pub fn write(&mut self, slot: EventSlot, record: Record, begun_ns: u64) {
        let written = &mut self.slots[slot.index()];
        (written.record, written.begun_ns) = (record, begun_ns);
    }

    /// When the last of the first operators began that an event comes of; 0 of a supplier's event, and where that was on another node.
    pub fn begun_ns(&self, slot: EventSlot) -> u64 {
        self.slots[slot.index()].begun_ns
    }

    pub fn record(&self, slot: EventSlot) -> &Record {
        &self.slots[slot.index()].record
    }

    pub fn hold(&mut self, slot: EventSlot) {
        self.slots[slot.index()].holders += 1;
    }

    pub fn release(&mut self, slot: EventSlot) {
        let held = &mut self.slots[slot.index()];
        assert!(held.holders > 0, "slot {} is released once too often", slot.0);
        held.holders -= 1;
        if held.holders == 0 {
            let place = self.place(self.slots[slot.index()].record.source);
            self.free[place].push(slot);
        }
    }

    /// The slot of this number, if there is one.
    pub fn numbered(&self, number: u32) -> Option<EventSlot> {
        ((number as usize) < self.slots.len()).then_some(EventSlot(number))
    }

    /// Takes a free slot for an event that has no holder yet.
    pub fn adopt(&mut self, slot: EventSlot, record: Record) {
        let place = self.place(record.source);
        self.free[place].retain(|free| *free != slot);
        self.slots[slot.index()] = Slot { record, begun_ns: 0, holders: 0 };
    }

    /// Whether a slot holds an event.
    pub fn is_taken(&self, slot: EventSlot) -> bool {
        !self.free[self.place(self.record(slot).source)].contains(&slot)
    }

    /// How many hold an event.
    pub fn holders(&self, slot: EventSlot) -> u32 {
        self.slots[slot.index()].holders
    }

    /// Whose events each slot is for.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        self.slots.iter().map(|slot| slot.record.source)
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many slots are held.
    pub fn held(&self) -> usize {
        self.slots.len() - self.free.iter().map(Vec::len).sum::<usize>()
    }
}
