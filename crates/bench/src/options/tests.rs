use std::time::Duration;

use clap::Parser;

use super::*;
use crate::state::State;

#[derive(Debug, Parser)]
struct Shell {
    #[command(flatten)]
    bench: BenchCommand,
}

fn whole(line: &str) -> Result<BenchCommand, clap::Error> {
    Shell::try_parse_from(std::iter::once("bench").chain(line.split_whitespace())).map(|shell| shell.bench)
}

fn parse(line: &str) -> Result<Experiment, clap::Error> {
    whole(line).map(|bench| bench.experiment)
}

fn load(line: &str) -> LoadOptions {
    match parse(line).unwrap() {
        Experiment::Register(options) | Experiment::Query(options) | Experiment::Orchestrate(options) => options,
        other => panic!("{other:?}"),
    }
}

fn services(line: &str) -> Vec<u32> {
    load(line).states(false).into_iter().map(|state| state.services).collect()
}

#[test]
fn a_mode_is_chosen_by_its_flag() {
    let simultaneous = |count| Mode::Simultaneous { count };
    assert_eq!(load("register --simultaneous 10000").round(), Round::Runs(vec![simultaneous(10_000)]));
    assert_eq!(load("query --simultaneous 100,500").round(), Round::Runs(vec![simultaneous(100), simultaneous(500)]));
    assert_eq!(load("orchestrate --rate 1 --count 50").round(), Round::Runs(vec![Mode::OpenLoop { rate_per_s: 1.0, count: 50 }]));
    assert_eq!(load("query --sequential").round(), Round::Runs(vec![Mode::Sequential { count: 2000 }]));
    assert_eq!(load("query --find-limit --below 0.1s").round(), Round::FindLimit(Duration::from_millis(100)));
    assert_eq!(load("query --sequential --repeat 2").repeat, 2);
}

#[test]
fn a_state_is_named_or_follows_from_the_load() {
    assert_eq!(services("query --sequential --services 100000,1000"), [1000, 100_000]);
    assert_eq!(services("orchestrate --simultaneous 7,3"), [7]);
    assert_eq!(services("orchestrate --sequential"), [1000]);
    assert_eq!(services("query --find-limit --below 1s"), [10_000]);
    assert_eq!(services("query --sequential --state data:9:30"), [30]);
    assert_eq!(load("register --simultaneous 5").states(true), [State { seed: 1, services: 0 }]);
    assert_eq!(load("register --simultaneous 5 --state data:9").states(true), [State { seed: 9, services: 10_000 }]);
    let foreign = "register --simultaneous 5 --target http://127.0.0.1:1";
    assert_ne!(load(foreign).states(true)[0].seed, 1, "what a foreign cloud was given once it would refuse");
}

#[test]
fn a_target_names_its_systems() {
    let options = load("query --sequential --target http://127.0.0.1:8443 --server-pid 4 --orchestrator http://127.0.0.1:1");
    assert_eq!(options.target.target.unwrap().address.port(), 8443);
    assert_eq!(options.target.orchestrator.unwrap().address.port(), 1);
    assert_eq!(options.target.server_pid, Some(4));
}

#[test]
fn outputs_and_thresholds_go_with_every_experiment() {
    let bench = whole("start --report a.html --threshold p99<10ms --json b.json --threshold errors<1").unwrap();
    assert_eq!((bench.output.report.unwrap(), bench.output.json.unwrap()), ("a.html".into(), "b.json".into()));
    assert_eq!(bench.output.threshold.len(), 2);
}

#[test]
fn limits_are_for_an_own_server() {
    let limited = load("query --sequential --cpu 0.25 --memory 64M").target.server.limits().unwrap();
    assert_eq!((limited.processors, limited.memory_bytes), (Some(0.25), Some(64 << 20)));
    assert_eq!(load("query --sequential").target.server.limits(), None);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for line in [
        "register",
        "register --simultaneous 5 --sequential",
        "register --simultaneous 0",
        "register --simultaneous 5 --count 3",
        "register --rate 0",
        "register --rate nan",
        "register --find-limit",
        "register --simultaneous 5 --below 1s",
        "query --sequential --server-pid 4",
        "query --sequential --target https://127.0.0.1:1",
        "query --sequential --target http://127.0.0.1:1 --data x",
        "query --sequential --target http://127.0.0.1:1 --cpu 0.5",
        "query --sequential --state data:1 --services 5",
        "query --sequential --state something",
        "query --sequential --threshold p99",
        "data --seed 1",
        "data --seed 1 --into x --target http://127.0.0.1:1",
        "event",
        "event --scenario F",
        "event --scenario D --threads 0",
        "event --scenario C --dead 95%",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn a_scenario_is_named_in_any_case() {
    for (name, scenario) in [("A", Scenario::A), ("b1", Scenario::B1), ("B6", Scenario::B6), ("c", Scenario::C), ("d", Scenario::D)] {
        match parse(&format!("event --scenario {name} --core 1")).unwrap() {
            Experiment::Event(options) => assert_eq!((options.scenario, options.core), (scenario, Some(1))),
            other => panic!("{other:?}"),
        }
    }
}
