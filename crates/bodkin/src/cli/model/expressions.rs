//! Expressions over a net's marking, as options give them.

use bodkin_petri::{expression::Expression, measure::Measure, net::Net};

/// An expression.
///
/// # Errors
/// What is wrong with it, with the option that gave it.
pub fn expression(net: &Net, option: &str, text: &str) -> Result<Expression, String> {
    Expression::parse(text, &|name| net.place(name)).map_err(|error| format!("{option} {text}: {error}"))
}

/// A condition.
///
/// # Errors
/// What is wrong with it, or that it is a number.
pub fn condition(net: &Net, option: &str, text: &str) -> Result<Expression, String> {
    match expression(net, option, text)? {
        condition if condition.is_boolean() => Ok(condition),
        _ => Err(format!("{option} {text}: it is a number; expected a condition, as in A > 0")),
    }
}

/// `--measure`.
///
/// # Errors
/// What is wrong with it.
pub fn measure(net: &Net, text: &str) -> Result<Measure, String> {
    Measure::parse(text, net).map_err(|error| format!("--measure {text}: {error}"))
}
