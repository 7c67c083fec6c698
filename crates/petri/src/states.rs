//! Every state that was met, once, under a number: packed bytes in one list, found again through an open table.
//!
//! A state is any string of bytes; the explorations decide what stands in it. Small numbers take one byte each ([`push_number`]), so
//! that a marking of sixteen places takes sixteen bytes and a million states some tens of megabytes.

use std::ops::Range;

/// Most states of one exploration unless the caller says otherwise: about 1 GB with their transitions.
pub const STATES_MAX_DEFAULT: usize = 4_000_000;

/// An entry of the table that is free.
const FREE: u64 = u64::MAX;

/// Numbered states.
pub struct States {
    bytes: Vec<u8>,
    /// Where each state ends in `bytes`.
    ends: Vec<usize>,
    /// The hash's upper half above the state's number; a power of two of them.
    table: Vec<u64>,
    /// Kept from one [`States::number_all`] to the next.
    looked: Vec<Looked>,
}

/// What was looked up for a state.
struct Looked {
    hash: u64,
    /// The table's first entry for the hash.
    entry: u64,
    /// Where the bytes of that entry's state are, if it may be the one; otherwise empty.
    place: Range<usize>,
}

impl Default for States {
    fn default() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), table: vec![FREE; 1024], looked: Vec::new() }
    }
}

impl States {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of the state of that number.
    pub fn get(&self, state: usize) -> &[u8] {
        &self.bytes[self.place(state)]
    }

    fn place(&self, state: usize) -> Range<usize> {
        let start = if state == 0 { 0 } else { self.ends[state - 1] };
        start..self.ends[state]
    }

    /// The number of a state, which is the next one if it is new.
    pub fn number(&mut self, state: &[u8]) -> u32 {
        self.make_room(1);
        self.number_hashed(state, hash(state))
    }

    /// Puts the numbers of several states behind `numbers`, as [`Self::number`] gives them; in `bytes` one stands behind the other, and each ends where `ends`
    /// says.
    ///
    /// A table of millions is not in the processor's caches. What is looked up for one state does not wait here for what is looked up for the one before.
    pub fn number_all(&mut self, bytes: &[u8], ends: &[usize], numbers: &mut Vec<u32>) {
        self.make_room(ends.len());
        let mut looked = std::mem::take(&mut self.looked);
        looked.clear();
        let starts = || std::iter::once(0).chain(ends.iter().copied());
        looked.extend(starts().zip(ends).map(|(start, end)| {
            let hash = hash(&bytes[start..*end]);
            Looked { hash, entry: self.table[self.first_slot(hash)], place: 0..0 }
        }));
        for looked in looked.iter_mut().filter(|looked| looked.entry != FREE && looked.entry >> 32 == looked.hash >> 32) {
            looked.place = self.place(looked.entry as u32 as usize);
        }
        for ((start, end), looked) in starts().zip(ends).zip(&looked) {
            let state = &bytes[start..*end];
            let is_it = !looked.place.is_empty() && self.bytes[looked.place.clone()] == *state;
            numbers.push(if is_it { looked.entry as u32 } else { self.number_hashed(state, looked.hash) });
        }
        self.looked = looked;
    }

    /// So many states find a free slot.
    fn make_room(&mut self, states: usize) {
        while (self.ends.len() + states) * 4 > self.table.len() * 3 {
            self.grow();
        }
    }

    fn number_hashed(&mut self, state: &[u8], hash: u64) -> u32 {
        let mut slot = self.first_slot(hash);
        loop {
            let entry = self.table[slot];
            if entry == FREE {
                break;
            }
            let number = entry as u32;
            if (entry >> 32) == (hash >> 32) && self.get(number as usize) == state {
                return number;
            }
            slot = (slot + 1) & (self.table.len() - 1);
        }
        let number = u32::try_from(self.ends.len()).expect("explorations are limited to fewer states than a u32 counts");
        self.table[slot] = (hash >> 32 << 32) | u64::from(number);
        self.bytes.extend_from_slice(state);
        self.ends.push(self.bytes.len());
        number
    }

    /// Bytes that the states and their table take.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + (self.ends.capacity() + self.table.capacity()) * 8
    }

    /// The table's slots are told apart by the half of the hash that the entries keep, so that growing reads no state.
    fn first_slot(&self, hash: u64) -> usize {
        let bits = self.table.len().trailing_zeros();
        ((hash >> 32) as usize).wrapping_mul(0x9E37_79B1) >> (32 - bits.min(32)) & (self.table.len() - 1)
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.table);
        self.table = vec![FREE; old.len() * 2];
        for entry in old.into_iter().filter(|entry| *entry != FREE) {
            let mut slot = self.first_slot(entry);
            while self.table[slot] != FREE {
                slot = (slot + 1) & (self.table.len() - 1);
            }
            self.table[slot] = entry;
        }
    }
}

/// A multiplicative hash, eight bytes at a time. States are the caller's own numbers: nobody can aim at its collisions from outside
/// but with a net, which costs only whoever analyses it.
fn hash(state: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = state.len() as u64;
    let mut words = state.chunks_exact(8);
    for word in &mut words {
        hash = (hash ^ u64::from_le_bytes(word.try_into().expect("it has eight bytes"))).wrapping_mul(FACTOR).rotate_left(29);
    }
    let rest = words.remainder().iter().fold(0, |rest, byte| rest << 8 | u64::from(*byte));
    hash = (hash ^ rest).wrapping_mul(FACTOR);
    (hash ^ hash >> 29).wrapping_mul(FACTOR)
}

/// Appends a number, seven bits a byte.
pub fn push_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends numbers one behind the other, each as [`push_number`] does.
pub fn push_numbers(bytes: &mut Vec<u8>, numbers: &[u32]) {
    if numbers.iter().all(|number| *number < 0x80) {
        bytes.extend(numbers.iter().map(|number| *number as u8));
    } else {
        numbers.iter().for_each(|number| push_number(bytes, *number));
    }
}

/// Takes the first number off bytes that [`push_number`] has written.
pub fn take_number(bytes: &mut &[u8]) -> u32 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().expect("a state ends behind its last number");
        *bytes = rest;
        number |= u32::from(first & 0x7F) << shift;
        if *first < 0x80 {
            return number;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_keeps_its_number_however_many_follow() {
        let mut states = States::default();
        let packed = |index: u32| {
            let mut bytes = Vec::new();
            [index, index / 7, index % 7].into_iter().for_each(|number| push_number(&mut bytes, number));
            bytes
        };
        for round in 0..2 {
            for index in 0..20_000 {
                assert_eq!(states.number(&packed(index)), index, "round {round}");
            }
        }
        assert_eq!((states.len(), states.get(12_345)), (20_000, packed(12_345).as_slice()));
    }

    #[test]
    fn states_are_numbered_together_as_one_by_one() {
        let (mut together, mut singly) = (States::default(), States::default());
        for first in (0..60_000_u32).step_by(7) {
            // Known ones, new ones, and some of either twice.
            let batch: Vec<u32> = (0..11).map(|index| (first + index * index * 37) % 50_000).chain([first, first]).collect();
            let (mut bytes, mut ends, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
            for value in &batch {
                push_numbers(&mut bytes, &[*value, value / 300, 5]);
                ends.push(bytes.len());
            }
            together.number_all(&bytes, &ends, &mut numbers);
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let expected: Vec<u32> = starts.zip(&ends).map(|(start, end)| singly.number(&bytes[start..*end])).collect();
            assert_eq!(numbers, expected, "from {first}");
        }
        assert_eq!(together.len(), singly.len());
        assert!((0..together.len()).all(|state| together.get(state) == singly.get(state)));
    }

    #[test]
    fn numbers_are_read_back() {
        let numbers = [0, 1, 127, 128, 300, 16_383, 16_384, u32::MAX];
        let mut bytes = Vec::new();
        numbers.into_iter().for_each(|number| push_number(&mut bytes, number));
        let mut all = Vec::new();
        push_numbers(&mut all, &numbers);
        assert_eq!(all, bytes);
        let mut rest = bytes.as_slice();
        assert_eq!(numbers.map(|_| take_number(&mut rest)), numbers);
        assert!(rest.is_empty());
    }
}
