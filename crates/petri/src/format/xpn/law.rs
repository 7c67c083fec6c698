//! When a transition of a file fires.

use super::{Marking, attribute, density, refused};
use crate::{
    distribution::{Deterministic, Distribution, Erlang, Exponential, Uniform},
    format::xml::Element,
    net::{Delay, Firing, Memory, NetError, Servers, Timed},
};

/// Reads `law`, the stochastic property of a transition.
pub fn firing(element: &Element, law: &Element, marking: &Marking<'_>) -> Result<Firing, NetError> {
    let values = Values { element, law, marking };
    let weight = values.number_or("weight", 1.0)?;
    let priority = values.count_or("priority", 0)?;
    let wrong = |error: crate::distribution::DistributionError| refused(element, error);
    let delay = match attribute(law, "property-data-type").map_err(|_| refused(element, "its distribution has no type"))? {
        "0.type.immediate" => return Ok(Firing::Immediate { priority, weight }),
        "1.type.uniform" => Distribution::Uniform(Uniform::new(values.number("eft")?, values.number("lft")?).map_err(wrong)?).into(),
        "2.type.deterministic" => Distribution::Deterministic(Deterministic::new(values.number("value")?).map_err(wrong)?).into(),
        "3.type.exponential" => values.exponential()?,
        "4.type.erlang" => Distribution::Erlang(Erlang::new(values.count("k")?, values.number("lambda")?).map_err(wrong)?).into(),
        "5.type.expolynomial" => {
            let reason = |reason: String| refused(element, reason);
            let text = |name: &str| values.text(name);
            let (from, to) = (density::end("efts", text("efts")?).map_err(reason)?, density::end("lfts", text("lfts")?).map_err(reason)?);
            density::read(text("expressions")?, from, to).map_err(reason)?.into()
        }
        other => {
            let expected =
                "0.type.immediate, 1.type.uniform, 2.type.deterministic, 3.type.exponential, 4.type.erlang or 5.type.expolynomial";
            return Err(refused(element, format!("a delay of {other} is not understood; expected {expected}")));
        }
    };
    Ok(Firing::Timed(Timed { delay, servers: Servers::SINGLE, memory: Memory::Enabling, priority, weight }))
}

impl From<Distribution> for Delay {
    fn from(distribution: Distribution) -> Self {
        Self::Distribution(distribution)
    }
}

/// The numbers of a stochastic property.
struct Values<'a, 'm> {
    element: &'a Element,
    law: &'a Element,
    marking: &'a Marking<'m>,
}

impl Values<'_, '_> {
    fn text(&self, name: &str) -> Result<&str, NetError> {
        attribute(self.law, name).map_err(|_| refused(self.element, format!("its distribution has no {name}")))
    }

    fn number(&self, name: &str) -> Result<f64, NetError> {
        let text = self.text(name)?;
        let wrong = |reason: String| refused(self.element, format!("{name} is {text}: {reason}"));
        let expression = self.marking.expression(text).map_err(wrong)?;
        let depends =
            "it depends on places whose tokens move; expected a number, or an expression over places that no arc leads to or from";
        let number = self.marking.constant(&expression).ok_or_else(|| wrong(depends.to_owned()))?;
        if number.is_finite() { Ok(number) } else { Err(wrong("expected a finite number".to_owned())) }
    }

    fn count(&self, name: &str) -> Result<u32, NetError> {
        let number = self.number(name)?;
        if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number) {
            return Ok(number as u32);
        }
        Err(refused(self.element, format!("{name} is {}; expected a whole number from 0 to {}", self.text(name)?, u32::MAX)))
    }

    fn number_or(&self, name: &str, default: f64) -> Result<f64, NetError> {
        if self.law.attribute(name).is_some() { self.number(name) } else { Ok(default) }
    }

    fn count_or(&self, name: &str, default: u32) -> Result<u32, NetError> {
        if self.law.attribute(name).is_some() { self.count(name) } else { Ok(default) }
    }

    /// A constant rate, or one that depends on the marking.
    fn exponential(&self) -> Result<Delay, NetError> {
        let text = self.text("lambda")?;
        let rate = self.marking.expression(text).map_err(|reason| refused(self.element, format!("lambda is {text}: {reason}")))?;
        match self.marking.constant(&rate) {
            Some(_) => {
                let law = Exponential::new(self.number("lambda")?).map_err(|error| refused(self.element, error))?;
                Ok(Distribution::Exponential(law).into())
            }
            None => Ok(Delay::Rate(rate)),
        }
    }
}
