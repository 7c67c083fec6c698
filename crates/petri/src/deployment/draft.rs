//! A net while it is being put together.

use crate::{
    distribution::Distribution,
    net::{Arc, Delay, Firing, Memory, Net, NetError, Place, Servers, Timed, Transition},
};

/// Places and transitions so far.
#[derive(Default)]
pub struct Draft {
    places: Vec<Place>,
    transitions: Vec<Transition>,
}

/// The places around a transition, each with the weight of its arc.
#[derive(Clone, Default)]
pub struct Around {
    inputs: Vec<Arc>,
    outputs: Vec<Arc>,
    tests: Vec<Arc>,
    empty: Vec<Arc>,
}

fn single(places: &[usize]) -> impl Iterator<Item = Arc> {
    places.iter().map(|place| Arc { place: *place, weight: 1 })
}

impl Around {
    /// Takes a token from each of these.
    pub fn from(inputs: &[usize]) -> Self {
        Self { inputs: single(inputs).collect(), ..Self::default() }
    }

    /// And so many from this one.
    pub fn several(mut self, place: usize, weight: u32) -> Self {
        self.inputs.push(Arc { place, weight });
        self
    }

    /// While this one holds two.
    pub fn while_two_in(mut self, place: usize) -> Self {
        self.tests.push(Arc { place, weight: 2 });
        self
    }

    /// And gives one to each of these.
    pub fn to(mut self, outputs: &[usize]) -> Self {
        self.outputs.extend(single(outputs));
        self
    }

    /// While each of these holds one.
    pub fn while_in(mut self, tests: &[usize]) -> Self {
        self.tests.extend(single(tests));
        self
    }

    /// And none of these holds any.
    pub fn without(mut self, empty: &[usize]) -> Self {
        self.empty.extend(single(empty));
        self
    }
}

impl Draft {
    /// A further place; gives its index.
    pub fn place(&mut self, name: impl Into<String>, initial: u32) -> usize {
        self.places.push(Place { name: name.into(), initial });
        self.places.len() - 1
    }

    /// A further timed transition with this many servers; gives its index.
    pub fn timed(&mut self, name: impl Into<String>, law: &Distribution, servers: Servers, around: Around) -> usize {
        self.clock(name.into(), law, servers, Memory::Enabling, around)
    }

    /// One with a single server that goes on where it was stopped; gives its index.
    pub fn interrupted(&mut self, name: impl Into<String>, law: &Distribution, around: Around) -> usize {
        self.clock(name.into(), law, Servers::SINGLE, Memory::Age, around)
    }

    fn clock(&mut self, name: String, law: &Distribution, servers: Servers, memory: Memory, around: Around) -> usize {
        let delay = Delay::Distribution(law.clone());
        self.transition(name, Firing::Timed(Timed { delay, servers, memory, priority: 0, weight: 1.0 }), around)
    }

    /// A further immediate transition; of the enabled ones the highest priority fires.
    pub fn immediate(&mut self, name: impl Into<String>, priority: u32, around: Around) -> usize {
        self.chance(name, priority, 1.0, around)
    }

    fn transition(&mut self, name: String, firing: Firing, around: Around) -> usize {
        self.transitions.push(Transition {
            name,
            inputs: around.inputs,
            outputs: around.outputs,
            inhibitors: around.empty,
            tests: around.tests,
            guard: None,
            firing,
        });
        self.transitions.len() - 1
    }

    /// A further immediate transition, which fires in proportion to its weight beside others of its priority; gives its index.
    pub fn chance(&mut self, name: impl Into<String>, priority: u32, weight: f64, around: Around) -> usize {
        self.transition(name.into(), Firing::Immediate { priority, weight }, around)
    }

    /// The net.
    ///
    /// # Errors
    /// See [`Net::new`].
    pub fn net(self, name: impl Into<String>) -> Result<Net, NetError> {
        Net::new(name, "us", self.places, self.transitions)
    }
}
