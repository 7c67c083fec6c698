//! What is run: a use case of the thesis in one of its forms, with so many workers.

use super::cell::Call;
use super::programs::Programs;
use crate::options::Form;

/// The master's address, and its port; a worker's address ends in its own number.
const MASTER: &str = "fe80::ff:fe00:1";
const PORT: u32 = 5555;
/// Primes are counted from here on.
const FIRST_NUMBER: u32 = 1001;
/// Words of the text.
const WORDS: u64 = 1345;

/// The work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseCase {
    /// Primes among so many numbers; each takes so much longer than the division of it does.
    Primes { numbers: u32, work_us: u32 },
    /// Words of so many copies of the text, in so many passages for each worker.
    Words { passages: u32, copies: u32 },
}

/// A use case, how it is spoken, and among how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configuration {
    pub use_case: UseCase,
    pub form: Form,
    pub workers: u32,
}

impl Configuration {
    /// The master's call and the workers'.
    pub fn calls<'a>(&self, programs: &'a Programs) -> Vec<Call<'a>> {
        let form = self.form.name();
        let (program, numbers, work_us) = match self.use_case {
            UseCase::Primes { numbers, work_us } => {
                (&programs.prime_count, vec![numbers, PORT], Some(work_us).filter(|work_us| *work_us > 0))
            }
            UseCase::Words { passages, copies } => (&programs.word_count, vec![passages, PORT, copies], None),
        };
        let mut master = vec!["master".to_string(), form.to_string(), self.workers.to_string()];
        master.extend(numbers.iter().map(u32::to_string));
        let mut worker = vec!["worker".to_string(), form.to_string(), MASTER.to_string(), PORT.to_string()];
        worker.extend(work_us.map(|work_us| work_us.to_string()));
        let call = |arguments| Call { program, arguments };
        std::iter::once(call(master)).chain((0..self.workers).map(|_| call(worker.clone()))).collect()
    }

    /// What has to be counted.
    pub fn expected(&self) -> u64 {
        match self.use_case {
            UseCase::Primes { numbers, .. } => primes(numbers),
            UseCase::Words { copies, .. } => WORDS * u64::from(copies),
        }
    }

    /// In words.
    pub fn label(&self) -> String {
        let of = match self.use_case {
            UseCase::Primes { numbers, work_us: 0 } => format!("primes among {numbers}"),
            UseCase::Primes { numbers, work_us } => format!("{numbers} tasks of {} ms", work_us / 1000),
            UseCase::Words { copies: 1, passages } if self.form == Form::Original => format!("words, {passages} passages each"),
            UseCase::Words { copies: 1, .. } => "words".to_string(),
            UseCase::Words { copies, .. } => format!("words of {copies} texts"),
        };
        let workers = if self.workers == 1 { "1 worker".to_string() } else { format!("{} workers", self.workers) };
        format!("{of}, {}, {workers}", self.form.name())
    }
}

/// Primes among so many numbers from [`FIRST_NUMBER`] on, by the sieve of Eratosthenes.
fn primes(numbers: u32) -> u64 {
    let end = (FIRST_NUMBER + numbers) as usize;
    let mut is_composite = vec![false; end];
    for factor in (2..end).take_while(|factor| factor * factor < end) {
        (factor * factor..end).step_by(factor).for_each(|multiple| is_composite[multiple] = true);
    }
    is_composite[FIRST_NUMBER as usize..].iter().filter(|is_composite| !**is_composite).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thesis_inputs_have_the_primes_that_they_have() {
        let counts = [1000, 2000, 3000, 4000, 10_000].map(primes);
        assert_eq!(counts, [135, 262, 382, 501, 1167]);
    }

    #[test]
    fn a_call_says_what_the_programs_take() {
        let programs = Programs::of("p".into(), "w".into());
        let arguments = |configuration: Configuration| {
            configuration.calls(&programs).into_iter().map(|call| call.arguments.join(" ")).collect::<Vec<_>>()
        };
        let primes = Configuration { use_case: UseCase::Primes { numbers: 100, work_us: 200_000 }, form: Form::Farm, workers: 2 };
        let worker = "worker farm fe80::ff:fe00:1 5555 200000";
        assert_eq!(arguments(primes), ["master farm 2 100 5555", worker, worker]);
        let words = Configuration { use_case: UseCase::Words { passages: 3, copies: 1 }, form: Form::Original, workers: 1 };
        assert_eq!(arguments(words), ["master original 1 3 5555 1", "worker original fe80::ff:fe00:1 5555"]);
        assert_eq!((words.expected(), words.label()), (1345, "words, 3 passages each, original, 1 worker".to_string()));
    }
}
