//! The numbers of a tunnel's messages: what a relay has lost, or sent again, is found out.

/// Where a message stands among those that came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is the next one.
    Next,
    /// It, or a later one, has come before.
    Again,
    /// So many in front of it have not come, and do not come any more: a queue keeps its order.
    Behind(u64),
}

/// The messages of one direction, which are numbered from 0 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    next: u64,
}

impl Numbers {
    /// The number of the next message.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Takes a message whose number is genuine.
    pub fn take(&mut self, number: u64) -> Place {
        match number.checked_sub(self.next) {
            None => Place::Again,
            Some(0) => {
                self.next += 1;
                Place::Next
            }
            Some(missing) => Place::Behind(missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_message_is_the_next_one_only_if_none_is_missing_and_none_twice(numbers in proptest::collection::vec(0..6_u64, 0..40)) {
            let (mut taken, mut known) = (Vec::new(), Numbers::default());
            for number in numbers {
                match known.take(number) {
                    Place::Next => taken.push(number),
                    Place::Again => prop_assert!(taken.contains(&number)),
                    Place::Behind(missing) => prop_assert_eq!(number, taken.len() as u64 + missing),
                }
            }
            prop_assert_eq!(known.next(), taken.len() as u64);
            prop_assert!(taken.iter().enumerate().all(|(at, number)| at as u64 == *number));
        }
    }
}
