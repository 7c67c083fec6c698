//! Expressions over a marking: guards, rates that depend on the marking, measures.
//!
//! A place's name stands for its tokens. A condition counts as 1 where it holds and 0 elsewhere, so that the expectation of one is
//! the probability that it holds. `docs/formats/net.md` has the grammar.

mod parse;

use std::fmt;

pub use self::parse::ExpressionError;

/// Deepest nesting of an expression: what reads one is recursive.
pub const DEPTH_MAX: usize = 64;

/// Joins two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient; what is divided by 0 is 0, so that a mean over no token is 0.
    Divide,
    /// The smaller of two.
    Min,
    /// The larger of two.
    Max,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// Both conditions.
    And,
    /// One condition or both.
    Or,
}

impl Operator {
    fn is_boolean(self) -> bool {
        use Operator::*;
        matches!(self, Less | AtMost | Greater | AtLeast | Equal | Unequal | And | Or)
    }

    pub(crate) fn apply(self, left: f64, right: f64) -> f64 {
        let condition = |holds: bool| f64::from(u8::from(holds));
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide if right == 0.0 => 0.0,
            Self::Divide => left / right,
            Self::Min => left.min(right),
            Self::Max => left.max(right),
            Self::Less => condition(left < right),
            Self::AtMost => condition(left <= right),
            Self::Greater => condition(left > right),
            Self::AtLeast => condition(left >= right),
            Self::Equal => condition(left == right),
            Self::Unequal => condition(left != right),
            Self::And => condition(left != 0.0 && right != 0.0),
            Self::Or => condition(left != 0.0 || right != 0.0),
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Min => "min",
            Self::Max => "max",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::And => "and",
            Self::Or => "or",
        }
    }
}

/// A number or a condition that depends on the marking.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// The same in every marking; finite.
    Number(f64),
    /// Tokens of the place of that index.
    Place(usize),
    /// The number with the other sign.
    Negate(Box<Expression>),
    /// The opposite condition.
    Not(Box<Expression>),
    /// Two operands, joined.
    Binary(Operator, Box<Expression>, Box<Expression>),
}

impl Expression {
    /// Reads an expression; `place` gives the index of a place's name.
    ///
    /// # Errors
    /// What was found at which column, and what was expected.
    pub fn parse(text: &str, place: &dyn Fn(&str) -> Option<usize>) -> Result<Self, ExpressionError> {
        parse::parse(text, place)
    }

    /// Its value in `marking`; of a condition 1 where it holds, and 0 elsewhere.
    pub fn value(&self, marking: &[u32]) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Place(place) => f64::from(marking[*place]),
            Self::Negate(operand) => -operand.value(marking),
            Self::Not(operand) => f64::from(u8::from(operand.value(marking) == 0.0)),
            Self::Binary(operator, left, right) => operator.apply(left.value(marking), right.value(marking)),
        }
    }

    /// Whether the condition holds in `marking`.
    pub fn holds(&self, marking: &[u32]) -> bool {
        self.value(marking) != 0.0
    }

    /// With numbers in place of the places for which `number` has one.
    pub(crate) fn with_numbers(self, number: &dyn Fn(usize) -> Option<f64>) -> Self {
        let part = |operand: Box<Self>| Box::new(operand.with_numbers(number));
        match self {
            Self::Number(own) => Self::Number(own),
            Self::Place(place) => number(place).map_or(Self::Place(place), Self::Number),
            Self::Negate(operand) => Self::Negate(part(operand)),
            Self::Not(operand) => Self::Not(part(operand)),
            Self::Binary(operator, left, right) => Self::Binary(operator, part(left), part(right)),
        }
    }

    /// Whether it is a condition.
    pub fn is_boolean(&self) -> bool {
        match self {
            Self::Not(_) => true,
            Self::Binary(operator, ..) => operator.is_boolean(),
            Self::Number(_) | Self::Place(_) | Self::Negate(_) => false,
        }
    }

    /// The places that it asks for, some of them perhaps more than once.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        let mut found = Vec::new();
        self.collect_places(&mut found);
        found.into_iter()
    }

    fn collect_places(&self, found: &mut Vec<usize>) {
        match self {
            Self::Number(_) => {}
            Self::Place(place) => found.push(*place),
            Self::Negate(operand) | Self::Not(operand) => operand.collect_places(found),
            Self::Binary(_, left, right) => {
                left.collect_places(found);
                right.collect_places(found);
            }
        }
    }

    /// Its text, with the name that `name` gives for each place; [`Expression::parse`] reads it back.
    pub fn text<'a>(&'a self, name: &'a dyn Fn(usize) -> String) -> impl fmt::Display + 'a {
        Text { expression: self, name }
    }
}

struct Text<'a> {
    expression: &'a Expression,
    name: &'a dyn Fn(usize) -> String,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |expression| Text { expression, name: self.name };
        match self.expression {
            Expression::Number(number) => write!(f, "{number}"),
            Expression::Place(place) => {
                let name = (self.name)(*place);
                if parse::is_plain(&name) { f.write_str(&name) } else { write!(f, "\"{name}\"") }
            }
            Expression::Negate(operand) => write!(f, "-({})", part(operand)),
            Expression::Not(operand) => write!(f, "not ({})", part(operand)),
            Expression::Binary(operator @ (Operator::Min | Operator::Max), left, right) => {
                write!(f, "{}({}, {})", operator.symbol(), part(left), part(right))
            }
            Expression::Binary(operator, left, right) => {
                self.operand(f, left)?;
                write!(f, " {} ", operator.symbol())?;
                self.operand(f, right)
            }
        }
    }
}

impl Text<'_> {
    /// A whole binary expression stands in parentheses, so that no precedence has to be remembered.
    fn operand(&self, f: &mut fmt::Formatter<'_>, operand: &Expression) -> fmt::Result {
        let text = Text { expression: operand, name: self.name };
        let is_call = matches!(operand, Expression::Binary(Operator::Min | Operator::Max, ..));
        if matches!(operand, Expression::Binary(..)) && !is_call { write!(f, "({text})") } else { write!(f, "{text}") }
    }
}
