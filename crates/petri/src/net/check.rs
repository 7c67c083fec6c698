//! What a net may not be.

use std::collections::BTreeSet;

use super::{Arc, Delay, Firing, Place, Timed, Transition};

/// Most places, and most transitions, of a net.
pub const PARTS_MAX: usize = 100_000;

/// A mistake in a net: where it is, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {reason}")]
pub struct NetError {
    /// The part that is wrong, as in `transition publish, input 2`.
    pub location: String,
    /// What was found there and what was expected.
    pub reason: String,
}

impl NetError {
    /// A mistake at `location`.
    pub fn new(location: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { location: location.into(), reason: reason.into() }
    }
}

/// Finds the first mistake.
pub(super) fn check(places: &[Place], transitions: &[Transition]) -> Result<(), NetError> {
    for (what, count) in [("places", places.len()), ("transitions", transitions.len())] {
        if count == 0 || count > PARTS_MAX {
            return Err(NetError::new(what, format!("there are {count}; expected 1 to {PARTS_MAX}")));
        }
    }
    unique("place", places.iter().map(|place| place.name.as_str()))?;
    unique("transition", transitions.iter().map(|transition| transition.name.as_str()))?;
    transitions.iter().try_for_each(|transition| {
        arcs(places.len(), transition)?;
        firing(transition)?;
        expressions(places.len(), transition)
    })
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), NetError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(NetError::new(format!("{what} {name:?}"), "a name needs one character or more, and no control character"));
        }
        if !seen.insert(name) {
            return Err(NetError::new(format!("{what} {name}"), "there are two of this name"));
        }
    }
    Ok(())
}

fn arcs(places: usize, transition: &Transition) -> Result<(), NetError> {
    let lists = [
        ("input", &transition.inputs),
        ("output", &transition.outputs),
        ("inhibitor", &transition.inhibitors),
        ("test", &transition.tests),
    ];
    for (what, list) in lists {
        let mut seen = BTreeSet::new();
        for (index, Arc { place, weight }) in list.iter().enumerate() {
            let refused = |reason: &str| Err(NetError::new(format!("transition {}, {what} {}", transition.name, index + 1), reason));
            if *place >= places {
                return refused("there is no such place");
            }
            if *weight == 0 {
                return refused("its weight is 0; expected 1 or more");
            }
            if !seen.insert(place) {
                return refused("the place has such an arc already; add the weights up");
            }
        }
    }
    let dead = transition.inhibitors.iter().any(|inhibitor| {
        let needs = transition.inputs.iter().chain(&transition.tests).filter(|arc| arc.place == inhibitor.place);
        needs.max_by_key(|arc| arc.weight).is_some_and(|arc| arc.weight >= inhibitor.weight)
    });
    if dead {
        let reason = "it can never be enabled: an inhibitor arc forbids what an input or test arc of the same place asks for";
        return Err(NetError::new(format!("transition {}", transition.name), reason));
    }
    Ok(())
}

fn firing(transition: &Transition) -> Result<(), NetError> {
    let weight = match &transition.firing {
        Firing::Immediate { weight, .. } | Firing::Timed(Timed { weight, .. }) => *weight,
    };
    if !(weight > 0.0 && weight.is_finite()) {
        return Err(NetError::new(format!("transition {}, weight", transition.name), format!("{weight} is not a number above 0")));
    }
    let moves = transition.inputs.iter().chain(&transition.outputs).any(|arc| transition.effect(arc.place) != 0);
    if !moves && matches!(transition.firing, Firing::Immediate { .. }) {
        let reason = "it is immediate and moves no token: it would fire for ever in no time";
        return Err(NetError::new(format!("transition {}", transition.name), reason));
    }
    Ok(())
}

fn expressions(places: usize, transition: &Transition) -> Result<(), NetError> {
    if let Some(guard) = &transition.guard {
        let location = || format!("transition {}, guard", transition.name);
        if !guard.is_boolean() {
            return Err(NetError::new(location(), "it is a number; expected a condition, as in A + B < 4"));
        }
        if guard.places().any(|place| place >= places) {
            return Err(NetError::new(location(), "it asks for a place that there is not"));
        }
    }
    if let Firing::Timed(Timed { delay: Delay::Rate(rate), .. }) = &transition.firing {
        let location = || format!("transition {}, rate", transition.name);
        if rate.is_boolean() {
            return Err(NetError::new(location(), "it is a condition; expected a number, as in 0.5 * A"));
        }
        if rate.places().any(|place| place >= places) {
            return Err(NetError::new(location(), "it asks for a place that there is not"));
        }
    }
    Ok(())
}
