//! Above or below, with hysteresis; and not too often.

use bodkin_broker::graph::{Element, Emission, Fault, Inputs, Operator, Shape, StateError, Trigger};

use crate::{
    catalogue::{Input, Kind, Made, Misfit, demand},
    parameters::{Parameters, error},
    points::read,
};

/// `threshold`: 1 from the point on that reaches `on`, 0 again from the one on that falls to `off` or below, which is at most `on` and the same where it is left out. It begins with 0. With
/// `when = "below"` it is the other way round: 1 from `on` or below, until `off` is reached. A NaN changes nothing.
///
/// Input: one, of real points. Result: `u8`, what it is behind the last point; with `emit = "changes"` (the default) only if that is another one than before, with
/// `"always"` of every event. State: 0 or 1.
pub const THRESHOLD: Kind = Kind { name: "threshold", inputs: 1..=1, trigger: Trigger::All, make: make_threshold };

/// `rate_limit`: lets an event pass if it was made `every` (a time with its unit) or more after the last one that passed. The clock is that of the events, so that the
/// same events pass wherever they are processed again.
///
/// Input: one, of any shape. Result: the event as it is. State: when the last one that passed was made.
pub const RATE_LIMIT: Kind = Kind { name: "rate_limit", inputs: 1..=1, trigger: Trigger::All, make: make_rate_limit };

struct Threshold {
    element: Element,
    /// 1 above, -1 below: what points are multiplied with.
    sign: f64,
    on: f64,
    off: f64,
    is_always: bool,
    is_on: bool,
    points: Vec<f64>,
}

fn make_threshold(parameters: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let sign = parameters.word("when", &[("above", 1.0), ("below", -1.0)], false)?;
    let on = parameters.number("on", None)? * sign;
    let off = parameters.number("off", Some(on * sign))? * sign;
    if off > on {
        return Err(error("off", "must not be past on: what is switched on there would be switched off at once").into());
    }
    let is_always = parameters.word("emit", &[("changes", false), ("always", true)], false)?;
    demand(inputs, |input| input.shape.element().is_real(), "threshold takes real points")?;
    let points = Vec::with_capacity(inputs[0].shape.points_max() * inputs[0].events);
    let shape = "u8".parse().expect("it is a shape");
    Ok(Made::new(Threshold { element: inputs[0].shape.element(), sign, on, off, is_always, is_on: false, points }, shape))
}

impl Operator for Threshold {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        let before = self.is_on;
        read(self.element, inputs.all(), &mut self.points);
        for point in self.points.iter().map(|point| point * self.sign) {
            if point >= self.on {
                self.is_on = true;
            } else if point <= self.off {
                self.is_on = false;
            }
        }
        out.push(u8::from(self.is_on));
        Ok(if self.is_always || self.is_on != before { Emission::Emit } else { Emission::Nothing })
    }

    fn save(&self, state: &mut Vec<u8>) {
        state.push(u8::from(self.is_on));
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        self.is_on = match state {
            [0] => false,
            [1] => true,
            _ => return Err(StateError),
        };
        Ok(())
    }
}

struct RateLimit {
    every_ns: u64,
    passed_ns: Option<u64>,
}

fn make_rate_limit(parameters: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let every_ns = parameters.time("every", None)?.get().unsigned_abs();
    demand(inputs, |input| input.events == 1, "rate_limit takes events one by one")?;
    let shape: Shape = inputs[0].shape;
    Ok(Made::new(RateLimit { every_ns, passed_ns: None }, shape))
}

impl Operator for RateLimit {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        let [event] = inputs.all() else { return Err(Fault::Input { input: 0, what: "has no event" }) };
        if self.passed_ns.is_some_and(|passed_ns| event.created_ns < passed_ns.saturating_add(self.every_ns)) {
            return Ok(Emission::Nothing);
        }
        self.passed_ns = Some(event.created_ns);
        out.extend_from_slice(event.payload);
        Ok(Emission::Emit)
    }

    fn save(&self, state: &mut Vec<u8>) {
        state.extend(self.passed_ns.iter().flat_map(|passed_ns| passed_ns.to_le_bytes()));
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        self.passed_ns = match state {
            [] => None,
            _ => Some(u64::from_le_bytes(state.try_into().map_err(|_| StateError)?)),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, bytes, input, number, text};

    #[track_caller]
    fn check(parameters: &[(&str, f64)], words: &[(&str, &str)], script: &[(&[f64], Option<u8>)]) {
        let numbers = parameters.iter().map(|(key, value)| (*key, number(*value)));
        let all: Vec<_> = numbers.chain(words.iter().map(|(key, word)| (*key, text(word)))).collect();
        let mut bench = Bench::new(&THRESHOLD, &all, &[input("f64[<=9]")]);
        for (points, expected) in script {
            assert_eq!(bench.run(&[&[&bytes(points)]]), Ok(expected.map(|value| vec![value])), "{points:?}");
        }
    }

    #[test]
    fn between_the_two_thresholds_nothing_changes() {
        let script: &[(&[f64], Option<u8>)] = &[
            (&[5.0], None),
            (&[9.9], None),
            (&[10.0], Some(1)),
            (&[7.0], None),
            (&[f64::NAN], None),
            (&[5.0], Some(0)),
            (&[9.0], None),
            (&[], None),
        ];
        check(&[("on", 10.0), ("off", 5.0)], &[], script);
        check(&[("on", 10.0), ("off", 5.0)], &[], &[(&[11.0, 4.0], None), (&[4.0, f64::INFINITY, 6.0], Some(1))]);
        check(
            &[("on", -10.0), ("off", -5.0)],
            &[("when", "below")],
            &[(&[-7.0], None), (&[-10.0], Some(1)), (&[-7.0], None), (&[-5.0], Some(0))],
        );
        check(&[("on", 1.0)], &[("emit", "always")], &[(&[0.0], Some(0)), (&[1.0], Some(1)), (&[2.0], Some(1))]);
    }

    #[test]
    fn thresholds_the_wrong_way_round_are_refused() {
        let mut parameters = Parameters::new([("on", 1.0), ("off", 2.0)].map(|(key, value)| (key.to_owned(), number(value))));
        let refused = make_threshold(&mut parameters, &[input("f64")]).map(drop).map_err(|misfit| misfit.to_string());
        assert_eq!(refused, Err("off must not be past on: what is switched on there would be switched off at once".to_owned()));
    }

    #[test]
    fn events_pass_by_the_time_at_which_they_were_made() {
        let mut bench = Bench::new(&RATE_LIMIT, &[("every_ms", number(1.0))], &[input("u8")]);
        let mut passed = |made_us: u64| {
            bench.now_ns = made_us * 1_000;
            bench.run(&[&[&[7]]]).expect("it runs").is_some()
        };
        assert_eq!([0, 999, 1_000, 1_500, 900, 2_000, 2_999, 9_000].map(&mut passed), [true, false, true, false, false, true, false, true]);
    }

    #[test]
    fn states_go_on() {
        let mut one = Bench::new(&RATE_LIMIT, &[("every_ms", number(1.0))], &[input("u8")]);
        let mut other = Bench::new(&RATE_LIMIT, &[("every_ms", number(1.0))], &[input("u8")]);
        one.now_ns = 5;
        one.run(&[&[&[7]]]).expect("it runs");
        let mut state = Vec::new();
        one.operator.save(&mut state);
        assert_eq!(other.operator.restore(&state), Ok(()));
        other.now_ns = 1_000_004;
        assert_eq!(other.run(&[&[&[7]]]), Ok(None));
        assert_eq!(other.operator.restore(&[1]), Err(StateError));
    }
}
