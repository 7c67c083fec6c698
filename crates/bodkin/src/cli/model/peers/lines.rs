//! A net as lines, for programs that should need nothing to read it: each place, transition and arc is one, words apart by blanks.

use std::fmt::Write;

use bodkin_petri::{
    distribution::Form,
    net::{Arc, Delay, Firing, Memory, Net, Servers, Transition},
};

/// The lines. What the other programs have no word for is named only, and refused there: other delays, `clocks` that are several or are remembered, test arcs.
pub fn of(net: &Net) -> String {
    let mut text = String::new();
    for place in net.places() {
        let _ = writeln!(text, "place {} {}", place.name, place.initial);
    }
    for transition in net.transitions() {
        let _ = writeln!(text, "transition {}", transition.name);
        let _ = writeln!(text, "{}", delay(&transition.firing));
        if transition.timed().is_some_and(|timed| timed.servers != Servers::SINGLE || timed.memory != Memory::Enabling) {
            text.push_str("clocks\n");
        }
        let Transition { inputs, outputs, inhibitors, tests, .. } = transition;
        for (word, arcs) in [("input", inputs), ("output", outputs), ("inhibitor", inhibitors), ("test", tests)] {
            arcs.iter().for_each(|Arc { place, weight }| _ = writeln!(text, "{word} {} {weight}", net.places()[*place].name));
        }
        if let Some(guard) = &transition.guard {
            let guard = guard.text(&|place| net.places()[place].name.clone()).to_string();
            let _ = writeln!(text, "guard {}", guard.replace(" and ", " && ").replace(" or ", " || "));
        }
    }
    text
}

fn delay(firing: &Firing) -> String {
    let timed = match firing {
        Firing::Immediate { priority, weight } => return format!("immediate {priority} {weight}"),
        Firing::Timed(timed) => timed,
    };
    let Delay::Distribution(distribution) = &timed.delay else { return "rate".to_owned() };
    match Form::from(distribution) {
        Form::Exponential { rate } => format!("exponential {rate}"),
        Form::Erlang { shape, rate } => format!("erlang {shape} {rate}"),
        Form::Uniform { min, max } => format!("uniform {min} {max}"),
        Form::Deterministic { value } => format!("deterministic {value}"),
        _ => "general".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bodkin_petri::format::json;

    #[test]
    fn every_part_of_a_net_is_a_line() {
        let text = r#"{"schema": "stpn-neutral-1", "name": "n", "time_unit": "s", "places": [{"id": "A", "initial": 2}, {"id": "B", "initial": 0}],
            "transitions": [
                {"id": "t", "kind": "timed", "distribution": {"type": "erlang", "shape": 3, "rate": 0.5}, "inputs": [{"place": "A", "weight": 2}],
                 "outputs": [{"place": "B"}], "inhibitors": [{"place": "B", "weight": 4}], "guard": "A > 1 and B < 3"},
                {"id": "i", "kind": "immediate", "priority": 2, "weight": 0.25, "inputs": [{"place": "B"}]},
                {"id": "w", "kind": "timed", "distribution": {"type": "gamma", "shape": 1.5, "rate": 1}, "servers": 2, "inputs": [{"place": "B"}]}]}"#;
        let lines = of(&json::read(text).expect("the net is right"));
        let expected = "place A 2\nplace B 0\n\
            transition t\nerlang 3 0.5\ninput A 2\noutput B 1\ninhibitor B 4\nguard (A > 1) && (B < 3)\n\
            transition i\nimmediate 2 0.25\ninput B 1\n\
            transition w\ngeneral\nclocks\ninput B 1\n";
        assert_eq!(lines, expected);
    }
}
