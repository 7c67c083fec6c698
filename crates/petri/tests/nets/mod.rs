//! Nets from the literature, made from their definitions.
#![allow(dead_code, reason = "every test that includes them uses some")]

use bodkin_petri::{
    distribution::{Distribution, Exponential},
    net::{Arc, Delay, Firing, Memory, Net, Place, Servers, Timed, Transition},
};

/// A transition with arcs of weight 1 and one exponential clock.
pub fn exponential(name: &str, rate: f64, inputs: &[usize], outputs: &[usize]) -> Transition {
    let law = Exponential::new(rate).expect("rates are above 0");
    timed(name, Distribution::Exponential(law), Servers::SINGLE, inputs, outputs)
}

/// A transition with arcs of weight 1.
pub fn timed(name: &str, distribution: Distribution, servers: Servers, inputs: &[usize], outputs: &[usize]) -> Transition {
    let arcs = |places: &[usize]| places.iter().map(|place| Arc { place: *place, weight: 1 }).collect();
    Transition {
        name: name.to_owned(),
        inputs: arcs(inputs),
        outputs: arcs(outputs),
        inhibitors: Vec::new(),
        tests: Vec::new(),
        guard: None,
        firing: Firing::Timed(Timed {
            delay: Delay::Distribution(distribution),
            servers,
            memory: Memory::Enabling,
            priority: 0,
            weight: 1.0,
        }),
    }
}

/// A net of places that hold these tokens.
pub fn net(name: &str, places: &[(&str, u32)], transitions: Vec<Transition>) -> Net {
    let places = places.iter().map(|(name, initial)| Place { name: (*name).to_owned(), initial: *initial }).collect();
    Net::new(name, "s", places, transitions).expect("the net is right")
}

/// Four cells of a kanban system with `tickets` each: Ciardo and Tilgner, ICASE report 96-35, with the rates that probabilistic model
/// checkers use. Cell `i` has its places at `4 i`: tickets, being made, to be made again, done.
pub fn kanban(tickets: u32) -> Net {
    let names: Vec<String> = (1..=4).flat_map(|cell| ["kanban", "machine", "back", "out"].map(|place| format!("{place}{cell}"))).collect();
    let places: Vec<(&str, u32)> =
        names.iter().enumerate().map(|(index, name)| (name.as_str(), if index % 4 == 0 { tickets } else { 0 })).collect();
    let place = |cell: usize, which: usize| 4 * (cell - 1) + which;
    let (ticket, machine, back, out) = (0, 1, 2, 3);
    let mut transitions = vec![
        exponential("in1", 1.0, &[place(1, ticket)], &[place(1, machine)]),
        exponential(
            "synch123",
            0.4,
            &[place(1, out), place(2, ticket), place(3, ticket)],
            &[place(1, ticket), place(2, machine), place(3, machine)],
        ),
        exponential(
            "synch234",
            0.5,
            &[place(2, out), place(3, out), place(4, ticket)],
            &[place(2, ticket), place(3, ticket), place(4, machine)],
        ),
        exponential("out4", 0.9, &[place(4, out)], &[place(4, ticket)]),
    ];
    for (cell, (redo, ok)) in (1..).zip([(0.36, 0.84), (0.42, 0.98), (0.39, 0.91), (0.33, 0.77)]) {
        transitions.push(exponential(&format!("redo{cell}"), redo, &[place(cell, machine)], &[place(cell, back)]));
        transitions.push(exponential(&format!("ok{cell}"), ok, &[place(cell, machine)], &[place(cell, out)]));
        transitions.push(exponential(&format!("back{cell}"), 0.3, &[place(cell, back)], &[place(cell, machine)]));
    }
    net(&format!("kanban{tickets}"), &places, transitions)
}
