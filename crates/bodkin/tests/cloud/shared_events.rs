//! Event types that a cloud shares with another one: who may hear them there, and what becomes of them while the relay, or the other cloud, is away.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::cloud::Launch;
use crate::support::patience::eventually;
use crate::support::sharing::{account_of, client, hear, hear_as, listen, payloads, publish, share, shared};
use crate::support::side::{Side, neighbours, neighbours_with};

/// What was not taken is tried again.
const SOON: [&str; 4] = ["--push-backoff-min-ms", "50", "--push-backoff-max-ms", "500"];

#[test]
fn an_event_type_is_heard_in_the_other_cloud_by_whom_rules_let() {
    let place = TempDir::new().expect("a temporary directory");
    let (one, two) = neighbours(place.path());
    let too_soon = one.run("cloud share-event heat two --deadline-ms 99");
    assert!(!too_soon.status.success() && String::from_utf8_lossy(&too_soon.stderr).contains("must be 100 to"), "{too_soon:?}");
    let id = share(&one, "two", 20_000);
    let stream = listen(&two);
    assert_eq!(two.done("cloud accept-event Heat one"), json!({"eventType": "HEAT", "cloud": "one.test"}));
    two.done("system add stranger --address 127.0.0.1 --port 9002");
    let stranger = hear_as(&two, "stranger", "");
    // Which cloud it is from this cloud says itself.
    let of_it = hear_as(&two, "display", "&metadata.cloud=one.test");
    let of_another = hear_as(&two, "display", "&metadata.cloud=three.test");
    // Without a rule the other cloud hears nothing of it.
    publish(&one, "unheard");
    one.done(&format!("auth intercloud add --cloud {id} --provider sensor --service heat"));
    for number in 1..=3 {
        publish(&one, &number.to_string());
    }
    let heard = payloads(&stream, 3);
    assert_eq!(heard.iter().map(|event| event["payload"].as_str().unwrap_or_default()).collect::<Vec<_>>(), ["1", "2", "3"]);
    let numbers = |event: &Value| {
        let metadata = &event["metaData"];
        assert_eq!((&metadata["room"], &metadata["cloud"], &metadata["publisher"]), (&json!("7"), &json!("one.test"), &json!("sensor")));
        let identity = metadata["identity"].as_str().expect("its numbers there");
        identity.split('-').map(|number| number.parse().expect("a number")).collect::<Vec<u64>>()
    };
    let [first, last] = [&heard[0], &heard[2]].map(numbers);
    assert_eq!((&first[..2], first[2] + 2), (&last[..2], last[2]), "{heard:?}");
    assert!(eventually(|| shared(&one)["delivery"]["delivered"] == 3), "{}", shared(&one));
    let row = shared(&one);
    assert_eq!((&row["cloud"], &row["deadlineMs"], &row["delivery"]["late"]), (&json!("two.test"), &json!(20_000), &json!(0)), "{row}");
    let account = account_of(&two);
    // On a busy machine an answer may come too late, and the event once more.
    let told = (&account["cloud"], &account["eventType"], &account["taken"], &account["lost"]);
    assert_eq!(told, (&json!("one.test"), &json!("HEAT"), &json!(3), &json!(0)), "{account}");
    let metrics = client(&two, "sysop").expect(&two.cloud, "GET", "/metrics", None, 200).text();
    assert!(metrics.lines().any(|line| line == "bodkin_heard_events_total 3"), "{metrics}");
    assert_eq!(stranger.count(), 0, "nothing lets it hear what comes from other clouds");
    assert_eq!((payloads(&of_it, 3).len(), of_another.count()), (3, 0));
    // A rule that is taken back counts for the next event, and a share that is taken back is gone.
    let rules = one.done("auth intercloud list");
    one.done(&format!("auth intercloud remove {}", rules["data"][0]["id"]));
    publish(&one, "unheard");
    one.done(&format!("auth intercloud add --cloud {id} --provider sensor --service heat"));
    publish(&one, "4");
    assert_eq!(payloads(&stream, 4)[3]["payload"], "4");
    assert!(eventually(|| account_of(&two)["lost"] == 1), "the one between them is missing, and counted: {}", account_of(&two));
    one.done("cloud unshare-event HEAT two");
    assert_eq!(one.done("cloud shared-events")["count"], 0);
    // A cloud that is forgotten hears nothing any more, and leaves nothing behind.
    one.done("cloud share-event heat two");
    one.done("cloud rm two");
    assert_eq!(one.done("cloud shared-events")["count"], 0);
    let systems = one.done("system list");
    assert!(!systems.to_string().contains("two-test"), "{systems}");
}

#[test]
fn what_the_operator_of_the_hearing_cloud_does_not_accept_is_refused_and_told() {
    let place = TempDir::new().expect("a temporary directory");
    let (one, two) = neighbours_with(place.path(), &SOON);
    let id = share(&one, "two", 20_000);
    one.done(&format!("auth intercloud add --cloud {id} --provider sensor --service heat"));
    let stream = listen(&two);
    // The consent to another event type is none to this one.
    two.done("cloud accept-event cold one");
    publish(&one, "too early");
    let is_told = |side: &Side| side.done("cloud heard-events")["data"].as_array().map_or(0, Vec::len) == 2;
    assert!(eventually(|| is_told(&two)), "{}", two.done("cloud heard-events"));
    let rows = two.done("cloud heard-events");
    let zeroes = json!({"cloud": "one.test", "eventType": "COLD", "accepted": true, "taken": 0, "lost": 0, "repeated": 0, "refused": 0});
    assert_eq!(rows["data"][0], zeroes, "{rows}");
    assert_eq!(
        (&rows["data"][1]["eventType"], &rows["data"][1]["accepted"], &rows["data"][1]["taken"]),
        (&json!("HEAT"), &json!(false), &json!(0))
    );
    assert!(rows["data"][1]["refused"].as_u64() >= Some(1), "{rows}");
    assert!(two.cloud.stderr().contains("bodkin cloud accept-event"), "the log says what would change that: {}", two.cloud.stderr());
    // The sharing cloud's operator is told why, and has the event as a dead letter.
    assert!(eventually(|| shared(&one)["delivery"]["deadLetters"] == 1), "{}", shared(&one));
    let row = shared(&one);
    assert!(row["delivery"]["lastError"].as_str().is_some_and(|why| why.contains("not accepted of cloud one.test")), "{row}");

    // With consent what follows comes, and the dead letter after all, though events behind it have been taken.
    two.done("cloud accept-event heat one");
    publish(&one, "in time");
    payloads(&stream, 1);
    one.done("event dead replay --all");
    let came: Vec<Value> = payloads(&stream, 2).iter().map(|event| event["payload"].clone()).collect();
    assert_eq!(came, ["in time", "too early"]);

    // Taken back, it is refused again; and it is taken back once.
    two.done("cloud refuse-event HEAT one.test");
    publish(&one, "too late");
    assert!(eventually(|| shared(&one)["delivery"]["deadLetters"] == 1), "{}", shared(&one));
    assert_eq!(stream.count(), 2);
    let again = two.run("cloud refuse-event HEAT one");
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("not accepted of one.test"), "{again:?}");
    // Consent outlives the cloud's process, and goes with a cloud that is forgotten.
    let Side { cloud, data } = two;
    assert!(cloud.stop().success());
    let two = Side { cloud: Launch::new().secure().data(&data).start(), data };
    assert_eq!(account_of(&two), zeroes);
    two.done("cloud rm one");
    assert_eq!(two.done("cloud heard-events")["count"], 0);
}

/// Copies a directory that nobody works with.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a readable directory").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copy(&from, &to),
            false => _ = fs::copy(from, to).expect("it is copied"),
        }
    }
}

#[test]
fn an_event_whose_answer_is_lost_with_both_clouds_processes_comes_once() {
    let place = TempDir::new().expect("a temporary directory");
    let (two, one) = neighbours_with(place.path(), &SOON);
    let relay = two.cloud.ready()["listeners"]["relay"].as_str().expect("where its relay is").to_owned();
    two.done("cloud accept-event heat two");
    let id = share(&one, "one", 20_000);
    one.done(&format!("auth intercloud add --cloud {id} --provider sensor --service heat"));
    drop(listen(&two));
    let listens = ["--relay-listen", relay.as_str(), "--neighbor-timeout-ms", "2000"];
    // What the sharing cloud knows while the event waits.
    let Side { cloud, data: hearing } = two;
    assert!(cloud.stop().success());
    publish(&one, "1");
    assert!(eventually(|| shared(&one)["delivery"]["consecutiveFailures"].as_u64() > Some(0)), "{}", shared(&one));
    let Side { cloud, data: sharing } = one;
    assert!(cloud.stop().success());
    let kept = place.path().join("kept");
    copy(&sharing, &kept);
    let start = |data: &Path, flags: &[&str]| {
        let launch = flags.iter().fold(Launch::new().secure().data(data), |launch, flag| launch.flags([flag]));
        Side { cloud: launch.start(), data: data.to_owned() }
    };
    let (two, one) = (start(&hearing, &listens), start(&sharing, &SOON));
    assert!(eventually(|| account_of(&two)["taken"] == 1), "{}\n{}", account_of(&two), shared(&one));
    assert!(eventually(|| shared(&one)["delivery"]["delivered"] == 1), "{}", shared(&one));
    assert!(one.cloud.stop().success());
    two.cloud.kill();
    // It is sent again by who has not been told that it was taken, and passed over by who has it in its event log.
    fs::remove_dir_all(&sharing).expect("it goes");
    copy(&kept, &sharing);
    let (two, one) = (start(&hearing, &listens), start(&sharing, &SOON));
    assert!(eventually(|| account_of(&two)["repeated"].as_u64() >= Some(1)), "{}\n{}", account_of(&two), shared(&one));
    publish(&one, "2");
    assert!(eventually(|| account_of(&two)["taken"] == 1), "{}\n{}", account_of(&two), shared(&one));
    assert_eq!(account_of(&two)["lost"], 0);
    let stream = hear_as(&two, "display", "&since=0");
    let came: Vec<Value> = payloads(&stream, 2).iter().map(|event| event["payload"].clone()).collect();
    assert_eq!(came, ["1", "2"]);
}

#[test]
fn events_wait_for_a_cloud_that_is_away_and_come_once() {
    let place = TempDir::new().expect("a temporary directory");
    // The relay is in the cloud that hears: both are away at the same time.
    let (two, one) = neighbours_with(place.path(), &SOON);
    let relay = two.cloud.ready()["listeners"]["relay"].as_str().expect("where its relay is").to_owned();
    two.done("cloud accept-event heat two");
    let id = share(&one, "one", 100);
    one.done(&format!("auth intercloud add --cloud {id} --provider sensor --service heat"));
    let stream = listen(&two);
    publish(&one, "0");
    payloads(&stream, 1);
    drop(stream);
    // An event whose answer is lost with the other cloud comes once more, and that cloud remembers nothing.
    assert!(eventually(|| shared(&one)["delivery"]["delivered"] == 1), "{}", shared(&one));
    let Side { cloud, data } = two;
    cloud.kill();
    let away = 20;
    for number in 1..=away {
        publish(&one, &number.to_string());
    }
    assert!(eventually(|| shared(&one)["delivery"]["consecutiveFailures"].as_u64() > Some(0)), "{}", shared(&one));
    let cloud = Launch::new().secure().data(&data).flags(["--relay-listen", &relay]).start();
    let two = Side { cloud, data };
    // All of them are in its event log, each once.
    let heard_all = || account_of(&two)["taken"] == away;
    assert!(eventually(heard_all), "{}\n{}", two.done("cloud heard-events"), shared(&one));
    let account = account_of(&two);
    assert_eq!(account["lost"], 0, "{account}");
    assert!(eventually(|| shared(&one)["delivery"]["delivered"] == away + 1), "{}", shared(&one));
    let row = shared(&one);
    assert!(row["delivery"]["late"].as_u64() > Some(0) && row["delivery"]["lost"] == 0, "{row}");
    // It listens on other ports now, and the rule for its Gatekeeper holds all the same.
    let stream = hear(&two);
    publish(&one, "last");
    assert_eq!(payloads(&stream, 1)[0]["payload"], "last");
}
