//! Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
//! SC 2011).
//!
//! A number is a function of a seed and of where it is used, and of nothing that happened before: which thread draws it, in which
//! order, and what else is drawn beside it changes nothing. So answers are the same for any number of threads, and two nets that
//! differ in one parameter meet the same luck.

/// Where numbers are used: in which run, by whom in it, and for which of its draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the run.
    pub run: u64,
    /// Who draws in it: the index of a transition, say; below [`STREAMS_MAX`].
    pub stream: u32,
    /// How many times this stream has drawn before in this run.
    pub draw: u32,
}

/// Streams of one run.
pub const STREAMS_MAX: u32 = 1 << (32 - BLOCK_BITS);

/// Bits of a counter's first word that number the blocks of a draw; the others are the stream.
const BLOCK_BITS: u32 = 15;

/// The numbers of one [`Place`], as many as a draw needs.
#[derive(Clone, Debug)]
pub struct Draws {
    key: [u32; 2],
    /// Stream and block within the draw, number of the draw, run (low, high).
    counter: [u32; 4],
    block: [u64; 2],
    used: usize,
}

impl Draws {
    /// The numbers of `place` under `seed`.
    #[inline]
    pub fn at(seed: u64, place: Place) -> Self {
        debug_assert!(place.stream < STREAMS_MAX, "stream {} is none", place.stream);
        let key = [seed as u32, (seed >> 32) as u32];
        let counter = [place.stream << BLOCK_BITS, place.draw, place.run as u32, (place.run >> 32) as u32];
        Self { key, counter, block: pairs(philox(key, counter)), used: 0 }
    }

    /// Any number of 64 bits, each as likely. A draw has 65,536 of them, then they repeat.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        if self.used == self.block.len() {
            self.next_block();
        }
        let bits = self.block[self.used];
        self.used += 1;
        bits
    }

    /// A number above 0 and below 1 with 53 bits, each as likely.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        const SPACING: f64 = 1.0 / (1_u64 << 53) as f64;
        ((self.bits() >> 11) as f64 + 0.5) * SPACING
    }

    #[cold]
    fn next_block(&mut self) {
        const BLOCK: u32 = (1 << BLOCK_BITS) - 1;
        self.counter[0] = (self.counter[0] & !BLOCK) | (self.counter[0].wrapping_add(1) & BLOCK);
        self.block = pairs(philox(self.key, self.counter));
        self.used = 0;
    }
}

fn pairs(block: [u32; 4]) -> [u64; 2] {
    [u64::from(block[0]) | u64::from(block[1]) << 32, u64::from(block[2]) | u64::from(block[3]) << 32]
}

/// Ten rounds of Philox over `counter`.
#[inline]
fn philox(mut key: [u32; 2], mut counter: [u32; 4]) -> [u32; 4] {
    for _ in 0..10 {
        let first = u64::from(counter[0]) * 0xd251_1f53;
        let second = u64::from(counter[2]) * 0xcd9e_8d57;
        counter = [(second >> 32) as u32 ^ counter[1] ^ key[0], second as u32, (first >> 32) as u32 ^ counter[3] ^ key[1], first as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the authors' Random123 library for this generator.
    #[test]
    fn the_generator_is_philox() {
        check([0; 2], [0; 4], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        check([u32::MAX; 2], [u32::MAX; 4], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let (key, counter) = ([0xa409_3822, 0x299f_31d0], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]);
        check(key, counter, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);

        fn check(key: [u32; 2], counter: [u32; 4], expected: [u32; 4]) {
            assert_eq!(philox(key, counter), expected);
        }
    }

    #[test]
    fn a_place_repeats_its_numbers_and_every_other_place_has_its_own() {
        let place = Place { run: 5_000_000_000, stream: 7, draw: 9 };
        let four = |seed, place| {
            let mut draws = Draws::at(seed, place);
            [draws.bits(), draws.bits(), draws.bits(), draws.bits()]
        };
        let here = four(1, place);
        assert_eq!(four(1, place), here);
        let others = [
            four(2, place),
            four(1 | 1 << 40, place),
            four(1, Place { run: place.run + 1, ..place }),
            four(1, Place { run: place.run & 0xffff_ffff, ..place }),
            four(1, Place { stream: 8, ..place }),
            four(1, Place { draw: 10, ..place }),
        ];
        for (index, other) in others.iter().enumerate() {
            assert!(here.iter().all(|number| !other.contains(number)), "place {index}");
        }
    }

    #[test]
    fn uniform_numbers_have_the_moments_of_uniform_numbers() {
        let count = 200_000_u32;
        let (mut sum, mut squares) = (0.0, 0.0);
        for draw in 0..count {
            let number = Draws::at(3, Place { run: 0, stream: 0, draw }).uniform();
            assert!(number > 0.0 && number < 1.0);
            sum += number;
            squares += number * number;
        }
        let (mean, square) = (sum / f64::from(count), squares / f64::from(count));
        assert!((mean - 0.5).abs() < 4.0 * (1.0_f64 / 12.0 / f64::from(count)).sqrt(), "mean {mean}");
        assert!((square - 1.0 / 3.0).abs() < 4.0 * (4.0_f64 / 45.0 / f64::from(count)).sqrt(), "mean square {square}");
    }
}
