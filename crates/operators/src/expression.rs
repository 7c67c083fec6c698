//! Small expressions over numbers: what `map` computes.
//!
//! ```text
//! or   = and { "||" and }          sign    = ( "-" | "!" ) sign | power
//! and  = cmp { "&&" cmp }          power   = operand [ "^" sign ]
//! cmp  = sum { ("<"|...) sum }     operand = number | x | x0 | i | pi | f "(" or {"," or} ")" | "(" or ")"
//! ```
//!
//! A condition is 1 where it holds and 0 elsewhere. Everything is IEEE 754: 1/0 is infinite, 0/0 is NaN.

mod parse;

pub use self::parse::parse;

/// Steps of the longest expression: each is one operation for every point.
pub const STEPS_MAX: usize = 256;
/// Values that may wait for their operation.
pub const DEPTH_MAX: usize = 32;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Negate,
    Not,
    And,
    Or,
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Abs,
    Sqrt,
    Exp,
    Ln,
    Sin,
    Cos,
    Tan,
    Atan2,
    Floor,
    Round,
    Min,
    Max,
    If,
}

/// Those with a name.
const FUNCTIONS: &[(&str, Function)] = &[
    ("abs", Function::Abs),
    ("sqrt", Function::Sqrt),
    ("exp", Function::Exp),
    ("ln", Function::Ln),
    ("sin", Function::Sin),
    ("cos", Function::Cos),
    ("tan", Function::Tan),
    ("atan2", Function::Atan2),
    ("floor", Function::Floor),
    ("round", Function::Round),
    ("min", Function::Min),
    ("max", Function::Max),
    ("if", Function::If),
];

impl Function {
    /// How many values it takes.
    fn takes(self) -> usize {
        use Function::*;
        match self {
            Negate | Not | Abs | Sqrt | Exp | Ln | Sin | Cos | Tan | Floor | Round => 1,
            If => 3,
            _ => 2,
        }
    }

    fn apply(self, values: &[f64]) -> f64 {
        let condition = |holds: bool| f64::from(u8::from(holds));
        match (self, values) {
            (Self::Add, [a, b]) => a + b,
            (Self::Subtract, [a, b]) => a - b,
            (Self::Multiply, [a, b]) => a * b,
            (Self::Divide, [a, b]) => a / b,
            (Self::Remainder, [a, b]) => a % b,
            (Self::Power, [a, b]) => a.powf(*b),
            (Self::Negate, [a]) => -a,
            (Self::Not, [a]) => condition(*a == 0.0),
            (Self::And, [a, b]) => condition(*a != 0.0 && *b != 0.0),
            (Self::Or, [a, b]) => condition(*a != 0.0 || *b != 0.0),
            (Self::Equal, [a, b]) => condition(a == b),
            (Self::Unequal, [a, b]) => condition(a != b),
            (Self::Less, [a, b]) => condition(a < b),
            (Self::AtMost, [a, b]) => condition(a <= b),
            (Self::Greater, [a, b]) => condition(a > b),
            (Self::AtLeast, [a, b]) => condition(a >= b),
            (Self::Abs, [a]) => a.abs(),
            (Self::Sqrt, [a]) => a.sqrt(),
            (Self::Exp, [a]) => a.exp(),
            (Self::Ln, [a]) => a.ln(),
            (Self::Sin, [a]) => a.sin(),
            (Self::Cos, [a]) => a.cos(),
            (Self::Tan, [a]) => a.tan(),
            (Self::Atan2, [a, b]) => a.atan2(*b),
            (Self::Floor, [a]) => a.floor(),
            (Self::Round, [a]) => a.round(),
            (Self::Min, [a, b]) => a.min(*b),
            (Self::Max, [a, b]) => a.max(*b),
            (Self::If, [a, b, c]) => {
                if *a != 0.0 {
                    *b
                } else {
                    *c
                }
            }
            _ => unreachable!("{self:?} takes {} values", self.takes()),
        }
    }
}

/// One step of a program: it takes values from the stack and puts one there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Constant(f64),
    /// The point of an input.
    Input(usize),
    /// Which point, from 0 on.
    Index,
    Call(Function),
}

impl Step {
    fn takes(self) -> usize {
        match self {
            Self::Call(function) => function.takes(),
            _ => 0,
        }
    }
}

/// An expression as a program for a stack of [`DEPTH_MAX`] values.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    steps: Vec<Step>,
}

impl Expression {
    /// How many steps it has.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Its value, at the point `index`; `input` gives the point of an input.
    pub fn value(&self, index: usize, input: impl Fn(usize) -> f64) -> f64 {
        let mut stack = [0.0; DEPTH_MAX];
        let mut height = 0;
        for step in &self.steps {
            let base = height - step.takes();
            stack[base] = match *step {
                Step::Constant(constant) => constant,
                Step::Input(number) => input(number),
                Step::Index => index as f64,
                Step::Call(function) => function.apply(&stack[base..height]),
            };
            height = base + 1;
        }
        stack[0]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn value(text: &str) -> f64 {
        parse(text, 2).unwrap_or_else(|error| panic!("{text}: {error}")).value(7, |input| [3.0, -0.5][input])
    }

    #[test]
    fn operators_bind_as_in_mathematics() {
        let cases = [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("8 - 4 - 2", 2.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("-2 ^ 2", -4.0),
            ("2 ^ -1", 0.5),
            ("7 % 4 * 2", 6.0),
            ("1 < 2 && 2 < 1 || 3 >= 3", 1.0),
            ("!(x0 == 3) + 2", 2.0),
            ("x0 * x1 + i", 5.5),
            ("if(x1 < 0, min(x0, 2), max(x0, 9))", 2.0),
            ("abs(x1) + sqrt(4) + floor(1.9) + round(1.5)", 5.5),
            ("1.5e2 + .5", 150.5),
            ("atan2(0, 1) + ln(exp(1)) + cos(pi)", 0.0),
            ("1/0", f64::INFINITY),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text), expected, "{text}");
        }
        assert!(value("0/0").is_nan() && value("sqrt(-1)").is_nan());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let told = |text: &str| parse(text, 2).expect_err(text).to_string();
        assert_eq!(told("1 +"), "expected a number, x0 to x1, i, pi or a function at character 4");
        assert_eq!(told("x2"), "expected a number, x0 to x1, i, pi or a function at character 1");
        assert_eq!(told("x"), "expected a number, x0 to x1, i, pi or a function at character 1");
        assert_eq!(told("(1"), "expected ) at character 3");
        assert_eq!(told("min(1)"), "expected 2 values with commas between them at character 6");
        assert_eq!(told("1 2"), "expected an operator at character 3");
        assert_eq!(told("1.2.3"), "expected a number at character 1");
        assert_eq!(told(&"-".repeat(99)), "nested deeper than 32 at character 33");
        assert_eq!(told(&"1+(".repeat(99)), "nested deeper than 32 at character 97");
        assert_eq!(told(&vec!["1"; 200].join("+")), "more than 256 steps at character 258");
        assert!(parse("x", 1).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_does_harm(text in "[-+*/^()x01i,.&|<>=!e a-z\u{e9}]{0,60}") {
            if let Ok(expression) = parse(&text, 2) {
                expression.value(0, |_| 1.0);
            }
        }
    }
}
