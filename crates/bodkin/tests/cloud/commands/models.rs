//! `bodkin model calibrate, predict, validate`: a cloud under load becomes nets, and these say what other loads would do.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use super::text;
use crate::support::cloud::BINARY;

/// How many times more or less a prediction may be of a load of some hundredths of a second an answer.
const ORDER: f64 = 50.0;

/// Runs `bodkin model` with the words of `line`; `DIR` is the directory.
fn model(place: &TempDir, line: &str) -> Output {
    let directory = place.path().display().to_string();
    let words = line.split_whitespace().map(|word| word.replace("DIR", &directory));
    Command::new(BINARY).args(["--output", "json", "model"]).args(words).output().expect("the binary starts")
}

#[track_caller]
fn document(place: &TempDir, line: &str) -> Value {
    let output = model(place, line);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

/// Rows of `validate`, whose exit code says whether all of them hold. What a busy machine does to a load of a second is no net's to say, and it may do it to one of
/// two loads: how near predictions are is what recordings show.
#[track_caller]
fn validated(place: &TempDir, line: &str) -> Vec<Value> {
    let output = model(place, line);
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let holds = |row: &Value, figure: &str| row[figure]["is_within"] == true || row[figure]["is_in_spread"] == true;
    let all_hold = rows.iter().all(|row| holds(row, "mean") && holds(row, "p99"));
    assert_eq!(output.status.code(), Some(if all_hold { 0 } else { 4 }), "{output:?}");
    for row in &rows {
        let (predicted, measured) = (number(row, "/mean/predicted_us"), number(row, "/mean/measured_us"));
        assert!((predicted / measured).ln().is_finite(), "{row}");
    }
    rows
}

fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {pointer} of {value}"))
}

#[test]
fn a_cloud_under_load_becomes_nets_that_predict_it() {
    let place = TempDir::new().expect("a temporary directory");
    let calibrated =
        document(&place, "calibrate --out DIR/nets --load 1x1,1x3 --seconds 1 --repeat 1 --orchestrations 200 --services 20 --events 2000");
    let loads = calibrated["loads"].as_array().expect("the loads");
    assert_eq!(loads.iter().map(|load| load["load"].as_str().expect("a load")).collect::<Vec<_>>(), ["1x1", "1x3"]);
    let off = |load: &Value| 100.0 * (number(load, "/net_mean_us") / number(load, "/measured_mean_us") - 1.0).abs();
    let off_percent = loads.iter().map(off).fold(0.0, f64::max);
    assert!(loads.iter().all(|load| number(load, "/measured_mean_us") > 0.0) && off_percent.is_finite(), "{loads:?}");
    let sent = number(&calibrated, "/costs/0/costs/answer/mean_us") + number(&calibrated, "/costs/0/costs/write/mean_us");
    assert!(
        sent > 0.0 && number(&calibrated, "/costs/0/costs/execute/mean_us") > 0.0,
        "how `sent` is shared is a fit's to say: {calibrated}"
    );

    let file = "DIR/nets/calibration.json";
    let predicted = |options: &str| document(&place, &format!("predict {file} --events 5000 --calibrated-within 100000 {options}"));
    let (one, nine) = (predicted("--cores 2"), predicted("--cores 2 --subscribers 9"));
    let [of_one, of_nine] = [&one, &nine].map(|predicted| number(predicted, "/responses_per_s"));
    assert!(1.1 * of_one < of_nine, "{of_one} deliveries/s to one, {of_nine} to nine");
    for quantile in ["p50", "p90", "p99"] {
        let [low, value] = ["low", "value"].map(|end| number(&one, &format!("/{quantile}_us/{end}")));
        assert!(0.0 < low && low <= value, "{quantile}: {one}");
        // Of few responses that come late together there is no upper end.
        let high = one.pointer(&format!("/{quantile}_us/high")).expect("it is told, or null");
        assert!(high.is_null() || high.as_f64().is_some_and(|high| value <= high), "{quantile}: {one}");
    }
    assert!(number(&one, "/p50_us/value") <= number(&one, "/p99_us/value"));
    let (alone, many) = (predicted("--consumers 1"), predicted("--consumers 64 --cores 1"));
    assert!(number(&many, "/mean_us/value") > 2.0 * number(&alone, "/mean_us/value"), "64 consumers wait for one processor");
    let beside_others = predicted("--consumers 64 --cores 1 --others 0.5");
    assert!(number(&beside_others, "/mean_us/value") > 1.5 * number(&many, "/mean_us/value"), "and for what others leave of it");
    let refused = model(&place, &format!("predict {file} --consumers 1 --cores 2 --others 2.5 --calibrated-within 100000"));
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("others keep 2.5 of 2 processors busy"), "{refused:?}");
    let curve = one["curve"].as_array().expect("the curve");
    assert!(curve.iter().all(|point| number(point, "/1") <= 1.0) && number(curve.last().expect("points"), "/1") > 0.9999);

    let text_of = |name: &str| fs::read_to_string(place.path().join("nets").join(name)).expect("it was written");
    let written: Value = serde_json::from_str(&text_of("calibration.json")).expect("JSON");
    assert_eq!(written["orchestration"]["consumers"], serde_json::json!([1, 4]), "{written}");
    // Each net has a gate of its own: that of events says nothing of orchestrations.
    let mut far_off = written.clone();
    far_off["mean_off_percent"] = serde_json::json!(1e9);
    fs::write(place.path().join("nets/far_off.json"), far_off.to_string()).expect("written");
    assert_eq!(model(&place, "predict DIR/nets/far_off.json --events 1000 --calibrated-within 100000").status.code(), Some(2));
    document(&place, "predict DIR/nets/far_off.json --consumers 2 --events 1000 --calibrated-within 100000");
    assert!((number(&written, "/mean_off_percent") - off_percent).abs() < 1e-6, "{written}");
    let cores = number(&written, "/cores");
    let on_one = text_of("calibration.json").replace(&format!("\"cores\": {cores}"), "\"cores\": 1");
    fs::write(place.path().join("nets/one.json"), on_one).expect("written");
    document(&place, "predict DIR/nets/one.json --events 5000 --calibrated-within 1000");
    for (line, told) in [
        ("--cores 2 --calibrated-within 1000", "2 processors cannot be predicted from a calibration on one"),
        ("--calibrated-within 0", "for a load that it was made from, so it predicts no other"),
        ("--consumers 2 --calibrated-within 0", "for a load that it was made from, so it predicts no other"),
        ("--consumers 2 --cores 2 --calibrated-within 100000", "2 processors cannot be predicted from a calibration on one"),
    ] {
        let refused = model(&place, &format!("predict DIR/nets/one.json {line}"));
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(text(&refused.stderr).contains(told), "{refused:?}");
    }

    let rows = validated(&place, &format!("validate {file} --recording DIR/nets/recording.json"));
    assert_eq!((rows[1]["load"].as_str(), &rows[1]["was_calibrated_with"]), (Some("1x3"), &Value::Bool(true)), "{rows:?}");
    let (predicted, measured) = (number(&rows[0], "/mean/predicted_us"), number(&rows[0], "/mean/measured_us"));
    assert!((number(&rows[0], "/mean/error_percent") - 100.0 * (predicted / measured - 1.0)).abs() < 1e-9, "{rows:?}");
    let missed = model(&place, &format!("validate {file} --recording DIR/nets/recording.json --mean-within 0 --p99-within 0"));
    assert_eq!(missed.status.code(), Some(4), "nothing is exact: {missed:?}");

    let told = |row: &Value| (row["load"].as_str().expect("a load").to_owned(), row["was_calibrated_with"] == true);
    let loads = ["1x1", "1x3", "orchestrations x1", "orchestrations x4"].map(|load| (load.to_owned(), true));
    assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), loads, "{rows:?}");

    // From one of the two loads of the recording the other one, and no more; likewise of the orchestrations, where they are to be calibrated.
    let line = "validate --calibrate 1x1 --calibrate-orchestrations 1 --recording DIR/nets/recording.json --events 2000";
    let rows = validated(&place, line);
    let loads = ["1x3", "orchestrations x4"].map(|load| (load.to_owned(), false));
    assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), loads, "{rows:?}");
    let without = model(&place, "validate --calibrate 1x1 --recording DIR/nets/recording.json --events 2000");
    assert!(text(&without.stderr).contains("the calibration has none to hold against them: --calibrate-orchestrations"), "{without:?}");
    let none = model(&place, "validate --calibrate 1x1,1x3 --recording DIR/nets/recording.json --events 2000");
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    assert!(text(&none.stderr).contains("no load is left to predict"), "{none:?}");
    let kept = "validate --calibrate 1x2 --load 1x1 --seconds 1 --repeat 1 --orchestrations 0 --events 2000 --keep DIR/kept.json";
    assert_eq!(validated(&place, kept)[0]["load"].as_str(), Some("1x1"));
    let kept: Value = serde_json::from_str(&fs::read_to_string(place.path().join("kept.json")).expect("it was written")).expect("JSON");
    assert_eq!(kept["events"].as_array().map(Vec::len), Some(2), "both loads");
    let recording: Value = serde_json::from_str(&text_of("recording.json")).expect("JSON");
    for run in recording["orchestrations"].as_array().expect("orchestrations") {
        let [own, consumers, clouds] =
            ["/processor_ns", "/processors/consumers_ns", "/processors/clouds_ns"].map(|counter| number(run, counter));
        assert!(consumers > 0.0 && own == consumers + clouds && number(run, "/processors/elapsed_ns") > 0.0, "{run}");
    }

    assert_eq!((calibrated.get("intercloud"), written.get("intercloud")), (Some(&Value::Null), Some(&Value::Null)), "none was recorded");
    let refused = model(&place, &format!("predict {file} --consumers 2 --intercloud --calibrated-within 100000"));
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(text(&refused.stderr).contains("no orchestrations that another cloud answers"), "{refused:?}");

    for net in ["events-1x1.json", "events-1x3.json", "orchestration.json"] {
        let checked = Command::new(BINARY).args(["model", "check"]).arg(place.path().join("nets").join(net)).output().expect("it starts");
        assert_eq!(checked.status.code(), Some(0), "{net}: {checked:?}");
    }
}

/// Events go through a graph of operators, in a cloud of its own for each load.
#[test]
fn a_graph_under_load_becomes_a_net_that_predicts_other_workers_and_rates() {
    let place = TempDir::new().expect("a temporary directory");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/petri/press.toml"), place.path().join("press.toml"))
        .expect("it is there");
    let line = "calibrate --out DIR/nets --load 1x1 --seconds 1 --repeat 1 --orchestrations 0 --events 1000 --graph DIR/press.toml --graph-load 50,100:2";
    let graph = document(&place, line)["graph"].clone();
    assert_eq!((&graph["loads"], &graph["workers"]), (&serde_json::json!(["50:1", "100:2"]), &Value::from(1)), "{graph}");
    assert_eq!(
        graph["graph"]["rows"],
        serde_json::json!([[0], [1], [2], [3]]),
        "none is the only one that takes another's results and nothing else"
    );
    let operators = graph["costs"][1]["costs"]["operators"].as_array().expect("operators");
    assert!(
        operators.len() == 4 && operators.iter().all(|operator| operator["work"]["mean_us"].as_f64().is_some_and(|us| us > 0.0)),
        "{graph}"
    );

    let file = "DIR/nets/calibration.json";
    let predicted = |options: &str| document(&place, &format!("predict {file} --events 5000 --calibrated-within 100000 {options}"));
    let levels = predicted("--graph-load 150:2 --cores 4")["levels"].as_array().expect("levels").clone();
    assert_eq!(levels.iter().map(|of_level| number(of_level, "/level")).collect::<Vec<_>>(), [0.0, 2.0]);
    assert!(levels.iter().all(|of_level| number(of_level, "/p50_us/value") <= number(of_level, "/p99_us/value")), "{levels:?}");
    assert!((number(&levels[0], "/expected_per_s") - 375.0).abs() < 1e-6, "{levels:?}");
    let (few, many) = (predicted("--graph-load 1000 --cores 1"), predicted("--graph-load 1000:4 --cores 8"));
    assert!(number(&few, "/levels/1/responses_per_s") <= 1.05 * number(&many, "/levels/1/responses_per_s"), "{few} {many}");

    let rows = validated(&place, &format!("validate {file} --recording DIR/nets/recording.json --events 1000"));
    let told: Vec<&str> = rows.iter().map(|row| row["load"].as_str().expect("a load")).collect();
    assert_eq!(told, ["1x1", "graph 50:1, level 0", "graph 50:1, level 2", "graph 100:2, level 0", "graph 100:2, level 2"]);
    let line = "validate --calibrate 1x1 --calibrate-graph 50 --recording DIR/nets/recording.json --events 1000";
    let rows = validated(&place, line);
    assert_eq!(
        rows.iter().map(|row| row["load"].as_str().expect("a load")).collect::<Vec<_>>(),
        ["graph 100:2, level 0", "graph 100:2, level 2"]
    );
    let net = Command::new(BINARY).args(["model", "check"]).arg(place.path().join("nets/graph.json")).output().expect("it starts");
    assert_eq!(net.status.code(), Some(0), "{net:?}");
    for (line, code, told) in [
        ("calibrate --out DIR/nets --graph DIR/missing.toml", 1, "missing.toml"),
        ("calibrate --out DIR/nets --graph DIR/press.toml --graph-event NOTHING=1", 1, "NOTHING is no supplier of"),
        ("calibrate --out DIR/nets --graph-load 50", 2, "--graph <FILE.toml>"),
        ("calibrate --out DIR/nets --graph DIR/press.toml --graph-load 0", 2, "`0` is no load of a graph"),
        ("predict DIR/nets/calibration.json --graph-load 100 --consumers 2", 2, "cannot be used with"),
    ] {
        let output = model(&place, line);
        assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
        assert!(text(&output.stderr).contains(told), "{line}: {output:?}");
    }
}

/// Two clouds, a relay between them, and consumers of the one whom the other one serves.
#[test]
fn orchestrations_in_another_cloud_become_a_net_that_predicts_other_consumers() {
    let place = TempDir::new().expect("a temporary directory");
    let line = "calibrate --out DIR/nets --load 1x1 --seconds 1 --repeat 1 --orchestrations 0 --services 5 --events 1000 \
                --intercloud 60 --consumers 1,3 --certificates DIR/certificates";
    let laws = document(&place, line)["intercloud"].clone();
    assert_eq!(laws["consumers"], serde_json::json!([1, 3]), "{laws}");
    let steps: Vec<&str> = laws["steps"].as_array().expect("steps").iter().map(|step| step["name"].as_str().expect("a name")).collect();
    let dialogues = ["gsd", "icn"].map(|name| ["call", "there and back", "decides"].map(|part| format!("{name} {part}")));
    let expected: Vec<&String> = dialogues.iter().flatten().collect();
    let first = steps.iter().position(|step| step == expected[0]).expect("a call");
    assert_eq!(steps[first..first + expected.len()].iter().collect::<Vec<_>>(), expected, "{steps:?}");
    assert!(steps[0] == "transit" && steps.contains(&"parse") && steps.contains(&"execute"), "{steps:?}");
    assert!(laws["steps"].as_array().expect("steps")[1..].iter().all(|step| number(step, "/work_us") > 0.0), "{laws}");
    assert!(number(&laws, "/beside_us/alone") >= 0.0 && number(&laws, "/beside_us/many") >= 0.0, "{laws}");

    let predicted = |options: &str| {
        document(&place, &format!("predict DIR/nets/calibration.json --intercloud --events 20000 --calibrated-within 100000 {options}"))
    };
    let (one, many) = (predicted("--consumers 1 --cores 1"), predicted("--consumers 200 --cores 1"));
    assert!(number(&many, "/mean_us/value") > 2.0 * number(&one, "/mean_us/value"), "200 consumers wait for one processor");
    assert!(number(&many, "/responses_per_s") >= 0.9 * number(&one, "/responses_per_s"), "which does no less for them");

    let rows = validated(&place, "validate DIR/nets/calibration.json --recording DIR/nets/recording.json --events 2000");
    let told = |row: &Value| (row["load"].as_str().expect("a load").to_owned(), row["was_calibrated_with"] == true);
    let expected = ["1x1", "intercloud x1", "intercloud x3"].map(|load| (load.to_owned(), true));
    assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), expected);
    for row in &rows[1..] {
        let (predicted, measured) = (number(row, "/mean/predicted_us"), number(row, "/mean/measured_us"));
        assert!((predicted / measured).ln().abs() < ORDER.ln(), "{row}");
    }
    let line = "validate --calibrate 1x1 --calibrate-consumers 3 --recording DIR/nets/recording.json --events 2000";
    let rows = validated(&place, line);
    assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), [("intercloud x1".to_owned(), false)], "{rows:?}");
    let net = Command::new(BINARY).args(["model", "check"]).arg(place.path().join("nets/intercloud.json")).output().expect("it starts");
    assert_eq!(net.status.code(), Some(0), "{net:?}");
    fs::write(place.path().join("press.toml"), "").expect("written");
    for (line, option) in [
        ("calibrate --out DIR/nets --intercloud 5", "--intercloud"),
        ("validate --calibrate 1x1 --intercloud 5", "--intercloud"),
        ("calibrate --out DIR/nets --graph DIR/press.toml", "--graph"),
    ] {
        let refused = model(&place, &format!("{line} --cloud http://127.0.0.1:1"));
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let told = format!("{option} cannot be recorded in the cloud at 127.0.0.1:1");
        assert!(text(&refused.stderr).contains(&told) && text(&refused.stderr).contains("leave out --cloud"), "{refused:?}");
    }
}

/// From three loads that were recorded on a machine with little else to do, four others. Nothing is measured here, so that a busy machine changes nothing;
/// of as few events as these a net's luck is more than what is promised of it, which the whole recording shows (`docs/experiments/predictions.md`).
#[test]
fn a_recording_of_a_quiet_machine_is_predicted() {
    let place = TempDir::new().expect("a temporary directory");
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/petri/recording.json");
    fs::copy(recording, place.path().join("recording.json")).expect("it is there");
    let rows = validated(&place, "validate --calibrate 1x2,1x4,4x4 --recording DIR/recording.json --events 2000");
    assert_eq!(rows.iter().map(|row| row["load"].as_str().expect("a load")).collect::<Vec<_>>(), ["8x8", "1x1", "1x6", "10x10"]);
    for row in rows {
        assert!(number(&row, "/mean/error_percent").abs() < 60.0, "{row}");
        let (predicted, measured) = (number(&row, "/p99/predicted_us"), number(&row, "/p99/measured_us"));
        assert!((predicted / measured).ln().abs() < 6_f64.ln(), "{row}");
    }
}

/// Of three loads each is predicted by the two others, and what is asked is told how far off that was.
#[test]
fn each_load_of_a_recording_is_left_out_in_turn() {
    let place = TempDir::new().expect("a temporary directory");
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/petri/recording.json");
    let mut recording: Value = serde_json::from_str(&fs::read_to_string(recording).expect("it is there")).expect("JSON");
    recording["events"].as_array_mut().expect("runs").retain(|run| run["publishers"] == 1 && run["subscribers"] != 6);
    fs::write(place.path().join("recording.json"), recording.to_string()).expect("written");
    let calibrated = document(&place, "calibrate --out DIR/nets --recording DIR/recording.json --events 1000");
    let left_out = calibrated["left_out"]["events"].as_array().expect("loads");
    assert_eq!(left_out.iter().map(|load| load["load"].as_str().expect("a load")).collect::<Vec<_>>(), ["1x2", "1x4", "1x1"]);
    for (load, seen) in left_out.iter().zip(calibrated["loads"].as_array().expect("loads")) {
        let off_percent = 100.0 * (number(load, "/by_others/predicted/0/mean_us") / number(seen, "/measured_mean_us") - 1.0);
        assert!((number(load, "/by_others/predicted/0/mean_off_percent") - off_percent).abs() < 1e-9, "{load} {seen}");
        assert!(number(load, "/by_others/predicted/0/mean_us") != number(seen, "/net_mean_us"), "a net of the others is another one");
    }
    assert_eq!(calibrated["left_out"]["orchestration"], serde_json::json!([]), "none were recorded");

    let predicted = |options: &str| model(&place, &format!("predict DIR/nets/calibration.json --events 1000 {options}"));
    let near = predicted("--subscribers 3 --left-out-within 1000");
    let document: Value = serde_json::from_slice(&near.stdout).expect("one JSON document");
    assert_eq!((&document["calibration"]["nearest"], &document["calibration"]["is_beyond"]), (&Value::from("1x4"), &Value::from(false)));
    assert_eq!(document["calibration"]["nearest_by_others"]["load"], "1x4");
    assert_eq!(text(&near.stderr), "", "nothing is doubtful");
    for (options, told) in [
        ("--subscribers 3 --left-out-within 0", "more than 0 % off for 1x4, from which this is predicted"),
        ("--subscribers 60", "further from the recorded loads (1x2, 1x4, 1x1) than they are from each other"),
        ("--subscribers 3 --cores 8", "other processors"),
    ] {
        let doubtful = predicted(options);
        assert_eq!(doubtful.status.code(), Some(0), "a doubt is no refusal: {doubtful:?}");
        assert!(text(&doubtful.stderr).contains(told), "{options}: {doubtful:?}");
    }
}

/// The same of a graph: from half of its rate and all of it another rate, and a higher one with two workers in the place of one. It was recorded while the machine had other work, more of it under some loads than
/// under others: what is predicted is as far off as that. Nothing is measured here.
#[test]
fn a_recording_of_a_graph_is_predicted() {
    let place = TempDir::new().expect("a temporary directory");
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/petri/graph_recording.json");
    fs::copy(recording, place.path().join("recording.json")).expect("it is there");
    let rows = validated(&place, "validate --calibrate 1x2 --calibrate-graph 50,100 --recording DIR/recording.json --events 1000");
    let limits = [("150:2", 125.0, 4.0), ("75:1", 40.0, 2.0)];
    let expected =
        limits.iter().flat_map(|(load, percent, times)| [0, 2].map(|level| (format!("graph {load}, level {level}"), *percent, *times)));
    let expected: Vec<(String, f64, f64)> = expected.collect();
    assert_eq!(rows.len(), 1 + expected.len(), "{rows:?}");
    for (row, (load, percent, times)) in rows[1..].iter().zip(expected) {
        assert_eq!(row["load"].as_str(), Some(load.as_str()));
        assert!(number(row, "/mean/error_percent").abs() < percent, "{row}");
        let (predicted, measured) = (number(row, "/p99/predicted_us"), number(row, "/p99/measured_us"));
        assert!((predicted / measured).ln().abs() < f64::ln(times), "{row}");
    }
}

#[test]
fn a_recording_or_calibration_with_a_mistake_is_refused_with_its_name() {
    let place = TempDir::new().expect("a temporary directory");
    let write = |name: &str, text: &str| fs::write(Path::new(place.path()).join(name), text).expect("written");
    write("other.json", r#"{"schema": "another", "machine": "m", "cores": 2, "events": [], "orchestrations": []}"#);
    write("empty.json", r#"{"schema": "bodkin-recording-1", "machine": "m", "cores": 2, "events": [], "orchestrations": []}"#);
    for (line, code, told) in [
        ("calibrate --out DIR/nets --recording DIR/other.json", 1, "other.json: its schema is another; expected bodkin-recording-1"),
        ("calibrate --out DIR/nets --recording DIR/empty.json", 1, "there is no run with events in the recording"),
        ("calibrate --out DIR/nets --recording DIR/missing.json", 1, "missing.json"),
        ("predict DIR/empty.json", 2, "empty.json"),
        ("validate --calibrate 1x1 --recording DIR/empty.json", 1, "there is no run with events in the recording"),
        ("validate --recording DIR/empty.json", 2, "CALIBRATION"),
        ("validate DIR/missing.json --recording DIR/empty.json", 2, "missing.json"),
        ("calibrate --out DIR/nets --load 0x1", 2, "`0x1` is no load"),
    ] {
        let output = model(&place, line);
        assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
        assert!(text(&output.stderr).contains(told), "{line}: {output:?}");
    }
}
