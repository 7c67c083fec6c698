//! Densities as ORIS writes them: `22.5 * Exp[-3.1 x] * x + -22.5 * Exp[-3.1 x] * x^2` between two times.

use crate::distribution::{Distribution, Expolynomial, Piece, Term};

/// What the mass of a density may be away from 1: its numbers are printed with a few digits. It is scaled to 1.
const MASS_OFF_MAX: f64 = 1e-3;

/// Most characters of a density.
const LENGTH_MAX: usize = 10_000;

/// One end of the only piece of a density; `inf` and its like are no end.
pub fn end(name: &str, text: &str) -> Result<f64, String> {
    let plain = text.trim().trim_start_matches('[').trim_end_matches(']').trim();
    if plain.contains([',', ';']) {
        return Err(format!(
            "{name} is {text}: a density of several pieces is not read; write it as expolynomial in a net of the own format"
        ));
    }
    if plain.to_ascii_lowercase().trim_start_matches('+').starts_with("inf") {
        return Ok(f64::INFINITY);
    }
    plain.parse().map_err(|_| format!("{name} is {text}; expected a number or inf"))
}

/// The law of a density between two times.
///
/// # Errors
/// What is wrong with it.
pub fn read(text: &str, from: f64, to: f64) -> Result<Distribution, String> {
    let told = |reason: String| format!("its density {text}: {reason}");
    if text.len() > LENGTH_MAX {
        return Err(format!("its density has {} characters; expected at most {LENGTH_MAX}", text.len()));
    }
    let terms = terms(text).map_err(told)?;
    if !(from.is_finite() && from >= 0.0 && to > from) {
        return Err(told(format!("it is between {from} and {to}; expected two times from 0 that rise")));
    }
    let mass: f64 = terms.iter().map(|term| term.mass(from, to, 0)).sum();
    if !mass.is_finite() || (mass - 1.0).abs() > MASS_OFF_MAX {
        return Err(told(format!("its mass is {mass}; expected 1 within {MASS_OFF_MAX}")));
    }
    let scaled = terms.into_iter().map(|term| Term { coefficient: term.coefficient / mass, ..term }).collect();
    let law = Expolynomial::new(vec![Piece { min: from, max: to, terms: scaled }]).map_err(|error| told(error.to_string()))?;
    Ok(Distribution::Expolynomial(law))
}

/// Terms stand between signs that are not those of an exponent.
fn terms(text: &str) -> Result<Vec<Term>, String> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth = depth.checked_sub(1).ok_or("a bracket closes that was not opened")?,
            // A sign behind a factor begins the next term; behind `*`, `+` or `1e` it belongs to its number.
            b'+' | b'-' if depth == 0 && ends_a_factor(&text[start..at]) => {
                found.push(term(&text[start..at])?);
                start = at + usize::from(*byte == b'+');
            }
            _ => {}
        }
    }
    found.push(term(&text[start..])?);
    Ok(found)
}

/// Whether a term could end here.
fn ends_a_factor(before: &str) -> bool {
    let before = before.trim_end();
    let is_exponent =
        before.ends_with(['e', 'E']) && before.trim_end_matches(['e', 'E']).ends_with(|last: char| last.is_ascii_digit() || last == '.');
    !is_exponent && before.ends_with(|last: char| last.is_ascii_alphanumeric() || matches!(last, '.' | ']' | ')'))
}

/// Factors: numbers, `x`, `x^2`, `Exp[-3 x]`.
fn term(text: &str) -> Result<Term, String> {
    let mut term = Term { coefficient: 1.0, power: 0, rate: 0.0 };
    for factor in text.split('*') {
        let plain: String = factor.chars().filter(|character| !character.is_whitespace()).collect();
        let wrong = || format!("{} was found; expected a number, x, x^2 or Exp[-3 x]", factor.trim());
        let (sign, unsigned) = match plain.strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, plain.as_str()),
        };
        if let Some(inner) = unsigned.strip_prefix("Exp[").and_then(|rest| rest.strip_suffix(']')) {
            let exponent = match inner.strip_suffix('x').ok_or_else(wrong)? {
                "" => 1.0,
                "-" => -1.0,
                number => number.parse::<f64>().map_err(|_| wrong())?,
            };
            term.rate -= exponent;
        } else if unsigned == "x" {
            term.power += 1;
        } else if let Some(power) = unsigned.strip_prefix("x^") {
            term.power = term.power.checked_add(power.parse::<u32>().map_err(|_| wrong())?).ok_or_else(wrong)?;
        } else {
            let number: f64 = unsigned.parse().map_err(|_| wrong())?;
            if !number.is_finite() || !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
                return Err(wrong());
            }
            term.coefficient *= number;
        }
        term.coefficient *= sign;
    }
    Ok(term)
}
