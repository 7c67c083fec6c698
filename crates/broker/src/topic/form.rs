//! Topics and platforms as people declare them: keys with their units, and values. Whoever reads a format (TOML, JSON) hands both over as
//! texts; what is wrong comes back with the key as it was written, and whoever reads the format knows where that was.

use std::{collections::BTreeMap, num::NonZeroU32};

use super::{
    number::{NumberError, parse_span, parse_whole},
    platform::{LeaseTimes, Platform},
    spec::{Coverage, Level, LossTolerance, Period, Problem, SpecFault, TopicSpec, deadline_fault},
};
use crate::timing::{Nanos, Span, Wish};

/// A value as the format has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'t> {
    /// The decimal text of a number; `inf` is one.
    Number(&'t str),
    /// A text.
    Text(&'t str),
    /// True or false.
    Boolean(bool),
    /// A list, a table, a date: nothing that a key here takes.
    Other,
}

/// What a declaration says about topics alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicForm {
    /// Each one.
    pub spec: TopicSpec,
    /// How many (`count`).
    pub count: u32,
}

/// A key and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} {problem}")]
pub struct FormError {
    /// The key as it was written; where it is missing, as it could be.
    pub key: String,
    /// What is wrong.
    pub problem: FormProblem,
}

/// What is wrong with a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormProblem {
    /// There is no such key.
    #[error("is no key here")]
    Unknown,
    /// A time without its unit.
    #[error("needs its unit: {0}_us, {0}_ms or {0}_s")]
    NoUnit(&'static str),
    /// The same in two units.
    #[error("says again what {0} says")]
    Twice(String),
    /// It has to be there.
    #[error("is missing")]
    Missing,
    /// It has to be there because of another one.
    #[error("is missing: {0}")]
    MissingFor(&'static str),
    /// It says nothing beside another one.
    #[error("goes with period = inf only: otherwise the period is the least gap")]
    NotRare,
    /// Not of the form that the key takes.
    #[error("must be {0}")]
    NotA(&'static str),
    /// A number that does not count.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// The value cannot be meant.
    #[error(transparent)]
    Problem(#[from] Problem),
}

/// Topics alike that one entry may stand for.
pub const COUNT_MAX: u32 = 1_000_000;
/// Publishers that a topic may have at the same time.
pub const PUBLISHERS_MAX: u32 = 10_000;

const UNITS: [(&str, u64); 3] = [("_us", 1_000), ("_ms", 1_000_000), ("_s", 1_000_000_000)];

/// Keys of a topic that are times, and the others.
const TOPIC_TIMES: &[&str] = &[
    "period",
    "gap_min",
    "deadline",
    "jitter",
    "publisher_broker",
    "broker_subscriber_min",
    "broker_subscriber_max",
    "replica_cost",
    "dispatch_cost",
    "required_for_max",
];
const TOPIC_OTHERS: &[&str] =
    &["loss_tolerance", "shed_max", "retention", "mark_every", "level", "coverage", "durable", "fleet", "publishers", "count"];

/// Keys of the platform that are times, and the others.
const PLATFORM_TIMES: &[&str] = &[
    "failover",
    "lease",
    "heartbeat",
    "detect_jitter",
    "redirect",
    "broker_backup",
    "clock_error",
    "publisher_broker_min",
    "batch_window",
    "batch_cost",
    "blocking",
    "promote",
    "required_for_max",
];
const PLATFORM_OTHERS: &[&str] = &["drift_ppm", "cores", "load_max_percent"];

/// Every key of a topic, times with `_ms`.
pub fn topic_keys() -> impl Iterator<Item = String> {
    keys(TOPIC_TIMES, TOPIC_OTHERS)
}

/// Every key of the platform, times with `_ms`.
pub fn platform_keys() -> impl Iterator<Item = String> {
    keys(PLATFORM_TIMES, PLATFORM_OTHERS)
}

fn keys(times: &'static [&str], others: &'static [&str]) -> impl Iterator<Item = String> {
    times.iter().map(|key| format!("{key}_ms")).chain(others.iter().map(|key| (*key).to_owned()))
}

/// Reads a topic. What is left out is best effort, zero or one; only the period has to be there.
pub fn read_topic<'t>(fields: impl IntoIterator<Item = (&'t str, Field<'t>)>, platform: &Platform) -> Result<TopicForm, Vec<FormError>> {
    let mut form = Form::sort(fields, TOPIC_TIMES, TOPIC_OTHERS);
    let period = form.period();
    let best_effort = TopicSpec::best_effort(period.unwrap_or(Period::Every(Nanos::ZERO)));
    let latency_min = form.time("broker_subscriber_min").unwrap_or_default();
    let spec = TopicSpec {
        deadline: form.span("deadline").unwrap_or(best_effort.deadline),
        loss_tolerance: form.loss_tolerance().unwrap_or(best_effort.loss_tolerance),
        shed_max: form.whole("shed_max", 0, u32::MAX).unwrap_or_default(),
        retention: form.whole("retention", 0, u32::MAX).unwrap_or_default(),
        mark_every: form.positive("mark_every", u32::MAX),
        jitter: form.time("jitter").unwrap_or_default(),
        level: form.whole("level", 0, u32::from(Level::COUNT) - 1).and_then(|level| Level::new(level as u8)).unwrap_or_default(),
        publisher_broker: form.time("publisher_broker").unwrap_or(platform.publisher_broker_min),
        broker_subscriber_min: latency_min,
        broker_subscriber_max: form.time("broker_subscriber_max").unwrap_or(latency_min),
        replica_cost: form.time("replica_cost").unwrap_or_default(),
        dispatch_cost: form.time("dispatch_cost").unwrap_or_default(),
        coverage: form.coverage(),
        durable: form.boolean("durable"),
        fleet: form.boolean("fleet"),
        publishers: form.positive("publishers", PUBLISHERS_MAX),
        required_for_max: form.time("required_for_max").unwrap_or(platform.required_for_max),
        ..best_effort
    };
    let count = form.positive("count", COUNT_MAX).get();
    form.checked(period.is_some(), spec.fault_on(platform))?;
    Ok(TopicForm { spec, count })
}

/// Reads a platform. Times that are left out are zero; where neither `failover` nor anything that it is made of is stated, they are those
/// that Bodkin is shipped with.
pub fn read_platform<'t>(fields: impl IntoIterator<Item = (&'t str, Field<'t>)>) -> Result<Platform, Vec<FormError>> {
    let mut form = Form::sort(fields, PLATFORM_TIMES, PLATFORM_OTHERS);
    let is_stated = ["failover", "lease", "heartbeat", "drift_ppm", "detect_jitter", "redirect"].iter().any(|key| form.has(key));
    let stated = LeaseTimes {
        lease: form.time("lease").unwrap_or_default(),
        heartbeat: form.time("heartbeat").unwrap_or_default(),
        drift_ppm: form.whole("drift_ppm", 0, Platform::DRIFT_PPM_MAX).unwrap_or_default(),
        detect_jitter: form.time("detect_jitter").unwrap_or_default(),
        redirect: form.time("redirect").unwrap_or_default(),
    };
    let default = Platform::default();
    let platform = Platform {
        failover: form.time("failover"),
        lease: if is_stated { stated } else { LeaseTimes::SHIPPED },
        broker_backup: form.time("broker_backup").unwrap_or_default(),
        clock_error: form.time("clock_error").unwrap_or_default(),
        publisher_broker_min: form.time("publisher_broker_min").unwrap_or_default(),
        batch_window: form.time("batch_window").unwrap_or_default(),
        batch_cost: form.time("batch_cost").unwrap_or_default(),
        blocking: form.time("blocking").unwrap_or_default(),
        cores: form.positive("cores", Platform::CORES_MAX),
        load_max_percent: form.whole("load_max_percent", 1, Platform::LOAD_MAX_PERCENT).unwrap_or(default.load_max_percent),
        promote: form.time("promote").unwrap_or_default(),
        required_for_max: form.time("required_for_max").unwrap_or(default.required_for_max),
    };
    form.checked(true, platform.fault())?;
    Ok(platform)
}

/// Reads what a subscription asks of its topic: `deadline`, with its unit, and `loss_tolerance`. What is left out is not asked.
pub fn read_wish<'t>(fields: impl IntoIterator<Item = (&'t str, Field<'t>)>) -> Result<Wish, Vec<FormError>> {
    let mut form = Form::sort(fields, &["deadline"], &["loss_tolerance"]);
    let wish = Wish { deadline: form.time("deadline"), loss_tolerance: form.loss_tolerance() };
    form.checked(true, wish.deadline.and_then(deadline_fault))?;
    Ok(wish)
}

/// The fields under their keys without units, and what was wrong so far.
struct Form<'t> {
    /// The key as it was written, its unit in nanoseconds (of a time), its value.
    fields: BTreeMap<&'static str, (&'t str, u64, Field<'t>)>,
    errors: Vec<FormError>,
}

impl<'t> Form<'t> {
    fn sort(fields: impl IntoIterator<Item = (&'t str, Field<'t>)>, times: &'static [&str], others: &'static [&str]) -> Self {
        let mut form = Self { fields: BTreeMap::new(), errors: Vec::new() };
        for (key, field) in fields {
            let in_unit = UNITS.iter().find_map(|(unit, unit_ns)| Some((key.strip_suffix(unit)?, *unit_ns)));
            let time = in_unit.and_then(|(name, unit_ns)| Some((*times.iter().find(|time| **time == name)?, unit_ns)));
            let other = others.iter().find(|other| **other == key).map(|other| (*other, 1));
            match (time.or(other), times.iter().find(|time| **time == key)) {
                (Some((name, unit_ns)), _) => {
                    if let Some((before, ..)) = form.fields.insert(name, (key, unit_ns, field)) {
                        form.wrong(key, FormProblem::Twice(before.to_owned()));
                    }
                }
                (None, Some(time)) => form.wrong(key, FormProblem::NoUnit(time)),
                (None, None) => form.wrong(key, FormProblem::Unknown),
            }
        }
        form
    }

    fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    fn wrong(&mut self, key: &str, problem: FormProblem) {
        self.errors.push(FormError { key: key.to_owned(), problem });
    }

    /// Reads a field that is there; what `read` finds wrong is kept.
    fn read<T>(&mut self, name: &str, read: impl FnOnce(Field<'t>, u64) -> Result<T, FormProblem>) -> Option<T> {
        let (key, unit_ns, field) = *self.fields.get(name)?;
        read(field, unit_ns).map_err(|problem| self.wrong(key, problem)).ok()
    }

    /// A length of time that may have no end.
    fn span(&mut self, name: &'static str) -> Option<Span> {
        self.read(name, |field, unit_ns| match field {
            Field::Number(text) => Ok(parse_span(text, unit_ns)?),
            Field::Text("inf") => Ok(Span::Infinite),
            _ => Err(FormProblem::NotA("a number or inf")),
        })
    }

    fn time(&mut self, name: &'static str) -> Option<Nanos> {
        self.read(name, |field, unit_ns| match field {
            Field::Number(text) => parse_span(text, unit_ns)?.finite().ok_or(FormProblem::NotA("a number, not inf")),
            _ => Err(FormProblem::NotA("a number")),
        })
    }

    fn whole(&mut self, name: &'static str, from: u32, to: u32) -> Option<u32> {
        self.read(name, |field, _| match field {
            Field::Number(text) => {
                let number = u32::try_from(parse_whole(text)?).ok().filter(|number| (from..=to).contains(number));
                Ok(number.ok_or(Problem::Outside { from, to })?)
            }
            _ => Err(FormProblem::NotA("a whole number")),
        })
    }

    /// A number from 1 on, which is 1 where it is left out.
    fn positive(&mut self, name: &'static str, to: u32) -> NonZeroU32 {
        self.whole(name, 1, to).and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
    }

    fn boolean(&mut self, name: &'static str) -> bool {
        let read = self.read(name, |field, _| match field {
            Field::Boolean(boolean) => Ok(boolean),
            _ => Err(FormProblem::NotA("true or false")),
        });
        read.unwrap_or_default()
    }

    fn coverage(&mut self) -> Coverage {
        let read = self.read("coverage", |field, _| match field {
            Field::Text("acknowledged") => Ok(Coverage::Acknowledged),
            Field::Text("host") => Ok(Coverage::Host),
            _ => Err(FormProblem::NotA("\"acknowledged\" or \"host\"")),
        });
        read.unwrap_or_default()
    }

    fn loss_tolerance(&mut self) -> Option<LossTolerance> {
        match self.fields.get("loss_tolerance")?.2 {
            Field::Number("inf" | "+inf") | Field::Text("inf") => Some(LossTolerance::Any),
            Field::Number(_) => self.whole("loss_tolerance", 0, u32::MAX).map(LossTolerance::AtMost),
            _ => self.read("loss_tolerance", |_, _| Err(FormProblem::NotA("a whole number or inf"))),
        }
    }

    /// T, and where that is infinite the gap that is policed.
    fn period(&mut self) -> Option<Period> {
        if !self.has("period") {
            self.wrong("period_ms", FormProblem::Missing);
        }
        match (self.span("period")?, self.time("gap_min")) {
            (Span::Infinite, Some(gap_min)) => Some(Period::Rare { gap_min }),
            (Span::Infinite, None) => {
                if !self.has("gap_min") {
                    self.wrong("gap_min_ms", FormProblem::MissingFor("rare events (period = inf) are policed by their least gap"));
                }
                None
            }
            (Span::Finite(period), _) => {
                if let Some((key, ..)) = self.fields.get("gap_min").copied() {
                    self.wrong(key, FormProblem::NotRare);
                }
                Some(Period::Every(period))
            }
        }
    }

    /// All errors; where there are none and all parts have been read, the fault of the whole, under the key as it was written.
    fn checked(mut self, is_whole: bool, fault: Option<SpecFault>) -> Result<(), Vec<FormError>> {
        if let Some(SpecFault { key, problem }) = fault.filter(|_| is_whole && self.errors.is_empty()) {
            let written = self.fields.get(key).map_or_else(|| format!("{key}_ms"), |(written, ..)| (*written).to_owned());
            self.wrong(&written, problem.into());
        }
        if self.errors.is_empty() { Ok(()) } else { Err(self.errors) }
    }
}

#[cfg(test)]
mod tests;
