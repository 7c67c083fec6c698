//! Samples at the instants of a clock, from samples at any time.

use bodkin_broker::graph::{Count, Element, Emission, Event, Fault, Inputs, Operator, Shape, StateError, Trigger};

use crate::{
    catalogue::{Input, Kind, Made, Misfit, demand},
    parameters::Parameters,
    points::write,
};

/// Samples of an input that are kept at the most.
const HISTORY_MAX: u32 = 1_024;
/// Rows that an event may give at the most.
const ROWS_MAX: u32 = 256;

/// `resample`: the points of all inputs at the whole multiples of `every` (a time with its unit) since 1970, each instant once every input has come as far. Between two
/// samples of an input it takes the straight line (`method = "linear"`, the default) or the earlier one (`"hold"`). One input is resampled, several are aligned.
///
/// Inputs: 1 to 16, of a fixed number of real points; an event is a sample of all its points at the time at which it was made. An event that was made before the last one of
/// its input is passed over. Result: `f64[<= rows * n]`, n the points of all inputs: one row for each instant that has been reached, the oldest first. More instants than
/// `rows` (16, at most 256) at once are passed over, the oldest, as are those for which an input has forgotten its samples: it keeps `history` (16, 2 to 1,024). State: the samples.
/// What is next to a NaN or an infinity is what the arithmetic makes of it.
pub const RESAMPLE: Kind = Kind { name: "resample", inputs: 1..=16, trigger: Trigger::Any, make };

/// Samples of one input, the oldest first.
struct History {
    element: Element,
    points: usize,
    /// When each was made; its points are at the same place in `values`.
    made_ns: Vec<u64>,
    values: Vec<f64>,
}

struct Resample {
    every_ns: u64,
    is_linear: bool,
    rows: usize,
    depth: usize,
    inputs: Vec<History>,
    /// The last instant of which there was a row.
    done_ns: Option<u64>,
}

fn make(parameters: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let every_ns = parameters.time("every", None)?.get().unsigned_abs();
    let is_linear = parameters.word("method", &[("linear", true), ("hold", false)], false)?;
    let rows = parameters.whole("rows", 1..=ROWS_MAX, Some(16))?;
    let depth = parameters.whole("history", 2..=HISTORY_MAX, Some(16))? as usize;
    let fits = |input: &Input| input.shape.element().is_real() && input.events == 1 && matches!(input.shape.count(), Count::Exactly(_));
    demand(inputs, fits, "resample takes events of a fixed number of real points one by one")?;
    let points: usize = inputs.iter().map(|input| input.shape.points_max()).sum();
    let count = u32::try_from(points).unwrap_or(u32::MAX).saturating_mul(rows);
    let shape = Shape::new(Element::F64, Count::AtMost(count)).map_err(Misfit::Result)?;
    let history = |input: &Input| {
        let points = input.shape.points_max();
        let (made_ns, values) = (Vec::with_capacity(depth), Vec::with_capacity((depth + 1) * points));
        History { element: input.shape.element(), points, made_ns, values }
    };
    let inputs = inputs.iter().map(history).collect();
    Ok(Made::new(Resample { every_ns, is_linear, rows: rows as usize, depth, inputs, done_ns: None }, shape))
}

impl History {
    fn take(&mut self, event: &Event<'_>, depth: usize) {
        if self.made_ns.last().is_some_and(|last| event.created_ns <= *last) {
            return;
        }
        if self.made_ns.len() == depth {
            self.made_ns.remove(0);
            self.values.drain(..self.points);
        }
        self.made_ns.push(event.created_ns);
        self.element.read(event.payload, &mut self.values);
    }

    /// Appends the points at an instant, which is not before the first sample and not behind the last.
    fn write(&self, at_ns: u64, is_linear: bool, out: &mut Vec<u8>) {
        let after = self.made_ns.partition_point(|made_ns| *made_ns <= at_ns);
        let sample = |place: usize| &self.values[place * self.points..(place + 1) * self.points];
        let (before_ns, before) = (self.made_ns[after - 1], sample(after - 1));
        if !is_linear || before_ns == at_ns {
            return write(out, before);
        }
        let share = (at_ns - before_ns) as f64 / (self.made_ns[after] - before_ns) as f64;
        before.iter().zip(sample(after)).for_each(|(before, after)| write(out, &[between(*before, *after, share)]));
    }
}

/// The point on the line from one point to another. Of two finite points it is finite.
fn between(before: f64, after: f64, share: f64) -> f64 {
    let difference = after - before;
    if difference.is_finite() { before + difference * share } else { before * (1.0 - share) + after * share }
}

impl Operator for Resample {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        let depth = self.depth;
        for (number, history) in self.inputs.iter_mut().enumerate() {
            inputs.of(number).iter().for_each(|event| history.take(event, depth));
        }
        let reached = self.inputs.iter().map(|input| input.made_ns.last()).min().flatten();
        let known = self.inputs.iter().map(|input| input.made_ns.first()).max().flatten();
        let (Some(reached_ns), Some(known_ns)) = (reached, known) else { return Ok(Emission::Nothing) };
        // In whole multiples.
        let last = reached_ns / self.every_ns;
        let first = known_ns.div_ceil(self.every_ns).max(self.done_ns.map_or(0, |done_ns| done_ns / self.every_ns + 1));
        if first > last {
            return Ok(Emission::Nothing);
        }
        let first = first.max((last + 1).saturating_sub(self.rows as u64));
        for instant in first..=last {
            self.inputs.iter().for_each(|input| input.write(instant * self.every_ns, self.is_linear, out));
        }
        self.done_ns = Some(last * self.every_ns);
        Ok(Emission::Emit)
    }

    fn save(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.done_ns.map_or(u64::MAX, |done_ns| done_ns).to_le_bytes());
        for input in &self.inputs {
            state.extend_from_slice(&(input.made_ns.len() as u64).to_le_bytes());
            input.made_ns.iter().for_each(|made_ns| state.extend_from_slice(&made_ns.to_le_bytes()));
            write(state, &input.values);
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let (words, rest) = state.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let done_ns = words.next().filter(|_| rest.is_empty()).ok_or(StateError)?;
        // Looked through once before anything is changed.
        let mut ahead = words.clone();
        for input in &self.inputs {
            let samples = ahead
                .next()
                .and_then(|samples| usize::try_from(samples).ok())
                .filter(|samples| *samples <= self.depth)
                .ok_or(StateError)?;
            let words = samples * (1 + input.points);
            if words > 0 && ahead.nth(words - 1).is_none() {
                return Err(StateError);
            }
        }
        if ahead.next().is_some() {
            return Err(StateError);
        }
        self.done_ns = (done_ns != u64::MAX).then_some(done_ns);
        for input in &mut self.inputs {
            let samples = words.next().expect("it was looked at") as usize;
            input.made_ns.clear();
            input.made_ns.extend(words.by_ref().take(samples));
            input.values.clear();
            input.values.extend(words.by_ref().take(samples * input.points).map(f64::from_bits));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Bench, bytes, input, number, numbers, text};

    fn bench(method: &str, inputs: &[&str]) -> Bench {
        let inputs: Vec<Input> = inputs.iter().map(|shape| input(shape)).collect();
        Bench::new(
            &RESAMPLE,
            &[("every_us", number(0.01)), ("method", text(method)), ("rows", number(4.0)), ("history", number(3.0))],
            &inputs,
        )
    }

    /// A sample of an input at a time in ns; the rows that come out.
    fn sample(bench: &mut Bench, inputs: usize, at: usize, made_ns: u64, points: &[f64]) -> Vec<f64> {
        bench.now_ns = made_ns;
        let payload = bytes(points);
        let one: [&[u8]; 1] = [&payload];
        let events: Vec<&[&[u8]]> = (0..inputs).map(|input| if input == at { one.as_slice() } else { &[] }).collect();
        bench.run(&events).expect("it runs").map(|rows| numbers(&rows)).unwrap_or_default()
    }

    #[test]
    fn instants_are_on_the_line_between_samples() {
        let mut bench = bench("linear", &["f64[2]"]);
        assert_eq!(sample(&mut bench, 1, 0, 5, &[0.0, 1.0]), [0.0; 0]);
        assert_eq!(sample(&mut bench, 1, 0, 15, &[10.0, 1.0]), [5.0, 1.0], "at 10 ns");
        assert_eq!(sample(&mut bench, 1, 0, 16, &[10.0, 1.0]), [0.0; 0]);
        assert_eq!(sample(&mut bench, 1, 0, 15, &[99.0, 9.0]), [0.0; 0], "an earlier one is passed over");
        assert_eq!(sample(&mut bench, 1, 0, 40, &[34.0, 1.0]), [14.0, 1.0, 24.0, 1.0, 34.0, 1.0], "at 20, 30 and 40 ns");
        assert_eq!(sample(&mut bench, 1, 0, 140, &[134.0, 1.0]), [104.0, 1.0, 114.0, 1.0, 124.0, 1.0, 134.0, 1.0], "the newest four");
    }

    #[test]
    fn several_inputs_are_aligned_once_all_have_come_as_far() {
        let mut bench = bench("hold", &["f64", "f64"]);
        assert_eq!(sample(&mut bench, 2, 0, 1, &[1.0]), [0.0; 0]);
        assert_eq!(sample(&mut bench, 2, 0, 12, &[2.0]), [0.0; 0]);
        assert_eq!(sample(&mut bench, 2, 1, 9, &[7.0]), [0.0; 0]);
        assert_eq!(sample(&mut bench, 2, 1, 25, &[8.0]), [1.0, 7.0], "at 10 ns; at 20 the other one is not there yet");
        assert_eq!(sample(&mut bench, 2, 0, 31, &[3.0]), [2.0, 7.0], "at 20 ns");
    }

    proptest! {
        #[test]
        fn it_goes_on_from_what_it_has_saved(gaps in prop::collection::vec((1u64..40, 0usize..2, -9.0..9.0f64), 1..40)) {
            let shapes = ["f64", "f64"];
            let (mut whole, mut other, mut now_ns) = (bench("linear", &shapes), bench("linear", &shapes), 0);
            for (gap, at, value) in gaps {
                now_ns += gap;
                let expected = sample(&mut whole, 2, at, now_ns, &[value]);
                let mut saved = Vec::new();
                other.operator.save(&mut saved);
                other = bench("linear", &shapes);
                prop_assert_eq!(other.operator.restore(&saved), Ok(()));
                prop_assert_eq!(sample(&mut other, 2, at, now_ns, &[value]), expected);
                saved.pop();
                prop_assert_eq!(other.operator.restore(&saved), Err(StateError));
            }
        }
    }
}
