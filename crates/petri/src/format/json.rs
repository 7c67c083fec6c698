//! Bodkin's own format of nets, schema `stpn-neutral-1`: `docs/formats/net.md`.

mod parameters;

use std::{collections::BTreeMap, num::NonZeroU32};

use serde::{Deserialize, Serialize};

use self::parameters::Parameters;
use crate::{
    distribution::{Distribution, Form},
    expression::Expression,
    net::{Arc, Delay, Firing, Memory, Net, NetError, Place, Servers, Timed, Transition},
};

/// The schema that is read and written.
pub const SCHEMA: &str = "stpn-neutral-1";

/// A file that is no net.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// It is not JSON, or has a member that is unknown, missing, or of another type.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
    /// It has the form of a net, and a mistake in it.
    #[error(transparent)]
    Net(#[from] NetError),
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct NetForm {
    schema: String,
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    time_unit: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, f64>,
    places: Vec<PlaceForm>,
    transitions: Vec<TransitionForm>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct PlaceForm {
    id: String,
    initial: u32,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ArcForm {
    place: String,
    #[serde(default = "one")]
    weight: u32,
}

fn one() -> u32 {
    1
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Timed,
    Immediate,
}

#[derive(Deserialize, Serialize)]
#[serde(untagged, expecting = "servers are single, infinite or a whole number from 1")]
enum ServersForm {
    Count(NonZeroU32),
    Word(String),
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum MemoryForm {
    Enabling,
    Age,
    RepeatIdentical,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TransitionForm {
    id: String,
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    distribution: Option<Form>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    servers: Option<ServersForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<ArcForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<ArcForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inhibitors: Vec<ArcForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tests: Vec<ArcForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guard: Option<String>,
}

/// Reads a net.
///
/// # Errors
/// What is wrong, with its line and column or with the part of the net that it is in.
pub fn read(text: &str) -> Result<Net, JsonError> {
    read_with(text, &[])
}

/// Reads a net with other values for some of its parameters.
///
/// # Errors
/// As for [`read`], or that the net has no parameter of that name.
pub fn read_with(text: &str, set: &[(String, f64)]) -> Result<Net, JsonError> {
    let parameters = Parameters::of(text, set)?;
    let form: NetForm = if parameters.is_empty() {
        // From the text itself a mistake is told with its line.
        serde_json::from_str(text)?
    } else {
        let mut value = serde_json::from_str(text)?;
        parameters.apply(&mut value, "")?;
        serde_json::from_value(value)?
    };
    if form.schema != SCHEMA {
        return Err(NetError::new("schema", format!("{} was found; expected {SCHEMA}", form.schema)).into());
    }
    let places: Vec<Place> = form.places.into_iter().map(|place| Place { name: place.id, initial: place.initial }).collect();
    if let Some(name) = parameters.name_in(places.iter().map(|place| place.name.as_str())) {
        return Err(NetError::new("parameters", format!("{name} is a place, too")).into());
    }
    let transitions = form.transitions.into_iter().map(|form| form.transition(&places, &parameters)).collect::<Result<Vec<_>, _>>()?;
    Ok(Net::new(form.name, form.time_unit, places, transitions)?)
}

/// Writes a net, indented, with a line feed at its end.
pub fn write(net: &Net) -> String {
    let form = NetForm {
        schema: SCHEMA.to_owned(),
        name: net.name().to_owned(),
        description: String::new(),
        time_unit: net.time_unit().to_owned(),
        parameters: BTreeMap::new(),
        places: net.places().iter().map(|place| PlaceForm { id: place.name.clone(), initial: place.initial }).collect(),
        transitions: net.transitions().iter().map(|transition| TransitionForm::of(transition, net)).collect(),
    };
    let text = serde_json::to_string_pretty(&form).expect("a net's form has string keys only, and no number of it is infinite");
    text + "\n"
}

/// Reads a transition that [`write_transition`] has written; its input and output arcs are elsewhere.
pub(super) fn read_transition(text: &str, places: &[Place]) -> Result<Transition, JsonError> {
    let form: TransitionForm = serde_json::from_str(text)?;
    Ok(form.transition(places, &Parameters::default())?)
}

/// Writes what a transition is besides its input and output arcs, on one line.
pub(super) fn write_transition(transition: &Transition, net: &Net) -> String {
    let form = TransitionForm { inputs: Vec::new(), outputs: Vec::new(), ..TransitionForm::of(transition, net) };
    serde_json::to_string(&form).expect("a transition's form has string keys only, and no number of it is infinite")
}

impl TransitionForm {
    fn transition(self, places: &[Place], parameters: &Parameters) -> Result<Transition, NetError> {
        let mut lists = [("input", &self.inputs), ("output", &self.outputs), ("inhibitor", &self.inhibitors), ("test", &self.tests)]
            .into_iter()
            .map(|(what, forms)| arcs(forms, places, &format!("transition {}, {what}", self.id)));
        let mut list = || lists.next().expect("there are four lists");
        let (inputs, outputs, inhibitors, tests) = (list()?, list()?, list()?, list()?);
        let guard = |text| expression(text, places, parameters, &format!("transition {}, guard", self.id));
        let guard = self.guard.as_deref().map(guard).transpose()?;
        let firing = self.firing(places, parameters)?;
        Ok(Transition { name: self.id, inputs, outputs, inhibitors, tests, guard, firing })
    }

    fn firing(&self, places: &[Place], parameters: &Parameters) -> Result<Firing, NetError> {
        let refused = |member: &str, reason: &str| Err(NetError::new(format!("transition {}, {member}", self.id), reason));
        let weight = self.weight.unwrap_or(1.0);
        if let Kind::Immediate = self.kind {
            for (member, is_there) in [
                ("distribution", self.distribution.is_some()),
                ("rate", self.rate.is_some()),
                ("servers", self.servers.is_some()),
                ("memory", self.memory.is_some()),
            ] {
                if is_there {
                    return refused(member, "an immediate transition has none");
                }
            }
            return Ok(Firing::Immediate { priority: self.priority.unwrap_or(1), weight });
        }
        let delay = match (&self.distribution, &self.rate) {
            (Some(form), None) => {
                let distribution = Distribution::try_from(form.clone())
                    .map_err(|error| NetError::new(format!("transition {}, distribution", self.id), error.to_string()))?;
                Delay::Distribution(distribution)
            }
            (None, Some(text)) => Delay::Rate(expression(text, places, parameters, &format!("transition {}, rate", self.id))?),
            (None, None) => return refused("distribution", "a timed transition needs one, or a rate"),
            (Some(_), Some(_)) => return refused("rate", "a timed transition has a distribution or a rate, not both"),
        };
        let servers = match &self.servers {
            None => Servers::SINGLE,
            Some(ServersForm::Count(count)) => Servers::Count(*count),
            Some(ServersForm::Word(word)) if word == "single" => Servers::SINGLE,
            Some(ServersForm::Word(word)) if word == "infinite" => Servers::Infinite,
            Some(ServersForm::Word(word)) => {
                return refused("servers", &format!("{word} was found; expected single, infinite or a number"));
            }
        };
        let memory = match self.memory {
            None | Some(MemoryForm::Enabling) => Memory::Enabling,
            Some(MemoryForm::Age) => Memory::Age,
            Some(MemoryForm::RepeatIdentical) => Memory::RepeatIdentical,
        };
        Ok(Firing::Timed(Timed { delay, servers, memory, priority: self.priority.unwrap_or(0), weight }))
    }

    fn of(transition: &Transition, net: &Net) -> Self {
        let name = |place: usize| net.places()[place].name.clone();
        let arcs = |arcs: &[Arc]| arcs.iter().map(|arc| ArcForm { place: name(arc.place), weight: arc.weight }).collect();
        let text = |expression: &Expression| expression.text(&name).to_string();
        let form = Self {
            id: transition.name.clone(),
            kind: Kind::Immediate,
            priority: None,
            weight: None,
            distribution: None,
            rate: None,
            servers: None,
            memory: None,
            inputs: arcs(&transition.inputs),
            outputs: arcs(&transition.outputs),
            inhibitors: arcs(&transition.inhibitors),
            tests: arcs(&transition.tests),
            guard: transition.guard.as_ref().map(text),
        };
        match &transition.firing {
            Firing::Immediate { priority, weight } => Self { priority: Some(*priority), weight: Some(*weight), ..form },
            Firing::Timed(timed) => Self {
                kind: Kind::Timed,
                priority: (timed.priority != 0).then_some(timed.priority),
                weight: (timed.weight != 1.0).then_some(timed.weight),
                distribution: match &timed.delay {
                    Delay::Distribution(distribution) => Some(Form::from(distribution)),
                    Delay::Rate(_) => None,
                },
                rate: match &timed.delay {
                    Delay::Distribution(_) => None,
                    Delay::Rate(rate) => Some(text(rate)),
                },
                servers: Some(match timed.servers {
                    Servers::SINGLE => ServersForm::Word("single".to_owned()),
                    Servers::Infinite => ServersForm::Word("infinite".to_owned()),
                    Servers::Count(count) => ServersForm::Count(count),
                }),
                memory: Some(match timed.memory {
                    Memory::Enabling => MemoryForm::Enabling,
                    Memory::Age => MemoryForm::Age,
                    Memory::RepeatIdentical => MemoryForm::RepeatIdentical,
                }),
                ..form
            },
        }
    }
}

fn arcs(forms: &[ArcForm], places: &[Place], location: &str) -> Result<Vec<Arc>, NetError> {
    let arc = |(index, form): (usize, &ArcForm)| {
        let place = places.iter().position(|place| place.name == form.place);
        let place =
            place.ok_or_else(|| NetError::new(format!("{location} {}", index + 1), format!("{} is no place of the net", form.place)))?;
        Ok(Arc { place, weight: form.weight })
    };
    forms.iter().enumerate().map(arc).collect()
}

fn expression(text: &str, places: &[Place], parameters: &Parameters, location: &str) -> Result<Expression, NetError> {
    let place = |name: &str| places.iter().position(|place| place.name == name);
    parameters.expression(text, &place).map_err(|reason| NetError::new(location, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_the_same() {
        for text in [
            include_str!("../../../../vectors/petri/nets/intracloud.json"),
            include_str!("../../../../vectors/petri/nets/intercloud.json"),
            include_str!("../../../../vectors/petri/nets/event_handler_k4_p4_c4_is.json"),
        ] {
            let net = read(text).expect("it is right");
            assert_eq!(read(&write(&net)).expect("what is written is right"), net);
        }
    }

    #[test]
    fn every_member_is_read_and_written() {
        let text = r#"{"schema": "stpn-neutral-1", "name": "all", "description": "d", "time_unit": "s",
            "places": [{"id": "Pre-SR", "initial": 2}, {"id": "B", "initial": 0}],
            "transitions": [
                {"id": "a", "kind": "timed", "rate": "0.5 * \"Pre-SR\"", "servers": 3, "memory": "age", "priority": 2, "weight": 0.5,
                 "inputs": [{"place": "Pre-SR"}], "outputs": [{"place": "B", "weight": 2}], "inhibitors": [{"place": "B", "weight": 9}],
                 "tests": [{"place": "Pre-SR"}], "guard": "not (B > 3)"},
                {"id": "b", "kind": "immediate", "priority": 3, "weight": 2.5, "inputs": [{"place": "B"}]},
                {"id": "c", "kind": "timed", "distribution": {"type": "uniform", "min": 0, "max": 1}, "memory": "repeat_identical"}
            ]}"#;
        let net = read(text).expect("it is right");
        let a = net.transitions()[0].timed().expect("it is timed");
        assert_eq!((a.servers, a.memory, a.priority, a.weight), (Servers::Count(3.try_into().expect("not 0")), Memory::Age, 2, 0.5));
        assert_eq!(net.transitions()[1].firing, Firing::Immediate { priority: 3, weight: 2.5 });
        assert_eq!(read(&write(&net)).expect("what is written is right"), net);
    }

    #[test]
    fn parameters_stand_for_numbers_and_can_be_set() {
        let text = r#"{"schema": "stpn-neutral-1", "name": "p", "time_unit": "s", "parameters": {"pool": 4, "load": 0.5},
            "places": [{"id": "A", "initial": "=2 * pool"}],
            "transitions": [{"id": "a", "kind": "timed", "distribution": {"type": "exponential", "rate": "=3 * load"}, "servers": "=pool",
                 "inputs": [{"place": "A", "weight": "=max(1, pool - 3)"}], "guard": "A < 2 * pool + 1"}]}"#;
        let of = |set: &[(&str, f64)]| {
            let set: Vec<(String, f64)> = set.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            read_with(text, &set).map_err(|error| error.to_string())
        };
        let plain = text.replace("\"=2 * pool\"", "8").replace("\"=3 * load\"", "1.5").replace("\"=pool\"", "4");
        let plain = plain.replace("\"=max(1, pool - 3)\"", "1").replace("A < 2 * pool + 1", "A < 2 * 4 + 1");
        assert_eq!(of(&[]), Ok(read(&plain).expect("numbers in place")));
        let wide = of(&[("pool", 6.0)]).expect("it has a pool");
        assert_eq!((wide.initial(), wide.transitions()[0].inputs[0].weight), (vec![12], 3));
        assert_eq!(of(&[("cores", 2.0)]), Err("parameters: there is no cores: the net has load, pool".to_owned()));
        assert!(of(&[("pool", 2.5)]).expect_err("half a server").contains("servers"), "{:?}", of(&[("pool", 2.5)]));
    }

    #[test]
    fn another_schema_is_refused() {
        let text = r#"{"schema": "stpn-2", "name": "n", "time_unit": "s", "places": [], "transitions": []}"#;
        assert_eq!(read(text).expect_err("another schema").to_string(), "schema: stpn-2 was found; expected stpn-neutral-1");
    }
}
