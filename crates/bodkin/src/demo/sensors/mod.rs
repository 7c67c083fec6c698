//! This machine's sensors: what the kernel measures, read from `/proc` and `/sys`.
//!
//! A source is one file: the text the kernel gives, parsed by a pure function, and what is made of it.

mod disk;
mod memory;
mod network;
mod processor_frequency;
mod processor_load;
mod rate;
mod temperature;

use std::{collections::BTreeMap, fmt};

/// A measured value with what it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The value, in the sensor's unit.
    pub value: f64,
    /// Parts or companions of the value by name, in the same unit.
    pub parts: BTreeMap<String, f64>,
}

/// Something this machine measures.
pub trait Sensor: Send {
    /// The service definition it is offered as; in upper case it is the event type.
    fn service(&self) -> &'static str;

    /// Unit of the value and its parts.
    fn unit(&self) -> &'static str;

    /// Measures. Sensors of changes measure since the call before.
    fn read(&mut self) -> Result<Reading, Absent>;
}

/// Why a sensor cannot be read here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent(String);

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Absent {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// What this machine measures and what it does not.
pub struct Sensors {
    /// The sensors that are there, each read once.
    pub there: Vec<Box<dyn Sensor>>,
    /// The services of those that are not, and why.
    pub absent: Vec<(&'static str, Absent)>,
}

/// Tries every source.
pub fn open() -> Sensors {
    let all: [Box<dyn Sensor>; 6] = [
        Box::<processor_load::ProcessorLoad>::default(),
        Box::new(processor_frequency::ProcessorFrequency),
        Box::new(memory::Memory),
        Box::<disk::Disk>::default(),
        Box::<network::Network>::default(),
        Box::new(temperature::Temperature),
    ];
    let mut sensors = Sensors { there: Vec::new(), absent: Vec::new() };
    for mut sensor in all {
        match sensor.read() {
            Ok(_) => sensors.there.push(sensor),
            Err(why) => sensors.absent.push((sensor.service(), why)),
        }
    }
    sensors
}

fn read_text(path: &str) -> Result<String, Absent> {
    std::fs::read_to_string(path).map_err(|error| Absent::new(format!("{path}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_measures_processor_and_memory() {
        let Sensors { there, absent } = open();
        let services: Vec<_> = there.iter().map(|sensor| sensor.service()).collect();
        assert!(services.contains(&"processor-load") && services.contains(&"memory-used"), "{services:?}, absent {absent:?}");
        assert_eq!(there.len() + absent.len(), 6);
        for mut sensor in there {
            let reading = sensor.read().unwrap();
            assert!(reading.value.is_finite() && reading.parts.values().all(|part| part.is_finite()), "{}: {reading:?}", sensor.service());
        }
    }
}
