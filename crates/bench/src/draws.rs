//! Random numbers that a seed repeats: Steele, Lea, Flood: SplitMix64 (OOPSLA 2014).

/// The numbers of one seed, one after the other.
#[derive(Debug, Clone)]
pub struct Draws {
    state: u64,
}

impl Draws {
    /// Those of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Any number, each as likely.
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One below `limit`, which is at least 1.
    pub fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "there is no number below 0");
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// True in this share of cases.
    pub fn chance(&mut self, share: f64) -> bool {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64 <= share && share > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_numbers_and_they_are_spread() {
        let numbers = |seed| {
            std::iter::repeat_with({
                let mut draws = Draws::new(seed);
                move || draws.below(10)
            })
            .take(10_000)
            .collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        for digit in 0..10 {
            let count = numbers(7).into_iter().filter(|number| *number == digit).count();
            assert!((900..1100).contains(&count), "{count} times {digit}");
        }
    }

    #[test]
    fn a_chance_is_taken_as_often_as_it_says() {
        let mut draws = Draws::new(3);
        let taken = (0..10_000).filter(|_| draws.chance(0.25)).count();
        assert!((2300..2700).contains(&taken), "{taken}");
        assert!(!(0..1000).any(|_| draws.chance(0.0)) && (0..1000).all(|_| draws.chance(1.0)));
    }
}
