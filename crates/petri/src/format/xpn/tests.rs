use super::*;
use crate::{
    format::{json, pnml},
    net::{Delay, Firing, Timed},
    solve::{Question, When, solve},
};

fn document(law: &str, arcs: &str) -> String {
    format!(
        r#"<?xml version="1.0"?><tpn-editor xmlns="http://www.oris-tool.org"><tpn-entities><joint uuid="j"/>
        <place uuid="a" x="1" y="2"><properties><property id="0.default.name" name="A"/><property id="default.marking" marking="2"/></properties></place>
        <place uuid="b"><properties><property id="0.default.name" name="B"/></properties></place>
        <transition uuid="t"><features/><properties><property id="0.default.name" name="T"/>
        <property id="10.default.enablingFunction" enabling-function="A &gt; 0 &amp;&amp; B == 0"/>
        <property id="transition.stochastic" {law}/></properties></transition>{arcs}</tpn-entities></tpn-editor>"#
    )
}

const ARCS: &str = r#"<arc from="a" to="j"/><arc from="j" to="t"/><arc from="t" to="b"/><inhibitor-arc from="b" to="t"/>"#;

fn check(law: &str, expected: &str) {
    let net = read(&document(law, ARCS), "n", "s").unwrap_or_else(|error| panic!("{law}: {error}"));
    let transition = &net.transitions()[0];
    assert_eq!((net.places()[0].initial, transition.inputs.len(), transition.outputs.len(), transition.inhibitors.len()), (2, 1, 1, 1));
    assert_eq!((net.degree(0, &[2, 0]), net.degree(0, &[2, 1])), (1, 0));
    let found = match &transition.firing {
        Firing::Immediate { priority, weight } => format!("immediate {priority} {weight}"),
        Firing::Timed(Timed { delay: Delay::Distribution(law), .. }) => format!("{} {}", law.name(), (1e12 * law.mean()).round() / 1e12),
        Firing::Timed(_) => "rate".to_owned(),
    };
    assert_eq!(found, expected);
}

#[test]
fn every_kind_of_transition_is_read() {
    check(r#"property-data-type="0.type.immediate" priority="3" weight="2""#, "immediate 3 2");
    check(r#"property-data-type="1.type.uniform" eft="1.0" lft="3.0""#, "uniform 2");
    check(r#"property-data-type="2.type.deterministic" value="4" weight="1""#, "deterministic 4");
    check(r#"property-data-type="3.type.exponential" lambda="0.5""#, "exponential 2");
    check(r#"property-data-type="4.type.erlang" k="3" lambda="1.5""#, "erlang 2");
    check(r#"property-data-type="5.type.expolynomial" expressions="3 * x^2" efts="0" lfts="1""#, "expolynomial 0.75");
    check(r#"property-data-type="5.type.expolynomial" expressions="4 * x * Exp[-2 x]" efts="[0]" lfts="[+inf]""#, "expolynomial 1");
    check(r#"property-data-type="5.type.expolynomial" expressions="6 * x - 6*x^2" efts="0" lfts="1""#, "expolynomial 0.5");
    check(r#"property-data-type="3.type.exponential" lambda="0.25*(2)""#, "exponential 2");
    check(r#"property-data-type="3.type.exponential" lambda="0.5*A""#, "rate");
}

#[test]
fn what_is_not_understood_is_refused_with_its_line() {
    let law = r#"property-data-type="3.type.exponential" lambda="1""#;
    for (law, arcs, reason) in [
        (
            r#"property-data-type="6.type.other""#,
            ARCS,
            "line 4, transition T: a delay of 6.type.other is not understood; expected 0.type.immediate",
        ),
        (r#"property-data-type="4.type.erlang" k="2.5" lambda="1""#, ARCS, "k is 2.5; expected a whole number"),
        (r#"property-data-type="4.type.erlang" k="-3" lambda="1""#, ARCS, "k is -3; expected a whole number"),
        (
            r#"property-data-type="4.type.erlang" k="5000000000" lambda="1""#,
            ARCS,
            "k is 5000000000; expected a whole number from 0 to 4294967295",
        ),
        (r#"property-data-type="0.type.immediate" priority="0.5""#, ARCS, "priority is 0.5; expected a whole number"),
        (r#"property-data-type="0.type.immediate" priority="-1""#, ARCS, "priority is -1; expected a whole number"),
        (r#"property-data-type="0.type.immediate" weight="A""#, ARCS, "weight is A: it depends on places whose tokens move"),
        (r#"property-data-type="0.type.immediate" weight="1/0""#, ARCS, "weight"),
        (r#"property-data-type="3.type.exponential" lambda="2*C""#, ARCS, "lambda is 2*C: column 3: C is no place"),
        (
            r#"property-data-type="5.type.expolynomial" expressions="2 * x" efts="0; 1" lfts="1; 2""#,
            ARCS,
            "a density of several pieces is not read",
        ),
        (r#"property-data-type="5.type.expolynomial" expressions="3 * x" efts="0" lfts="1""#, ARCS, "its mass is 1.5; expected 1"),
        (
            r#"property-data-type="5.type.expolynomial" expressions="2 * y" efts="0" lfts="1""#,
            ARCS,
            "y was found; expected a number, x, x^2 or Exp[-3 x]",
        ),
        (r#"property-data-type="3.type.exponential""#, ARCS, "its distribution has no lambda"),
        (law, r#"<arc from="a" to="x"/>"#, "line 6, arc: it does not lead"),
        (law, r#"<arc from="a" to="j"/>"#, "it ends at a joint"),
        (law, r#"<arc from="a" to="j"/><arc from="j" to="j"/>"#, "its joints lead in a circle"),
        (law, r#"<test-arc from="a" to="t"/>"#, "line 6, test-arc: test-arc is not understood"),
        (
            law,
            r#"<arc from="a" to="t"><properties><property id="of.another" by="2"/></properties></arc>"#,
            "its property of.another is not understood",
        ),
        (law, r#"<arc from="a" to="t"><properties><property id="m" multiplicity="1.5"/></properties></arc>"#, "its multiplicity is 1.5"),
        (law, "</tpn-entities><tpn-entities>", "line 6, tpn-entities: it is a second net: a file with one net is expected"),
        (
            law,
            r#"<place uuid="a"><properties><property id="0.default.name" name="again"/></properties></place>"#,
            "its uuid is there twice",
        ),
    ] {
        let error = read(&document(law, arcs), "n", "s").expect_err(reason).to_string();
        assert!(error.contains(reason), "{reason}: {error}");
    }
}

/// As ORIS writes a file: features, empty properties, notes, attributes of drawing, arcs by way of joints.
#[test]
fn the_event_handler_is_the_same_net_in_the_form_of_oris() {
    let oris = |text: &str| read(text, "event_handler_k1_pool4_cores4", "ms").expect("it is right");
    let (net, own) = (
        oris(include_str!("../../../../../vectors/petri/oris/event_handler_k1.xpn")),
        json::read(include_str!("../../../../../vectors/petri/nets/event_handler_k1.json")),
    );
    assert_eq!(net, own.expect("it is right"));
}

/// Rates over places, weights over places that never change, a fixed delay, a density, weights of arcs.
#[test]
fn a_pool_of_replicas_is_read_with_its_constants() {
    let net = read(include_str!("../../../../../vectors/petri/oris/replicas.xpn"), "replicas", "h").expect("it is right");
    let transition = |name: &str| &net.transitions()[net.transition(name).expect(name)];
    let Firing::Timed(Timed { delay: Delay::Rate(rate), .. }) = &transition("age").firing else { panic!("{:?}", transition("age")) };
    assert_eq!(rate.value(&net.initial()), 0.02, "0.01 for each of two");
    assert_eq!(
        (&transition("seen").firing, &transition("missed").firing),
        (&Firing::Immediate { priority: 1, weight: 0.75 }, &Firing::Immediate { priority: 1, weight: 0.25 })
    );
    assert_eq!(transition("restart").inputs[0].weight, 2);
    let mean = |name: &str| match &transition(name).firing {
        Firing::Timed(Timed { delay: Delay::Distribution(law), .. }) => law.mean(),
        other => panic!("{other:?}"),
    };
    assert_eq!(mean("look"), 12.0);
    assert!((mean("restart") - 0.5).abs() < 1e-12, "{}", mean("restart"));
    assert_eq!(json::read(&json::write(&net)).expect("what is written is right"), net);
    assert_eq!(pnml::read(&pnml::write(&net)).expect("what is written is right"), net);
    let answer = solve(&Question { error: 1e-3, ..Question::new(&net, When::At(vec![30.0])) }).expect("an answer");
    let tokens: f64 = ["Healthy", "Aged", "Found"].iter().map(|name| answer.values[0][net.place(name).expect(name)]).sum();
    assert!((tokens - 2.0).abs() < 1e-2, "no replica is lost: {tokens}");
}

/// Whatever an unknown attribute is called and wherever it is, the file is refused with its name.
#[test]
fn unknown_attributes_are_never_passed_over() {
    let text = document(r#"property-data-type="3.type.exponential" lambda="1""#, ARCS);
    assert!(read(&text, "n", "s").is_ok());
    for element in ["tpn-editor", "tpn-entities", "joint", "place", "property", "transition", "features", "arc", "inhibitor-arc"] {
        for name in ["capacity", "reset", "preemptive", "kind"] {
            let changed = text.replacen(&format!("<{element}"), &format!("<{element} {name}=\"1\""), 1);
            let error = read(&changed, "n", "s").expect_err(&changed).to_string();
            assert!(error.contains(&format!("attribute {name} is not understood")), "{element} {name}: {error}");
        }
    }
    let property = text.replacen("<property id=\"default.marking\"", "<property id=\"4.capacity\"", 1);
    let error = read(&property, "n", "s").expect_err("a property of no place").to_string();
    assert!(error.contains("place A") && error.contains("its property 4.capacity is not understood"), "{error}");
}
