//! What an operator is: a function from events to an event, with a state of its own or none.

use super::spec::INPUTS_MAX;

/// A function that a graph runs. It is called by one thread at a time, allocates nothing once it has seen its largest input, and sees no clock: times are those at
/// which events were made, so that the same events give the same result wherever they are processed again.
///
/// How one is written, with an example: `docs/design/graphs.md`.
pub trait Operator: Send {
    /// Takes the events of one round, and appends the payload of the result to `out`, which is empty. Of a result that is not emitted what was written is dropped.
    ///
    /// Payloads have the shapes that the operator was made for.
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault>;

    /// Appends what [`restore`](Self::restore) needs to go on from here; nothing if the operator has no state.
    fn save(&self, _state: &mut Vec<u8>) {}

    /// Returns the restarts from start values since the last call.
    ///
    /// An operator restarts when its state is no longer usable, for example not finite.
    fn take_restarts(&mut self) -> u64 {
        0
    }

    /// Goes on from a state that another instance, made with the same parameters, has saved. A state that is refused changes nothing.
    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        if state.is_empty() { Ok(()) } else { Err(StateError) }
    }
}

/// Whether there is a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emission {
    /// There is one.
    Emit,
    /// Not of these events: a filter has held them back. Who hears the output is told that nothing was lost.
    Nothing,
}

/// Why an operator has no result. The events are counted as refused, and the operator goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// What an input holds is not what was promised.
    #[error("input {input} {what}")]
    Input {
        /// Which one, from 0 on.
        input: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The result cannot be written.
    #[error("{0}")]
    Result(&'static str),
}

/// A state that was not saved by an operator with the same parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no state of an operator with these parameters")]
pub struct StateError;

/// An event as an operator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'e> {
    /// Its points.
    pub payload: &'e [u8],
    /// When it was made, in nanoseconds: of a supplier's event its creation, of a result the latest of what it was made of.
    pub created_ns: u64,
    /// Who published it, by the number of the system; of a result, who published the event that it is named after.
    pub publisher: u64,
}

/// The events of one round, by input. An input of a window has several, the oldest first; of an operator that runs at any event, all other inputs have none.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'e> {
    events: &'e [Event<'e>],
    /// Where the events of each input end.
    ends: [u16; INPUTS_MAX],
    inputs: u8,
}

impl<'e> Inputs<'e> {
    /// So many events of each input, one input behind the other.
    ///
    /// # Panics
    /// If there are more than [`INPUTS_MAX`] inputs, or the counts do not sum up to the events.
    pub fn new(events: &'e [Event<'e>], counts: &[u16]) -> Self {
        let mut ends = [0; INPUTS_MAX];
        let mut end = 0;
        for (place, count) in ends[..counts.len()].iter_mut().zip(counts) {
            end += count;
            *place = end;
        }
        assert_eq!(usize::from(end), events.len(), "every event belongs to an input");
        Self { events, ends, inputs: counts.len() as u8 }
    }

    /// How many inputs there are.
    pub fn count(&self) -> usize {
        usize::from(self.inputs)
    }

    /// Events of an input, the oldest first.
    pub fn of(&self, input: usize) -> &'e [Event<'e>] {
        let begin = if input == 0 { 0 } else { self.ends[input - 1] };
        &self.events[usize::from(begin)..usize::from(self.ends[..self.count()][input])]
    }

    /// The newest event of an input, if it has one.
    pub fn newest(&self, input: usize) -> Option<&'e Event<'e>> {
        self.of(input).last()
    }

    /// All events, input by input.
    pub fn all(&self) -> &'e [Event<'e>] {
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_by_their_input() {
        let made: Vec<[u8; 1]> = (0..4).map(|n| [n]).collect();
        let events: Vec<Event<'_>> =
            made.iter().map(|payload| Event { payload, created_ns: u64::from(payload[0]), publisher: 0 }).collect();
        let inputs = Inputs::new(&events, &[2, 0, 1, 1]);
        let times = |input| inputs.of(input).iter().map(|event| event.created_ns).collect::<Vec<_>>();
        assert_eq!([times(0), times(1), times(2), times(3)], [vec![0, 1], vec![], vec![2], vec![3]]);
        assert_eq!((inputs.count(), inputs.newest(0).map(|event| event.created_ns), inputs.newest(1)), (4, Some(1), None));
    }
}
