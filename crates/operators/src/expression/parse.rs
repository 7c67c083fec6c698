//! From a text to a program: precedence climbing, operands first.

use super::{DEPTH_MAX, Expression, FUNCTIONS, Function, STEPS_MAX, Step};

/// What is wrong with an expression, and where in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at character {at}")]
pub struct ExpressionError {
    /// Character of the text, from 1 on.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

/// Binary operators from the loosest to the tightest, those of a row alike.
const ROWS: &[&[(&str, Function)]] = &[
    &[("||", Function::Or)],
    &[("&&", Function::And)],
    &[
        ("==", Function::Equal),
        ("!=", Function::Unequal),
        ("<=", Function::AtMost),
        (">=", Function::AtLeast),
        ("<", Function::Less),
        (">", Function::Greater),
    ],
    &[("+", Function::Add), ("-", Function::Subtract)],
    &[("*", Function::Multiply), ("/", Function::Divide), ("%", Function::Remainder)],
];

struct Reader<'t> {
    text: &'t str,
    at: usize,
    inputs: usize,
    steps: Vec<Step>,
    /// How deep the reader is nested, and how many values are on the stack.
    depth: usize,
}

/// Reads an expression over so many inputs.
pub fn parse(text: &str, inputs: usize) -> Result<Expression, ExpressionError> {
    let mut reader = Reader { text, at: 0, inputs, steps: Vec::new(), depth: 0 };
    reader.row(0)?;
    reader.blanks();
    if reader.at < text.len() {
        return Err(reader.wrong("expected an operator"));
    }
    let mut height = 0usize;
    for step in &reader.steps {
        height = height + 1 - step.takes();
        if height > DEPTH_MAX {
            return Err(ExpressionError { at: 1, what: format!("more than {DEPTH_MAX} values are open at once") });
        }
    }
    Ok(Expression { steps: reader.steps })
}

impl Reader<'_> {
    fn wrong(&self, what: impl Into<String>) -> ExpressionError {
        ExpressionError { at: self.text[..self.at].chars().count() + 1, what: what.into() }
    }

    fn push(&mut self, step: Step) -> Result<(), ExpressionError> {
        if self.steps.len() == STEPS_MAX {
            return Err(self.wrong(format!("more than {STEPS_MAX} steps")));
        }
        self.steps.push(step);
        Ok(())
    }

    fn blanks(&mut self) {
        self.at = self.text.len() - self.text[self.at..].trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        self.blanks();
        let is_next = self.text[self.at..].starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn row(&mut self, row: usize) -> Result<(), ExpressionError> {
        let Some(operators) = ROWS.get(row) else { return self.sign() };
        self.row(row + 1)?;
        while let Some((_, function)) = operators.iter().find(|(symbol, _)| self.take(symbol)) {
            self.row(row + 1)?;
            self.push(Step::Call(*function))?;
        }
        Ok(())
    }

    /// A sign, which binds less than a power.
    fn sign(&mut self) -> Result<(), ExpressionError> {
        self.nested(|reader| {
            let sign = if reader.take("-") { Some(Function::Negate) } else { reader.take("!").then_some(Function::Not) };
            match sign {
                Some(function) => {
                    reader.sign()?;
                    reader.push(Step::Call(function))
                }
                None => reader.power(),
            }
        })
    }

    fn power(&mut self) -> Result<(), ExpressionError> {
        self.operand()?;
        if self.take("^") {
            // To the right first: 2^3^2 is 2^9.
            self.sign()?;
            self.push(Step::Call(Function::Power))?;
        }
        Ok(())
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<(), ExpressionError>) -> Result<(), ExpressionError> {
        if self.depth == DEPTH_MAX {
            return Err(self.wrong(format!("nested deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn operand(&mut self) -> Result<(), ExpressionError> {
        if self.take("(") {
            self.row(0)?;
            return if self.take(")") { Ok(()) } else { Err(self.wrong("expected )")) };
        }
        let rest = &self.text[self.at..];
        let is_number = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let length = if is_number { number_length(rest) } else { rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len()) };
        let word = &rest[..length];
        if is_number {
            let number = word.parse().map_err(|_| self.wrong("expected a number"))?;
            self.at += length;
            return self.push(Step::Constant(number));
        }
        if let Some((_, function)) = FUNCTIONS.iter().find(|(name, _)| *name == word) {
            self.at += length;
            return self.call(*function);
        }
        let step = match word {
            "pi" => Some(Step::Constant(std::f64::consts::PI)),
            "i" => Some(Step::Index),
            "x" if self.inputs == 1 => Some(Step::Input(0)),
            _ => word.strip_prefix('x').and_then(|digits| digits.parse().ok()).filter(|input| *input < self.inputs).map(Step::Input),
        };
        let Some(step) = step else {
            let inputs = if self.inputs == 1 { "x".to_owned() } else { format!("x0 to x{}", self.inputs - 1) };
            return Err(self.wrong(format!("expected a number, {inputs}, i, pi or a function")));
        };
        self.at += length;
        self.push(step)
    }

    fn call(&mut self, function: Function) -> Result<(), ExpressionError> {
        if !self.take("(") {
            return Err(self.wrong("expected ("));
        }
        for argument in 0..function.takes() {
            if argument > 0 && !self.take(",") {
                return Err(self.wrong(format!("expected {} values with commas between them", function.takes())));
            }
            self.row(0)?;
        }
        if !self.take(")") {
            return Err(self.wrong("expected )"));
        }
        self.push(Step::Call(function))
    }
}

/// Bytes of the number at the beginning of a text.
fn number_length(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let length = digits(text);
    let Some(exponent) = text[length..].strip_prefix(['e', 'E']) else { return length };
    let sign = usize::from(exponent.starts_with(['+', '-']));
    match digits(&exponent[sign..]) {
        0 => length,
        power => length + 1 + sign + power,
    }
}
