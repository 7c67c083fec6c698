//! What a file says, and where it is wrong.

use super::*;
use crate::catalogue::KINDS;

fn upper(name: &str) -> Result<String, String> {
    if name.contains(' ') { Err("has a blank".to_owned()) } else { Ok(name.to_uppercase()) }
}

const PRESS: &str = r#"
[graph]
name = "press"
cores = 2
hop_us = 1.5

[[supplier]]
topic = "left"
shape = "u8[512]"
period_ms = 5
validity_ms = 10

[[supplier]]
topic = "right"
shape = "u8[512]"
period_ms = 5

[[operator]]
name = "both"
kind = "concatenate"
inputs = ["spectrum", { from = "raw", use = "latest" }]
relative_validity_ms = 5
on_invalid = "mark"
cost_us = 10

[[operator]]
name = "raw"
kind = "fft"
inputs = [{ from = "right", use = "window", events = 4, step = 2 }]

[[operator]]
name = "spectrum"
kind = "fft"
inputs = ["left"]
spectrum = "full"
cost_us = 40

[[output]]
topic = "press"
from = "both"
level = 1
deadline_ms = 2

[[output]]
topic = "alarm"
from = "spectrum"
"#;

#[track_caller]
fn read(text: &str) -> GraphFile {
    parse(text, KINDS, upper).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

/// The mistakes of a text: what is meant there, and what is told.
#[track_caller]
fn wrong(text: &str) -> Vec<(&str, String)> {
    let found = parse(text, KINDS, upper).err().unwrap_or_else(|| panic!("{text} is read"));
    found.into_iter().map(|mistake| (text[mistake.at].lines().next().unwrap_or_default(), mistake.what)).collect()
}

/// The press with one thing changed.
#[track_caller]
fn changed(from: &str, to: &str) -> Vec<(String, String)> {
    assert!(PRESS.contains(from), "{from}");
    let text = PRESS.replacen(from, to, 1);
    wrong(&text).into_iter().map(|(at, what)| (at.to_owned(), what)).collect()
}

/// The first mistake: where it is, and how it begins. What is behind it may follow from it.
#[track_caller]
fn check(from: &str, to: &str, at: &str, what: &str) {
    let found = changed(from, to);
    let (place, told) = &found[0];
    assert!(place == at && told.starts_with(what), "{from} as {to}: {found:?}");
}

#[test]
fn a_graph_is_read_whole() {
    let file = read(PRESS);
    let operator = |index: usize| file.graph.operator(OperatorId::of(index)).clone();
    assert_eq!((file.graph.name.as_str(), file.workers.cores.get(), file.workers.hop), ("press", 2, Nanos::new(1_500)));
    assert_eq!(file.graph.suppliers().iter().map(|supplier| supplier.topic.as_str()).collect::<Vec<_>>(), ["LEFT", "RIGHT"]);
    assert_eq!([0, 1, 2].map(|index| operator(index).shape.to_string()), ["complex128[1537]", "complex128[1025]", "complex128[512]"]);
    assert_eq!([0, 1, 2].map(|index| file.graph.level(OperatorId::of(index)).get()), [1, 1, 0]);
    assert_eq!((operator(0).on_invalid, operator(1).on_invalid, operator(0).relative.len()), (OnInvalid::Mark, OnInvalid::Shed, 1));
    assert_eq!(
        file.recipes.iter().map(|recipe| recipe.make(None).expect("it needs no key").shape).collect::<Vec<_>>(),
        [0, 1, 2].map(|index| operator(index).shape)
    );
    assert_eq!(file.graph.suppliers()[0].validity, Nanos::from_millis(10).into());
    assert_eq!((file.graph.outputs()[0].level.get(), file.graph.outputs()[1].topic.as_str()), (1, "ALARM"));
}

#[test]
fn without_sharing_each_output_has_its_own_operators() {
    let file = read(&PRESS.replace("cores = 2", "cores = 2\nsharing = false"));
    assert_eq!((file.graph.operators().len(), file.recipes.len()), (4, 4));
}

#[test]
fn a_mistake_is_told_with_its_key_at_its_place() {
    check("cores = 2", "cores = 0", "0", "cores must be a whole number from 1 to 256");
    check(
        "cores = 2",
        "core = 2",
        "core",
        "core is no key here: there are cores, hop_ms, hop_s, hop_us, name, on_invalid, preemption, replace_queued, sharing",
    );
    check("cores = 2", "preemption = 1", "1", "preemption must be true or false");
    check("\"u8[512]\"", "\"u8[0]\"", "\"u8[0]\"", "shape must have 1 point at least and 1048576 bytes at most");
    check("period_ms = 5", "period_ms = 0", "0", "period must be finite and greater than 0");
    check("period_ms = 5", "", "[[supplier]]", "period_ms is missing");
    check("period_ms = 5", "period = 5", "period", "period needs its unit: period_us, period_ms or period_s");
    check("validity_ms = 10", "validity = 10", "validity", "validity needs its unit: validity_us, validity_ms or validity_s");
    check("validity_ms = 10", "validity_ms = 10\nvalidity_us = 1", "10", "validity_ms says again what is said in another unit");
    check("\"alarm\"", "\"al arm\"", "\"al arm\"", "topic has a blank");
    check("topic = \"right\"", "topic = \"Left\"", "\"Left\"", "LEFT is a topic or an operator already");
    check("name = \"raw\"", "name = \"both\"", "\"both\"", "both is a topic or an operator already");
    check("kind = \"concatenate\"", "kind = \"concat\"", "\"concat\"", "kind must be one of");
    check("on_invalid = \"mark\"", "on_invalid = \"drop\"", "\"drop\"", "on_invalid must be \"shed\" or \"mark\"");
    check("spectrum = \"full\"", "spectrum = \"fully\"", "\"fully\"", "spectrum must be \"half\" or \"full\" or \"magnitude\"");
    check("spectrum = \"full\"", "window = \"full\"", "window", "window is no key here: there are");
    check("events = 4", "events = 65", "65", "events must be a whole number from 1 to 64");
    check("step = 2", "step = 5", "5", "step must be a whole number from 1 to 4");
    check("use = \"latest\"", "use = \"last\"", "\"last\"", "use must be \"consume\" or \"latest\" or \"window\"");
    check("from = \"raw\"", "from = \"row\"", "\"row\"", "row is no supplier's topic and no operator");
    check("from = \"both\"", "from = \"left\"", "\"left\"", "from must be an operator, and left is a topic: who wants it subscribes to it");
    check("inputs = [\"left\"]", "inputs = [\"left\", \"right\"]", "[\"left\", \"right\"]", "fft takes 1 inputs, and there are 2");
    check("inputs = [\"left\"]", "inputs = []", "[]", "inputs must be a list of 1 to 16 topics and operators");
    check("level = 1", "level = 8", "8", "level must be a whole number from 0 to 7");
    check(
        "relative_validity_ms = 5",
        "relative = [{ of = [\"left\", \"raw\"], within_ms = 5 }]",
        "\"left\"",
        "of must name inputs of this operator, each once",
    );
    check("\"alarm\"", "\"left\"", "[[output]]", "topic is a supplier's or another output's: each topic of a graph has one writer");
}

#[test]
fn what_is_needed_and_not_there_is_told() {
    assert_eq!(
        wrong("").iter().map(|(_, what)| what.as_str()).collect::<Vec<_>>(),
        [
            "graph must be a table: [graph]",
            "there is no [[supplier]]: a graph has suppliers, operators and outputs",
            "there is no [[operator]]: a graph has suppliers, operators and outputs",
            "there is no [[output]]: a graph has suppliers, operators and outputs",
        ]
    );
    let [(_, told)] = &wrong("[graph")[..] else { panic!("one mistake") };
    assert!(!told.is_empty());
    check("inputs = [\"left\"]", "inputs = [\"both\"]", "[\"both\"]", "operators wait for each other: spectrum -> both -> spectrum");
}

#[test]
fn file_beyond_limit_reports_limit_only() {
    let operators: String =
        (0..10_000).map(|at| format!("[[operator]]\nname = \"o{at}\"\nkind = \"max\"\ninputs = [\"left\"]\n")).collect();
    let text = PRESS.replacen("[[output]]", &format!("{operators}[[output]]"), 1);
    let found = wrong(&text);
    let expected = format!("there are {} of [[operator]], and at most 1024 are allowed", 10_000 + PRESS.matches("[[operator]]").count());
    assert_eq!(found.iter().map(|(_, what)| what.as_str()).collect::<Vec<_>>(), [expected]);
    for (key, most) in [("supplier", 1024), ("output", 1024), ("edge", 16), ("link", 256)] {
        let text = format!("{PRESS}\n{}", format!("[[{key}]]\n").repeat(most + 1));
        let [(_, told)] = &wrong(&text)[..] else { panic!("only the limit of {key}: {:?}", wrong(&text)) };
        assert!(told.ends_with(&format!("of [[{key}]], and at most {most} are allowed")), "{told}");
    }
}

#[test]
fn an_input_of_another_shape_is_told_and_nothing_behind_it() {
    let found = changed("topic = \"left\"\nshape = \"u8[512]\"", "topic = \"left\"\nshape = \"json[512]\"");
    assert_eq!(found, [("\"left\"".to_owned(), "this input is json[512]: fft takes a fixed number of real points".to_owned())]);
}

#[test]
fn several_mistakes_are_told_at_once() {
    let text = PRESS.replace("cores = 2", "cores = 0").replace("level = 1", "level = 9").replace("\"full\"", "5");
    assert_eq!(wrong(&text).iter().map(|(at, _)| *at).collect::<Vec<_>>(), ["0", "5", "9"]);
}

/// A file whose spectrum is made at the press and put together in the office.
fn placed(more: &str) -> String {
    let edges = "[[edge]]\nname = \"press\"\nway_ms = 2\n\n[[edge]]\nname = \"office\"\ncores = 4\nway_ms = 3\n\n";
    let both = PRESS.replace("name = \"both\"\n", "name = \"both\"\nedge = \"office\"\n");
    format!("{}\n{edges}{more}", both)
}

const LINKS: &str = "[[link]]\nfrom = \"spectrum\"\ntopic = \"over\"\ndeadline_ms = 5\n\n[[link]]\nfrom = \"raw\"\ntopic = \"over raw\"\n";

#[test]
fn operators_are_placed() {
    let file = read(&placed(&LINKS.replace("over raw", "over_raw")));
    let placement = file.placement.expect("it has edges");
    let hosts: Vec<_> = placement.hosts.iter().map(|host| (host.name.as_str(), host.workers.cores.get(), host.way)).collect();
    assert_eq!(hosts, [("press", 2, Nanos::from_millis(2)), ("office", 4, Nanos::from_millis(3))]);
    assert_eq!(placement.operators.iter().map(|edge| edge.index()).collect::<Vec<_>>(), [1, 0, 0]);
    let links: Vec<_> = placement.links.iter().map(|link| (link.topic.as_str(), link.deadline)).collect();
    assert_eq!(links, [("OVER", Nanos::from_millis(5).into()), ("OVER_RAW", Span::Infinite)]);
    assert!(read(PRESS).placement.is_none());
}

#[test]
fn a_supplier_goes_over_as_the_topic_that_it_is() {
    let file = read(
        &placed(LINKS)
            .replace("over raw", "press_raw")
            .replace("name = \"raw\"\n", "name = \"raw\"\nedge = \"office\"\n")
            .replace("[[link]]\nfrom = \"raw\"\ntopic = \"press_raw\"\n", "[[link]]\nfrom = \"right\"\ndeadline_ms = 4\n"),
    );
    let links: Vec<_> = file.placement.expect("it has edges").links.into_iter().map(|link| (link.topic, link.deadline)).collect();
    assert_eq!(links, [("OVER".to_owned(), Nanos::from_millis(5).into()), ("RIGHT".to_owned(), Nanos::from_millis(4).into())]);
}

#[test]
fn a_place_that_cannot_be_is_told() {
    let told = |text: &str| -> Vec<String> {
        parse(text, KINDS, upper).expect_err("it is wrong").into_iter().map(|mistake| mistake.what).collect()
    };
    assert_eq!(
        told(&placed("")),
        [
            "raw is needed on another edge than press: a [[link]] with from = \"raw\" and a topic is missing",
            "spectrum is needed on another edge than press: a [[link]] with from = \"spectrum\" and a topic is missing"
        ]
    );
    let wrong = placed(&LINKS.replace("over raw", "press")).replace("edge = \"office\"", "edge = \"ofice\"");
    assert_eq!(told(&wrong)[0], "edge must be one of press, office");
    assert_eq!(
        told(&placed(&LINKS.replace("over raw", "over"))),
        ["topic OVER is a supplier's, an output's or another link's: each topic has one writer"]
    );
    assert_eq!(told(&PRESS.replace("kind = \"concatenate\"", "edge = \"office\"\nkind = \"concatenate\"")), ["there is no [[edge]]"]);
    assert_eq!(told(&format!("{PRESS}\n{LINKS}")), ["a link goes from one [[edge]] to another, and there is none"]);
    let unneeded = placed(&LINKS.replace("over raw", "over_raw")) + "\n[[link]]\nfrom = \"both\"\ntopic = \"more\"\n";
    assert_eq!(told(&unneeded), ["no operator needs both"]);
}

#[test]
fn a_part_says_what_it_needs_from_which_edge_and_how_much_of_that_may_be_missing() {
    let links = LINKS.replace("over raw", "over_raw");
    let file = read(&placed(&links.replace("deadline_ms = 5", "loss_tolerance = 2")));
    let placement = file.placement.clone().expect("it has edges");
    let analysis = bodkin_broker::graph::placement::bound::PlacedAnalysis::of(&file.graph, &placement);
    let fetched = |edge| file.part(&placement, &analysis, edge).expect("something runs there").fetched;
    let office = fetched(1);
    assert_eq!((office.edges.as_slice(), office.own), (&["press".to_owned(), "office".to_owned()][..], 1));
    let tolerances: Vec<_> = office.suppliers.iter().map(|supplier| (supplier.from.index(), supplier.loss_tolerance)).collect();
    assert_eq!(tolerances, [(0, Some(2)), (0, None)]);
    assert_eq!(fetched(0).suppliers, []);
    let found = placed(&links.replace("deadline_ms = 5", "loss_tolerance = -1"));
    let told = wrong(&found);
    assert!(told[0].1.contains("loss_tolerance"), "{told:?}");
}

#[test]
fn a_second_way_over_edges_is_a_mistake_where_its_results_go_on() {
    let file = |place: &str| {
        format!(
            "[graph]\nname = \"g\"\n[[edge]]\nname = \"press\"\n[[edge]]\nname = \"office\"\n\
             [[supplier]]\ntopic = \"A\"\nshape = \"f64\"\nperiod_ms = 1\n[[supplier]]\ntopic = \"B\"\nshape = \"f64\"\nperiod_ms = 1\n\
             [[operator]]\nname = \"one\"\nkind = \"any\"\ninputs = [\"A\", \"B\"]\n\
             [[operator]]\nname = \"two\"\nkind = \"any\"\ninputs = [\"B\", \"one\"]\nedge = \"office\"\n\
             [[operator]]\nname = \"last\"\nkind = \"any\"\ninputs = [\"two\"]\nedge = \"{place}\"\n\
             [[link]]\nfrom = \"one\"\ntopic = \"OVER\"\n[[link]]\nfrom = \"two\"\ntopic = \"BACK\"\n[[output]]\ntopic = \"T\"\nfrom = \"last\"\n"
        )
    };
    read(&file("office"));
    let text = file("press");
    let told: Vec<String> = wrong(&text).into_iter().map(|(_, what)| what).collect();
    let expected = "two is needed on another edge, and operators that any event starts are on the way to it on more than one";
    assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
}
