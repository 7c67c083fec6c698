//! What is asked of a net besides the tokens of its places.

use crate::{
    expression::{Expression, ExpressionError},
    net::Net,
};

/// What asks for a transition and not for the marking; its name follows, and a parenthesis.
const THROUGHPUT: &str = "throughput(";
const FIRINGS: &str = "firings(";

/// A number whose expectation is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// A reward: an expression over the marking; of a condition the expectation is its probability.
    Reward(Expression),
    /// How often a timed transition fires, per unit of time: an impulse reward of 1 a firing.
    Throughput(usize),
    /// How often a timed transition has fired since time 0: the same reward, added up.
    Firings(usize),
}

impl Measure {
    /// Reads `throughput(transition)`, `firings(transition)` or an expression over the marking.
    ///
    /// # Errors
    /// What is wrong with the expression, or that there is no such timed transition.
    pub fn parse(text: &str, net: &Net) -> Result<Self, ExpressionError> {
        let text = text.trim();
        let named = |prefix: &str| {
            let name = text.strip_prefix(prefix)?.strip_suffix(')')?.trim().trim_matches('"');
            // Several counts are an expression.
            (!name.contains(')') || net.transition(name).is_some()).then_some(name)
        };
        let Some((prefix, name)) = [THROUGHPUT, FIRINGS].into_iter().find_map(|prefix| Some((prefix, named(prefix)?))) else {
            return Expression::parse(text, &|name| net.place(name)).map(Self::Reward);
        };
        let refused = |reason: String| ExpressionError { column: prefix.len() + 1, reason };
        let transition = net.transition(name).ok_or_else(|| refused(format!("{name} is no transition of the net")))?;
        match net.transitions()[transition].timed() {
            Some(_) if prefix == FIRINGS => Ok(Self::Firings(transition)),
            Some(_) => Ok(Self::Throughput(transition)),
            None if prefix == FIRINGS => Err(refused(format!("{name} is immediate; its firings are counted by simulation"))),
            None => Err(refused(format!("{name} is immediate; only timed transitions have a throughput"))),
        }
    }
}
