//! Which configurations each part of the series has.

use super::configuration::{Configuration, UseCase};
use crate::options::{Form, Part};

/// Workers in the thesis.
const WORKERS: [u32; 5] = [1, 2, 4, 8, 10];
/// And beyond it.
const MORE_WORKERS: [u32; 2] = [16, 32];
/// Numbers that it looks at, and further ones of its weak scaling (workers, numbers).
const NUMBERS: [u32; 5] = [1000, 2000, 3000, 4000, 10_000];
const WEAK: [(u32, u32); 3] = [(4, 8000), (8, 8000), (8, 16_000)];
const PASSAGES: [u32; 4] = [1, 2, 3, 4];
/// Ten times its largest input, and ten of its texts.
const MORE_NUMBERS: u32 = 100_000;
const COPIES: u32 = 10;
/// Tasks of a real grain.
const TASKS: u32 = 400;
const TASK_US: u32 = 200_000;

/// The configurations of a part in these forms. A form that a use case does not have is left out.
pub fn configurations(part: Part, forms: &[Form]) -> Vec<Configuration> {
    match part {
        Part::Tables => [primes(forms), words(forms)].concat(),
        Part::Beyond => beyond(forms),
        Part::Grain => {
            let use_case = UseCase::Primes { numbers: TASKS, work_us: TASK_US };
            all_workers().map(|workers| Configuration { use_case, form: Form::Farm, workers }).collect()
        }
    }
}

fn all_workers() -> impl Iterator<Item = u32> {
    WORKERS.into_iter().chain(MORE_WORKERS)
}

fn primes(forms: &[Form]) -> Vec<Configuration> {
    let strong = NUMBERS.into_iter().flat_map(|numbers| WORKERS.map(|workers| (workers, numbers)));
    let inputs: Vec<_> = strong.chain(WEAK).collect();
    let of = |form: &Form| {
        let configuration = |(workers, numbers): &(u32, u32)| Configuration {
            use_case: UseCase::Primes { numbers: *numbers, work_us: 0 },
            form: *form,
            workers: *workers,
        };
        inputs.iter().map(configuration).collect::<Vec<_>>()
    };
    forms.iter().flat_map(of).collect()
}

/// Passages are the original's; the farm makes its own.
fn words(forms: &[Form]) -> Vec<Configuration> {
    let passages = |form| if form == Form::Original { &PASSAGES[..] } else { &PASSAGES[..1] };
    let of = |form: &Form| {
        let form = *form;
        let configuration = move |passages: u32, workers| Configuration { use_case: UseCase::Words { passages, copies: 1 }, form, workers };
        passages(form).iter().flat_map(move |passages| WORKERS.map(|workers| configuration(*passages, workers))).collect::<Vec<_>>()
    };
    forms.iter().filter(|form| **form != Form::Joined).flat_map(of).collect()
}

fn beyond(forms: &[Form]) -> Vec<Configuration> {
    let mut all = Vec::new();
    for form in forms.iter().copied() {
        let large = all_workers().map(|workers| (workers, MORE_NUMBERS));
        for (workers, numbers) in MORE_WORKERS.map(|workers| (workers, 10_000)).into_iter().chain(large) {
            all.push(Configuration { use_case: UseCase::Primes { numbers, work_us: 0 }, form, workers });
        }
        let use_case = UseCase::Words { passages: COPIES, copies: COPIES };
        all.extend(all_workers().filter(|_| form != Form::Joined).map(|workers| Configuration { use_case, form, workers }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thesis_has_48_configurations() {
        let original = configurations(Part::Tables, &[Form::Original]);
        assert_eq!(original.len(), 48);
        assert!((0..48).all(|at| !original[..at].contains(&original[at])), "none is there twice");
        assert_eq!(configurations(Part::Tables, &[Form::Farm]).len(), 28 + 5);
        assert_eq!(configurations(Part::Tables, &[Form::Joined]).len(), 28);
    }

    #[test]
    fn what_is_beyond_is_not_in_the_tables() {
        let forms = [Form::Original, Form::Joined, Form::Farm];
        let tables = configurations(Part::Tables, &forms);
        let beyond = configurations(Part::Beyond, &forms);
        assert!(beyond.iter().all(|configuration| !tables.contains(configuration)));
        assert_eq!(beyond.len(), 3 * 9 + 2 * 7);
        assert_eq!(configurations(Part::Grain, &forms).len(), 7);
    }
}
