//! Every state that was met, once, under a number: packed bytes in one list, found again through an open table.
//!
//! A state is any string of bytes; the explorations decide what stands in it. Small numbers take one byte each ([`push_number`]), so
//! that a marking of sixteen places takes sixteen bytes and a million states some tens of megabytes.

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
}

impl Default for States {
    fn default() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), table: vec![FREE; 1024] }
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
        let start = if state == 0 { 0 } else { self.ends[state - 1] };
        &self.bytes[start..self.ends[state]]
    }

    /// The number of a state, which is the next one if it is new.
    pub fn number(&mut self, state: &[u8]) -> u32 {
        if self.ends.len() * 4 >= self.table.len() * 3 {
            self.grow();
        }
        let hash = hash(state);
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
    fn numbers_are_read_back() {
        let numbers = [0, 1, 127, 128, 300, 16_383, 16_384, u32::MAX];
        let mut bytes = Vec::new();
        numbers.into_iter().for_each(|number| push_number(&mut bytes, number));
        let mut rest = bytes.as_slice();
        assert_eq!(numbers.map(|_| take_number(&mut rest)), numbers);
        assert!(rest.is_empty());
    }
}
