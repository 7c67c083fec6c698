//! Which of several things happened within a time.

use bodkin_broker::graph::{Count, Element, Emission, Event, Fault, Inputs, Operator, Shape, StateError, Trigger};

use crate::{
    catalogue::{Input, Kind, Made, Misfit, demand},
    parameters::{ParameterError, Parameters, error},
};

/// Publishers that a filter names at most.
const SOURCES_MAX: usize = 64;

/// `all`: comes true when something has happened at every input, the first and the last `within` (a time with its unit) of each other, by the times at which the events
/// were made. What has been used is not used again.
///
/// An event counts as having happened if its first point is a number other than 0; of json and bytes, if there is any; and, where `sources` is there, if its publisher is one of these
/// (numbers of systems in the registry). Inputs: 2 to 16, of any shapes, in any order. Result: `u8[inputs]`, all 1. State: when it last happened at each input. Source: Wang 2019, section 2.5
/// (conjunction and disjunction of TAO's event channel).
pub const ALL: Kind =
    Kind { name: "all", inputs: 2..=16, trigger: Trigger::Any, make: |parameters, inputs| make(parameters, inputs, true) };

/// `any`: comes true with each event that counts, as in [`ALL`]. Result: `u8[inputs]`, 1 for each input where it has happened `within` of that event; without `within`,
/// for that one alone.
pub const ANY: Kind =
    Kind { name: "any", inputs: 1..=16, trigger: Trigger::Any, make: |parameters, inputs| make(parameters, inputs, false) };

struct Correlate {
    elements: Vec<Element>,
    within_ns: u64,
    needs_all: bool,
    sources: Vec<u64>,
    /// When it last happened at each input.
    happened_ns: Vec<Option<u64>>,
    points: Vec<f64>,
}

fn make(parameters: &mut Parameters, inputs: &[Input], needs_all: bool) -> Result<Made, Misfit> {
    let is_timed = needs_all || ["within_us", "within_ms", "within_s"].iter().any(|key| parameters.has(key));
    let within_ns = if is_timed { parameters.time("within", None)?.get().unsigned_abs() } else { 0 };
    let sources = sources(parameters)?;
    demand(inputs, |input| input.events == 1, "events are correlated one by one")?;
    let count = u32::try_from(inputs.len()).expect("inputs are few");
    let shape = Shape::new(Element::U8, Count::Exactly(count)).map_err(Misfit::Result)?;
    let points = inputs.iter().map(|input| input.shape.points_max()).max().unwrap_or(0);
    let elements = inputs.iter().map(|input| input.shape.element()).collect();
    let happened_ns = vec![None; inputs.len()];
    Ok(Made::new(Correlate { elements, within_ns, needs_all, sources, happened_ns, points: Vec::with_capacity(points * 2) }, shape))
}

fn sources(parameters: &mut Parameters) -> Result<Vec<u64>, ParameterError> {
    if !parameters.has("sources") {
        return Ok(Vec::new());
    }
    let numbers = parameters.numbers("sources", 1..=SOURCES_MAX)?;
    let whole = |number: &f64| *number >= 0.0 && number.fract() == 0.0 && *number < 9e15;
    if !numbers.iter().all(whole) {
        return Err(error("sources", "must be a list of numbers of systems"));
    }
    Ok(numbers.into_iter().map(|number| number as u64).collect())
}

impl Correlate {
    fn counts(&mut self, input: usize, event: &Event<'_>) -> bool {
        let is_source = self.sources.is_empty() || self.sources.contains(&event.publisher);
        let element = self.elements[input];
        if !is_source || event.payload.len() < element.size_bytes() {
            return false;
        }
        if !element.is_real() {
            return true;
        }
        self.points.clear();
        element.read(&event.payload[..element.size_bytes()], &mut self.points);
        self.points[0] != 0.0 && !self.points[0].is_nan()
    }
}

impl Operator for Correlate {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        let mut at_ns = None;
        for input in 0..inputs.count() {
            for event in inputs.of(input) {
                if self.counts(input, event) {
                    let happened = &mut self.happened_ns[input];
                    *happened = Some(happened.map_or(event.created_ns, |before| before.max(event.created_ns)));
                    at_ns = Some(event.created_ns);
                }
            }
        }
        let Some(at_ns) = at_ns else { return Ok(Emission::Nothing) };
        if self.needs_all {
            let all = self.happened_ns.iter().copied();
            let (Some(first), Some(last)) = (all.clone().min().flatten(), all.max().flatten()) else { return Ok(Emission::Nothing) };
            if last - first > self.within_ns {
                return Ok(Emission::Nothing);
            }
            out.extend(self.happened_ns.iter().map(|_| 1));
            self.happened_ns.fill(None);
        } else {
            let near = |happened: &Option<u64>| happened.is_some_and(|happened| happened.abs_diff(at_ns) <= self.within_ns);
            out.extend(self.happened_ns.iter().map(|happened| u8::from(near(happened))));
            if self.within_ns == 0 {
                self.happened_ns.fill(None);
            }
        }
        Ok(Emission::Emit)
    }

    fn save(&self, state: &mut Vec<u8>) {
        for happened in &self.happened_ns {
            state.push(u8::from(happened.is_some()));
            state.extend_from_slice(&happened.unwrap_or_default().to_le_bytes());
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let (inputs, rest) = state.as_chunks::<9>();
        if !rest.is_empty() || inputs.len() != self.happened_ns.len() || inputs.iter().any(|input| input[0] > 1) {
            return Err(StateError);
        }
        for (happened, [is_there, at @ ..]) in self.happened_ns.iter_mut().zip(inputs) {
            *happened = (*is_there == 1).then(|| u64::from_le_bytes(*at));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, input, number};

    /// Events at (input, time in ms, value); what comes out of each.
    #[track_caller]
    fn check(kind: &Kind, within_ms: Option<f64>, script: &[(usize, u64, u8, Option<&[u8]>)]) {
        let parameters: Vec<_> = within_ms.map(|within_ms| ("within_ms", number(within_ms))).into_iter().collect();
        let inputs = [input("u8"), input("u8"), input("u8")];
        let mut bench = Bench::new(kind, &parameters, &inputs);
        for (at, made_ms, value, expected) in script {
            bench.now_ns = made_ms * 1_000_000;
            let payload: &[u8] = &[*value];
            let mut events: [&[&[u8]]; 3] = [&[], &[], &[]];
            let one = [payload];
            events[*at] = &one;
            assert_eq!(bench.run(&events), Ok(expected.map(<[u8]>::to_vec)), "input {at} at {made_ms} ms");
            // It goes on elsewhere from what it has saved.
            let mut saved = Vec::new();
            bench.operator.save(&mut saved);
            bench = Bench::new(kind, &parameters, &inputs);
            assert_eq!(bench.operator.restore(&saved), Ok(()));
        }
    }

    #[test]
    fn all_comes_true_when_everything_has_happened_within_the_time() {
        let all: Option<&[u8]> = Some(&[1, 1, 1]);
        check(&ALL, Some(50.0), &[(0, 0, 1, None), (1, 10, 1, None), (2, 50, 1, all), (0, 51, 1, None), (1, 52, 1, None)]);
        check(&ALL, Some(50.0), &[(0, 0, 1, None), (1, 10, 1, None), (2, 51, 1, None), (0, 60, 1, all)]);
        check(&ALL, Some(50.0), &[(0, 0, 1, None), (1, 10, 0, None), (2, 20, 1, None), (1, 50, 7, all)]);
        check(&ALL, Some(50.0), &[(2, 40, 1, None), (1, 0, 1, None), (0, 20, 1, all)]);
    }

    #[test]
    fn any_says_which_have_happened() {
        check(&ANY, None, &[(0, 0, 1, Some(&[1, 0, 0])), (1, 0, 0, None), (1, 0, 1, Some(&[0, 1, 0]))]);
        check(&ANY, Some(50.0), &[(0, 0, 1, Some(&[1, 0, 0])), (1, 50, 1, Some(&[1, 1, 0])), (2, 60, 1, Some(&[0, 1, 1]))]);
    }

    #[test]
    fn only_named_sources_count() {
        let sources = crate::parameters::Value::List(vec![number(7.0)]);
        let mut bench = Bench::new(&ANY, &[("sources", sources)], &[input("bytes[<=4]")]);
        assert_eq!(bench.run(&[&[b"x"]]), Ok(None));
        bench.publisher = 7;
        assert_eq!((bench.run(&[&[b"x"]]), bench.run(&[&[b""]])), (Ok(Some(vec![1])), Ok(None)));
        assert_eq!(bench.operator.restore(&[2; 9]), Err(StateError));
    }
}
