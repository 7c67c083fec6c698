//! An order in which every operator is behind what it needs.

use super::spec::{OperatorId, Source};

/// Operators that wait for each other: each for the one in front of it, the first for the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(pub Vec<OperatorId>);

/// Operators in an order in which each is behind all that it takes events from, otherwise as they were given (Kahn 1962). `inputs` are those of each operator.
///
/// # Panics
/// If an input is an operator that is not there.
pub fn order(inputs: &[Vec<Source>]) -> Result<Vec<OperatorId>, Cycle> {
    let needs = |operator: usize| {
        inputs[operator].iter().filter_map(|source| match source {
            Source::Operator(id) => Some(id.index()),
            Source::Supplier(_) => None,
        })
    };
    let mut is_placed = vec![false; inputs.len()];
    let mut placed = Vec::with_capacity(inputs.len());
    while placed.len() < inputs.len() {
        let before = placed.len();
        for operator in 0..inputs.len() {
            if !is_placed[operator] && needs(operator).all(|needed| is_placed[needed]) {
                is_placed[operator] = true;
                placed.push(OperatorId::of(operator));
            }
        }
        if placed.len() == before {
            let first = is_placed.iter().position(|placed| !placed).expect("some are not placed");
            return Err(cycle_from(first, |operator| needs(operator).find(|needed| !is_placed[*needed])));
        }
    }
    Ok(placed)
}

/// Goes upstream until an operator comes again; each that is asked has somebody upstream.
fn cycle_from(first: usize, upstream: impl Fn(usize) -> Option<usize>) -> Cycle {
    let mut path = vec![first];
    loop {
        let next = upstream(*path.last().expect("it begins with one")).expect("who is not placed waits for another one");
        if let Some(at) = path.iter().position(|operator| *operator == next) {
            let mut cycle: Vec<OperatorId> = path[at..].iter().map(|operator| OperatorId::of(*operator)).collect();
            cycle.reverse();
            return Cycle(cycle);
        }
        path.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::spec::SupplierId, *};

    fn check(inputs: &[&[usize]], expected: Result<&[usize], &[usize]>) {
        let ids = |ids: &[usize]| ids.iter().map(|id| OperatorId::of(*id)).collect::<Vec<_>>();
        let supplier = Source::Supplier(SupplierId::of(0));
        let inputs: Vec<Vec<Source>> =
            inputs.iter().map(|inputs| ids(inputs).into_iter().map(Source::Operator).chain([supplier]).collect()).collect();
        assert_eq!(order(&inputs), expected.map(ids).map_err(|cycle| Cycle(ids(cycle))), "{inputs:?}");
    }

    #[test]
    fn what_is_needed_comes_first() {
        check(&[], Ok(&[]));
        check(&[&[], &[]], Ok(&[0, 1]));
        check(&[&[1], &[2], &[]], Ok(&[2, 1, 0]));
        check(&[&[1, 2], &[3], &[3], &[]], Ok(&[3, 1, 2, 0]));
    }

    #[test]
    fn a_cycle_is_found_and_nothing_else_is_in_it() {
        check(&[&[0]], Err(&[0]));
        check(&[&[1], &[2], &[1]], Err(&[2, 1]));
        check(&[&[], &[3, 0], &[1], &[2]], Err(&[2, 3, 1]));
    }
}
