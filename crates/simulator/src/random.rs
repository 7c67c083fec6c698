//! Randomness that a seed repeats: xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021),
//! its state filled by splitmix64.
//!
//! The simulator has a generator of its own because a run must be the same on every machine and with every version of every
//! library, for as long as somebody wants to repeat it.

/// A stream of numbers that its seed decides.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut mixed = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut mixed)) }
    }

    /// A stream of its own for one part of a run, so that what another part draws does not change it.
    pub fn fork(&mut self) -> Self {
        Self::new(self.number())
    }

    /// Any number, each as likely.
    pub fn number(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let number = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let mut next = [a ^ d ^ b, b ^ c ^ a, c ^ a ^ (b << 17), (d ^ b).rotate_left(45)];
        std::mem::swap(&mut self.state, &mut next);
        number
    }

    /// A number below `limit`, which is at least 1; each as likely, but for a bias of `limit / 2^64`.
    pub fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "there is no number below 0");
        ((u128::from(self.number()) * u128::from(limit)) >> 64) as u64
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        assert!(least <= most, "{least} is more than {most}");
        least + self.below((most - least).saturating_add(1))
    }

    /// True in `times` of `of` cases.
    pub fn chance(&mut self, times: u64, of: u64) -> bool {
        self.below(of) < times
    }

    /// One of `choices`, which are not empty.
    pub fn pick<C: Copy>(&mut self, choices: &[C]) -> C {
        choices[self.below(choices.len() as u64) as usize]
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_stream_and_another_does_not() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..8).map(|_| random.number()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn numbers_stay_in_their_range_and_reach_both_ends() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..200).map(|_| random.between(3, 6)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&6)));
        assert_eq!(random.between(5, 5), 5);
        assert_eq!(random.below(1), 0);
        let hits = (0..10_000).filter(|_| random.chance(1, 4)).count();
        assert!((2_300..2_700).contains(&hits), "{hits} of 10000 at one in four");
    }
}
