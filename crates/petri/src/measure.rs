//! What is asked of a net besides the tokens of its places.

use crate::{
    expression::{Expression, ExpressionError},
    net::Net,
};

/// What asks for a transition and not for the marking; its name follows, and a parenthesis.
const THROUGHPUT: &str = "throughput(";
const FIRINGS: &str = "firings(";

/// What the firings of a transition earn.
#[derive(Clone, Debug, PartialEq)]
pub struct Impulse {
    /// The transition's index in the net.
    pub transition: usize,
    /// What a firing earns, at least 0, in the marking that it fires in; none for 1.
    pub each: Option<Expression>,
}

impl Impulse {
    /// What a firing in this marking earns; no number where the expression gives less than 0 or none.
    pub(crate) fn earned(&self, marking: &[u32]) -> f64 {
        match self.each.as_ref().map_or(1.0, |each| each.value(marking)) {
            value if value >= 0.0 && value.is_finite() => value,
            _ => f64::NAN,
        }
    }

    /// Whether it is 1 a firing of a timed transition: what every method knows of its own.
    pub fn is_count_of_timed(&self, net: &Net) -> bool {
        self.each.is_none() && net.transitions()[self.transition].timed().is_some()
    }
}

/// A number whose expectation is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// A reward: an expression over the marking; of a condition the expectation is its probability.
    Reward(Expression),
    /// What firings earn per unit of time; of impulses of 1, how often a transition fires.
    Throughput(Impulse),
    /// What firings have earned since time 0, those at time 0 with them; of impulses of 1, how often a transition has fired.
    Firings(Impulse),
}

impl Measure {
    /// Reads `throughput(transition)`, `firings(transition)`, either with what a firing earns behind a comma, or an expression over the
    /// marking.
    ///
    /// # Errors
    /// What is wrong with the expression, or that there is no such transition.
    pub fn parse(text: &str, net: &Net) -> Result<Self, ExpressionError> {
        let text = text.trim();
        let Some((prefix, inside)) = [THROUGHPUT, FIRINGS].into_iter().find_map(|prefix| Some((prefix, argument(text, prefix, net)?)))
        else {
            return Expression::parse(text, &|name| net.place(name)).map(Self::Reward);
        };
        let impulse = impulse(inside, prefix, net)?;
        Ok(if prefix == FIRINGS { Self::Firings(impulse) } else { Self::Throughput(impulse) })
    }

    /// What it asks of firings, if it does.
    pub fn impulse(&self) -> Option<&Impulse> {
        match self {
            Self::Reward(_) => None,
            Self::Throughput(impulse) | Self::Firings(impulse) => Some(impulse),
        }
    }
}

/// What stands in the parentheses behind `prefix`, where they are the whole text: several counts are an expression.
fn argument<'a>(text: &'a str, prefix: &str, net: &Net) -> Option<&'a str> {
    let inside = text.strip_prefix(prefix)?.strip_suffix(')')?;
    if net.transition(inside.trim().trim_matches('"')).is_some() {
        return Some(inside);
    }
    let (mut depth, mut is_quoted) = (0_i32, false);
    for character in inside.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    Some(inside)
}

/// `transition`, or `transition, expression`.
fn impulse(inside: &str, prefix: &str, net: &Net) -> Result<Impulse, ExpressionError> {
    let refused = |reason: String| ExpressionError { column: prefix.len() + 1, reason };
    let known = |name: &str| net.transition(name.trim().trim_matches('"'));
    if let Some(transition) = known(inside) {
        return Ok(Impulse { transition, each: None });
    }
    // A comma in a name's quotation marks is the name's.
    let from = inside
        .trim_start()
        .strip_prefix('"')
        .and_then(|rest| rest.find('"'))
        .map_or(0, |length| inside.len() - inside.trim_start().len() + length + 2);
    let comma = inside[from..].find(',').map(|at| from + at);
    let name = &inside[..comma.unwrap_or(inside.len())];
    let transition = known(name).ok_or_else(|| refused(format!("{} is no transition of the net", name.trim().trim_matches('"'))))?;
    let Some(comma) = comma else { return Ok(Impulse { transition, each: None }) };
    let before = prefix.chars().count() + inside[..=comma].chars().count();
    let each = Expression::parse(&inside[comma + 1..], &|name| net.place(name));
    let each = each.map_err(|error| ExpressionError { column: before + error.column, reason: error.reason })?;
    Ok(Impulse { transition, each: Some(each) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::json;

    #[test]
    fn what_firings_earn_is_read_with_its_mistakes() {
        let net = json::read(
            r#"{"schema": "stpn-neutral-1", "name": "n", "time_unit": "s", "places": [{"id": "A", "initial": 2}],
            "transitions": [{"id": "go", "kind": "timed", "rate": "1", "inputs": [{"place": "A"}]},
                {"id": "a, b", "kind": "immediate", "inputs": [{"place": "A", "weight": 9}]}]}"#,
        )
        .expect("it is right");
        let of = |text: &str| Measure::parse(text, &net);
        assert_eq!(of("throughput(go)"), Ok(Measure::Throughput(Impulse { transition: 0, each: None })));
        assert_eq!(of("firings(\"a, b\")"), Ok(Measure::Firings(Impulse { transition: 1, each: None })));
        let Ok(Measure::Firings(Impulse { transition: 0, each: Some(each) })) = of("firings(go, max(A, 1) * 2)") else { panic!() };
        assert_eq!(each.value(&[3]), 6.0);
        let Ok(Measure::Throughput(Impulse { transition: 1, each: Some(each) })) = of("throughput(\"a, b\", A)") else { panic!() };
        assert_eq!(each.value(&[3]), 3.0);
        let refused = |text: &str, expected: &str| assert_eq!(of(text).expect_err(text).to_string(), expected);
        refused("firings(leave)", "column 9: leave is no transition of the net");
        refused("firings(go, B)", "column 13: B is no place of the net");
        refused("throughput(go, )", "column 16: the end was found; expected a number, a place or (");
        assert!(of("firings(go) + firings(go)").is_err(), "an expression of counts is for simulation");
    }
}
