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

/// The places around a transition; each arc has weight 1.
#[derive(Clone, Default)]
pub struct Around {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    tests: Vec<usize>,
    empty: Vec<usize>,
}

impl Around {
    /// Takes a token from each of these.
    pub fn from(inputs: &[usize]) -> Self {
        Self { inputs: inputs.to_vec(), ..Self::default() }
    }

    /// And gives one to each of these.
    pub fn to(mut self, outputs: &[usize]) -> Self {
        self.outputs.extend(outputs);
        self
    }

    /// While each of these holds one.
    pub fn while_in(mut self, tests: &[usize]) -> Self {
        self.tests.extend(tests);
        self
    }

    /// And none of these holds any.
    pub fn without(mut self, empty: &[usize]) -> Self {
        self.empty.extend(empty);
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
        let delay = Delay::Distribution(law.clone());
        let timed = Timed { delay, servers, memory: Memory::Enabling, priority: 0, weight: 1.0 };
        self.transition(name.into(), Firing::Timed(timed), around)
    }

    /// A further immediate transition; of the enabled ones the highest priority fires.
    pub fn immediate(&mut self, name: impl Into<String>, priority: u32, around: Around) -> usize {
        self.chance(name, priority, 1.0, around)
    }

    fn transition(&mut self, name: String, firing: Firing, around: Around) -> usize {
        let arcs = |places: Vec<usize>| places.into_iter().map(|place| Arc { place, weight: 1 }).collect();
        self.transitions.push(Transition {
            name,
            inputs: arcs(around.inputs),
            outputs: arcs(around.outputs),
            inhibitors: arcs(around.empty),
            tests: arcs(around.tests),
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
