//! What is asked of a net besides the tokens of its places.

use crate::{
    expression::{Expression, ExpressionError},
    net::Net,
};

/// A number whose expectation is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// A reward: an expression over the marking; of a condition the expectation is its probability.
    Reward(Expression),
    /// How often a timed transition fires, per unit of time: an impulse reward of 1 a firing.
    Throughput(usize),
}

impl Measure {
    /// Reads `throughput(transition)` or an expression over the marking.
    ///
    /// # Errors
    /// What is wrong with the expression, or that there is no such timed transition.
    pub fn parse(text: &str, net: &Net) -> Result<Self, ExpressionError> {
        let text = text.trim();
        let Some(name) = text.strip_prefix("throughput(").and_then(|rest| rest.strip_suffix(')')) else {
            return Expression::parse(text, &|name| net.place(name)).map(Self::Reward);
        };
        let refused = |reason: String| ExpressionError { column: "throughput(".len() + 1, reason };
        let name = name.trim().trim_matches('"');
        let transition = net.transition(name).ok_or_else(|| refused(format!("{name} is no transition of the net")))?;
        match net.transitions()[transition].timed() {
            Some(_) => Ok(Self::Throughput(transition)),
            None => Err(refused(format!("{name} is immediate; only timed transitions have a throughput"))),
        }
    }
}
