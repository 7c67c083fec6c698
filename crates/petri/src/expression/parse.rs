//! Text to expression: recursive descent, one function a level of precedence, loosest first: `or`, `and`, `not`, comparison, sum,
//! product, sign.

use super::{DEPTH_MAX, Expression, Operator};

/// An expression that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {reason}")]
pub struct ExpressionError {
    /// Character of the text, counted from 1.
    pub column: usize,
    /// What was found there, and what was expected.
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    /// A place's name in quotation marks: never a word of the language.
    Quoted(String),
    Word(String),
    Symbol(&'static str),
    End,
}

/// Longest first, so that `<=` is not read as `<`.
const SYMBOLS: [&str; 17] = ["<=", ">=", "==", "!=", "&&", "||", "<", ">", "=", "!", "+", "-", "*", "/", "(", ")", ","];

/// Most tokens of an expression: what evaluates one is recursive, and a long sum is a deep one.
pub const TOKENS_MAX: usize = 2_000;

/// Words of the language, which no unquoted place has for its name.
const WORDS: [&str; 7] = ["and", "or", "not", "min", "max", "true", "false"];

/// What counts a transition's firings, where something is in parentheses behind it; otherwise it may be a place.
const FIRINGS: &str = "firings";

fn starts_word(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

fn continues_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '.'
}

/// Whether a place's name needs no quotation marks.
pub(super) fn is_plain(name: &str) -> bool {
    name.starts_with(starts_word) && name.chars().all(continues_word) && !WORDS.contains(&name)
}

pub(super) fn parse(text: &str, place: &dyn Fn(&str) -> Option<usize>) -> Result<Expression, ExpressionError> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0, place };
    let expression = parser.or()?;
    match parser.peek() {
        Token::End => Ok(expression),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

/// Tokens with their columns; the last one is [`Token::End`].
fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExpressionError> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let first = characters[at];
        if first.is_whitespace() {
            at += 1;
            continue;
        }
        let (token, length) = token(&characters[at..]).map_err(|reason| ExpressionError { column: at + 1, reason })?;
        tokens.push((at + 1, token));
        at += length;
        if tokens.len() > TOKENS_MAX {
            return Err(ExpressionError { column: at, reason: format!("it is too long; expected at most {TOKENS_MAX} words and signs") });
        }
    }
    tokens.push((characters.len() + 1, Token::End));
    Ok(tokens)
}

/// The token that `rest` begins with, and how many characters it has.
fn token(rest: &[char]) -> Result<(Token, usize), String> {
    let first = rest[0];
    if first.is_ascii_digit() || first == '.' {
        return number(rest);
    }
    if starts_word(first) {
        let word: String = rest.iter().take_while(|character| continues_word(**character)).collect();
        let length = word.chars().count();
        return Ok((Token::Word(word), length));
    }
    if first == '"' {
        let length = rest[1..].iter().position(|character| *character == '"').ok_or("the name has no closing quotation mark")?;
        return Ok((Token::Quoted(rest[1..=length].iter().collect()), length + 2));
    }
    let symbol = SYMBOLS.iter().find(|symbol| symbol.chars().eq(rest.iter().copied().take(symbol.len())));
    symbol.map(|symbol| (Token::Symbol(symbol), symbol.len())).ok_or_else(|| format!("{first:?} means nothing here"))
}

fn number(rest: &[char]) -> Result<(Token, usize), String> {
    let mut length = rest.iter().take_while(|character| character.is_ascii_digit() || **character == '.').count();
    if matches!(rest.get(length), Some('e' | 'E')) {
        let sign = usize::from(matches!(rest.get(length + 1), Some('+' | '-')));
        let digits = rest[length + 1 + sign..].iter().take_while(|character| character.is_ascii_digit()).count();
        length += if digits > 0 { 1 + sign + digits } else { 0 };
    }
    let text: String = rest[..length].iter().collect();
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((Token::Number(number), length)),
        _ => Err(format!("{text} is no number")),
    }
}

struct Parser<'a> {
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
    place: &'a dyn Fn(&str) -> Option<usize>,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    fn column(&self) -> usize {
        self.tokens[self.next].0
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, wanted: &[&str]) -> bool {
        let found = match self.peek() {
            Token::Symbol(symbol) => wanted.contains(symbol),
            Token::Word(word) => wanted.contains(&word.as_str()),
            _ => false,
        };
        if found {
            self.take();
        }
        found
    }

    fn refused(&self, reason: impl Into<String>) -> ExpressionError {
        ExpressionError { column: self.column(), reason: reason.into() }
    }

    fn unexpected(&self, expected: &str) -> ExpressionError {
        let found = match self.peek() {
            Token::Number(number) => number.to_string(),
            Token::Quoted(text) | Token::Word(text) => text.clone(),
            Token::Symbol(symbol) => (*symbol).to_owned(),
            Token::End => "the end".to_owned(),
        };
        self.refused(format!("{found} was found; expected {expected}"))
    }

    fn or(&mut self) -> Result<Expression, ExpressionError> {
        self.logical(&["or", "||"], Operator::Or, Self::and)
    }

    fn and(&mut self) -> Result<Expression, ExpressionError> {
        self.logical(&["and", "&&"], Operator::And, Self::not)
    }

    fn logical(
        &mut self,
        words: &[&str],
        operator: Operator,
        operand: fn(&mut Self) -> Result<Expression, ExpressionError>,
    ) -> Result<Expression, ExpressionError> {
        let (mut column, mut left) = (self.column(), operand(self)?);
        while self.takes(words) {
            condition(&left, column)?;
            column = self.column();
            let right = operand(self)?;
            condition(&right, column)?;
            left = joined(operator, left, right);
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expression, ExpressionError> {
        if !self.takes(&["not", "!"]) {
            return self.comparison();
        }
        let column = self.column();
        let operand = self.nested(Self::not)?;
        condition(&operand, column)?;
        Ok(Expression::Not(Box::new(operand)))
    }

    fn comparison(&mut self) -> Result<Expression, ExpressionError> {
        let left = self.sum()?;
        let operator = match self.peek() {
            Token::Symbol("<") => Operator::Less,
            Token::Symbol("<=") => Operator::AtMost,
            Token::Symbol(">") => Operator::Greater,
            Token::Symbol(">=") => Operator::AtLeast,
            Token::Symbol("==" | "=") => Operator::Equal,
            Token::Symbol("!=") => Operator::Unequal,
            _ => return Ok(left),
        };
        self.take();
        let right = self.sum()?;
        if matches!(self.peek(), Token::Symbol("<" | "<=" | ">" | ">=" | "==" | "=" | "!=")) {
            return Err(self.unexpected("one comparison only; join two with and"));
        }
        Ok(joined(operator, left, right))
    }

    fn sum(&mut self) -> Result<Expression, ExpressionError> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Token::Symbol("+") => Operator::Add,
                Token::Symbol("-") => Operator::Subtract,
                _ => return Ok(left),
            };
            self.take();
            left = joined(operator, left, self.product()?);
        }
    }

    fn product(&mut self) -> Result<Expression, ExpressionError> {
        let mut left = self.signed()?;
        loop {
            let operator = match self.peek() {
                Token::Symbol("*") => Operator::Multiply,
                Token::Symbol("/") => Operator::Divide,
                _ => return Ok(left),
            };
            self.take();
            left = joined(operator, left, self.signed()?);
        }
    }

    fn signed(&mut self) -> Result<Expression, ExpressionError> {
        if self.takes(&["-"]) {
            return Ok(Expression::Negate(Box::new(self.nested(Self::signed)?)));
        }
        self.operand()
    }

    fn operand(&mut self) -> Result<Expression, ExpressionError> {
        match self.peek().clone() {
            Token::Number(number) => {
                self.take();
                Ok(Expression::Number(number))
            }
            Token::Symbol("(") => {
                self.take();
                let inner = self.nested(Self::or)?;
                self.closes()?;
                Ok(inner)
            }
            Token::Word(word) if word == "min" || word == "max" => self.call(if word == "min" { Operator::Min } else { Operator::Max }),
            Token::Word(word) if word == "true" || word == "false" => {
                self.take();
                let right = if word == "true" { 0.0 } else { 1.0 };
                Ok(joined(Operator::Equal, Expression::Number(0.0), Expression::Number(right)))
            }
            Token::Word(word) if WORDS.contains(&word.as_str()) => Err(self.unexpected("a number, a place or (")),
            Token::Word(word) if word == FIRINGS && self.tokens[self.next + 1].1 == Token::Symbol("(") => self.firings(),
            Token::Word(name) | Token::Quoted(name) => {
                let place = (self.place)(&name).ok_or_else(|| self.refused(format!("{name} is no place of the net")))?;
                self.take();
                Ok(Expression::Place(place))
            }
            Token::Symbol(_) | Token::End => Err(self.unexpected("a number, a place or (")),
        }
    }

    /// `firings(TRANSITION)` is looked up as a whole: a place that counts.
    fn firings(&mut self) -> Result<Expression, ExpressionError> {
        let column = self.column();
        self.take();
        self.take();
        let (Token::Word(name) | Token::Quoted(name)) = self.take() else {
            return Err(self.unexpected("a transition's name behind firings("));
        };
        if self.peek() == &Token::Symbol(",") {
            return Err(self.refused("what a firing earns is computed and not simulated; expected ), for 1 a firing"));
        }
        self.closes()?;
        let reason = || format!("{FIRINGS}({name}) is no place of the net, and counts none of its transitions");
        let place = (self.place)(&format!("{FIRINGS}({name})")).ok_or_else(|| ExpressionError { column, reason: reason() })?;
        Ok(Expression::Place(place))
    }

    fn call(&mut self, operator: Operator) -> Result<Expression, ExpressionError> {
        self.take();
        if !self.takes(&["("]) {
            return Err(self.unexpected("( behind min or max"));
        }
        let mut left = self.nested(Self::or)?;
        while self.takes(&[","]) {
            left = joined(operator, left, self.nested(Self::or)?);
        }
        self.closes()?;
        Ok(left)
    }

    fn closes(&mut self) -> Result<(), ExpressionError> {
        if self.takes(&[")"]) { Ok(()) } else { Err(self.unexpected(")")) }
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Result<Expression, ExpressionError>) -> Result<Expression, ExpressionError> {
        if self.depth == DEPTH_MAX {
            return Err(self.refused(format!("nested deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let expression = inner(self);
        self.depth -= 1;
        expression
    }
}

fn joined(operator: Operator, left: Expression, right: Expression) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(right))
}

fn condition(operand: &Expression, column: usize) -> Result<(), ExpressionError> {
    if operand.is_boolean() {
        return Ok(());
    }
    Err(ExpressionError { column, reason: "a number was found; and, or and not join conditions, as in A > 0 and B < 2".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> Option<usize> {
        ["A", "B", "Pre-SR"].iter().position(|place| *place == name)
    }

    /// The value with 2 tokens in A, 5 in B and 1 in Pre-SR.
    fn check(text: &str, expect: f64) {
        let expression = parse(text, &place).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(expression.value(&[2, 5, 1]), expect, "{text}");
        let name = |place: usize| ["A", "B", "Pre-SR"][place].to_owned();
        let written = expression.text(&name).to_string();
        assert_eq!(parse(&written, &place).expect(&written), expression, "{text} was written as {written}");
    }

    fn refused(text: &str, column: usize, reason: &str) {
        let error = parse(text, &place).expect_err(text);
        assert_eq!((error.column, error.reason.contains(reason)), (column, true), "{text}: {error}");
    }

    #[test]
    fn the_tighter_operator_binds_first() {
        check("1 + 2 * A", 5.0);
        check("(1 + 2) * A", 6.0);
        check("10 - 4 - 3", 3.0);
        check("-A + B", 3.0);
        check("B / A / 2", 1.25);
        check("not A > 2 and B == 5 or false", 1.0);
        check("A > 2 or A <= 2 and B != 5", 0.0);
    }

    #[test]
    fn every_form_has_its_value() {
        check("min(A, B, 3)", 2.0);
        check("max(A + 4, B)", 6.0);
        check("\"Pre-SR\" * 2e1", 20.0);
        check("A / (B - 5)", 0.0);
        check("(A >= 2) + (B < 5)", 1.0);
        check("!(A = 2) || B > 4 && true", 1.0);
    }

    #[test]
    fn a_mistake_is_told_with_its_column() {
        refused("", 1, "the end was found");
        refused("A + ", 5, "the end was found");
        refused("A ++ B", 4, "+ was found");
        refused("A + C", 5, "C is no place");
        refused("(A < 2", 7, "expected )");
        refused("A < B < 3", 7, "one comparison");
        refused("A and B > 1", 1, "join conditions");
        refused("A > 1 and B", 11, "join conditions");
        refused("A $ B", 3, "means nothing");
        refused("1.2.3", 1, "no number");
        refused("\"A", 1, "closing quotation mark");
        refused("A B", 3, "an operator or the end");
        refused(&"(".repeat(80), 66, "nested deeper");
    }
}
