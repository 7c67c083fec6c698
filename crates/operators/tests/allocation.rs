//! An operator that has seen its largest input allocates nothing.

#[path = "../../broker/tests/counting/mod.rs"]
mod counting;

use bodkin_broker::graph::{Event, Inputs};
use bodkin_operators::{
    Keys,
    catalogue::{Input, KINDS},
    parameters::{Parameters, Value},
};
use counting::allocations;

/// Of each kind: shapes of its inputs, parameters.
fn recipe(kind: &str) -> (Vec<&'static str>, Vec<(&'static str, Value)>) {
    let (number, text) = (|number: &str| Value::Number(number.to_owned()), |text: &str| Value::Text(text.to_owned()));
    let texts = |texts: &[&str]| Value::List(texts.iter().map(|each| text(each)).collect());
    match kind {
        "all" => (vec!["u8[4]"; 2], vec![("within_ms", number("1"))]),
        "any" | "concatenate" => (vec!["u8[4]"; 2], vec![]),
        "decrypt" => (vec!["bytes[<=56]"], vec![("key", text("k")), ("shape", text("u8[8]"))]),
        "encrypt" => (vec!["u8[64]"], vec![("key", text("k"))]),
        "ekf" => (
            vec!["u8[512]"],
            vec![("model", text("constant_velocity")), ("process_noise", number("1")), ("measurement_noise", number("1"))],
        ),
        "fft" | "kurtosis" | "max" | "min" | "rms" => (vec!["i16[512]"], vec![]),
        "join" => (vec!["f64[8]", "json[<=8]"], vec![("names", texts(&["a", "b"]))]),
        "map" => (vec!["f64[64]", "f64"], vec![("expression", text("sqrt(abs(x0)) + x1 * i"))]),
        "median" | "moving_average" => (vec!["f32[100]"], vec![("window", number("33"))]),
        "rate_limit" => (vec!["u8[64]"], vec![("every_us", number("1"))]),
        "resample" => (vec!["f64[4]", "f64"], vec![("every_us", number("1"))]),
        "select" => (vec!["json[<=64]"], vec![("path", text("a.1"))]),
        "threshold" => (vec!["f64[8]"], vec![("on", number("1"))]),
        _ => panic!("{kind} has no recipe here"),
    }
}

#[test]
fn every_operator_allocates_nothing_after_its_first_rounds() {
    assert_ne!(allocations(|| drop(std::hint::black_box(vec![1]))), 0, "allocations are counted");
    for kind in KINDS {
        let (shapes, parameters) = recipe(kind.name);
        let inputs: Vec<Input> = shapes.iter().map(|shape| Input { shape: shape.parse().expect("it is a shape"), events: 1 }).collect();
        let mut keys = Keys::new(1, 1);
        keys.add("k", &[9; 32]).expect("it is a key");
        let parameters = parameters.into_iter().map(|(key, value)| (key.to_owned(), value));
        let mut parameters = Parameters::new(parameters).at("graph", "operator").with_keys(Some(keys));
        let mut made = (kind.make)(&mut parameters, &inputs).unwrap_or_else(|misfit| panic!("{}: {misfit}", kind.name));
        let payloads: Vec<Vec<u8>> = inputs.iter().map(|input| payload(kind.name, *input)).collect();
        let (mut out, mut state) = (Vec::with_capacity(made.shape.bytes_max()), Vec::new());
        let mut round = |time_ns: u64| {
            let events: [Event<'_>; 2] = std::array::from_fn(|at| Event {
                payload: &payloads[at.min(payloads.len() - 1)],
                created_ns: time_ns * 1_500,
                publisher: 1,
            });
            out.clear();
            state.clear();
            // What is no JSON, or not encrypted, is refused: that allocates nothing either.
            let _ = made.operator.run(&Inputs::new(&events[..payloads.len()], &[1, 1][..payloads.len()]), &mut out);
            made.operator.save(&mut state);
        };
        (0..200).for_each(&mut round);
        assert_eq!(allocations(|| (200..400).for_each(&mut round)), 0, "{}", kind.name);
    }
}

fn payload(kind: &str, input: Input) -> Vec<u8> {
    match (kind, input.shape.element().name()) {
        ("select", _) => b"{\"a\":[1,2.5],\"b\":{}}".to_vec(),
        (_, "json") => b"{\"x\":1}".to_vec(),
        _ => vec![0x3F; input.shape.bytes_max()],
    }
}
