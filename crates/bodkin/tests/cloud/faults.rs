//! What goes wrong around the process: each is one clear error with what to do, and loses nothing.

use std::fs::{self, File};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, unshare};
use serde_json::json;
use tempfile::TempDir;

use crate::support::arrowhead::{event, list, number, service, system, texts, with};
use crate::support::cloud::{BINARY, Cloud, Launch, Refusal, System};
use crate::support::conditions::assert_shown;
use crate::support::patience::eventually;
use crate::support::ports::held_offset;
use crate::support::skip;
use crate::support::sse::{EventStream, until_live};
use crate::support::stream::Event;

const SERVICE_REGISTRY_PORT: u16 = 8443;

#[track_caller]
fn refusal(launch: Launch) -> Refusal {
    match launch.try_start() {
        Ok(cloud) => panic!("it started: {}", cloud.ready()),
        Err(refusal) => refusal,
    }
}

/// One message, in one line, that names what is concerned; exit code 1.
#[track_caller]
fn assert_told(refusal: &Refusal, named: &str) {
    assert_eq!(refusal.code, Some(1), "{refusal:?}");
    assert!(refusal.stderr.contains(named), "{named:?} is not named: {refusal:?}");
    assert_eq!(refusal.stderr.trim().lines().count(), 1, "one message is enough: {refusal:?}");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

/// A data directory in which `entry` is registered, and nothing runs.
fn data_with(entry: &str) -> TempDir {
    let data = TempDir::new().expect("a temporary directory");
    let cloud = Launch::new().data(data.path()).start();
    cloud.register(&service(entry, system(entry, 1)));
    assert!(cloud.stop().success());
    data
}

#[track_caller]
fn assert_registered(cloud: &Cloud, entry: &str) {
    assert_eq!(cloud.query(&json!({"serviceDefinitionRequirement": entry}))["unfilteredHits"], 1, "{entry} is lost");
}

#[test]
fn a_taken_port_is_told_with_its_number_and_a_way_out() {
    let offset = held_offset();
    let port = SERVICE_REGISTRY_PORT + offset.get();
    let _taken = TcpListener::bind(("127.0.0.1", port)).expect("nobody listens on a port that is held");
    let refusal = refusal(Launch::new().port_offset(offset.get()));
    assert_told(&refusal, "port");
    assert!(refusal.stderr.contains(&port.to_string()), "{refusal:?}");
    assert!(refusal.stderr.contains("--port-offset") || refusal.stderr.contains("--any-port"), "no way out: {refusal:?}");
}

#[test]
fn root_begins_no_cloud_in_another_users_directory() {
    const OWNER: u32 = 4321;
    let data = TempDir::new().expect("a temporary directory");
    // Who is not root can give nothing away.
    if let Err(error) = std::os::unix::fs::chown(data.path(), Some(OWNER), None) {
        return skip::note("root_begins_no_cloud_in_another_users_directory", &format!("only root is refused: {error}"));
    }
    assert_told(&refusal(Launch::new().data(data.path())), "sudo -u '#4321' bodkin");
    assert_eq!(fs::read_dir(data.path()).expect("readable").count(), 0, "something was made there");
}

#[test]
fn a_second_instance_on_the_same_data_is_refused_and_the_first_goes_on() {
    let data = TempDir::new().expect("a temporary directory");
    let first = Launch::new().data(data.path()).start();
    first.register(&service("fault-second", system("fault-second", 1)));
    assert_told(&refusal(Launch::new().data(data.path())), text(data.path()));
    first.register(&service("fault-second-more", system("fault-second", 1)));
    first.kill();
    let next = Launch::new().data(data.path()).start();
    assert_registered(&next, "fault-second");
    assert_registered(&next, "fault-second-more");
}

#[test]
fn a_data_directory_that_cannot_be_made_is_told() {
    let place = TempDir::new().expect("a temporary directory");
    let file = place.path().join("file");
    fs::write(&file, "not a directory").expect("written");
    assert_told(&refusal(Launch::new().data(&file)), text(&file));
    let below = file.join("below");
    assert_told(&refusal(Launch::new().data(&below)), text(&below));
    assert_eq!(fs::read(&file).expect("it is there"), b"not a directory");
}

/// The database: the one file that says it is one.
fn database_file(data: &Path) -> PathBuf {
    let is_database = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"SQLite format 3\0"));
    let files = fs::read_dir(data).expect("the data directory is there").map(|entry| entry.expect("an entry").path());
    let mut databases: Vec<PathBuf> = files.filter(is_database).collect();
    assert_eq!(databases.len(), 1, "{databases:?}");
    databases.remove(0)
}

#[test]
fn a_clean_stop_leaves_everything_in_the_one_database_file() {
    let data = data_with("fault-one-file");
    let copy = TempDir::new().expect("a temporary directory");
    let file = database_file(data.path());
    fs::copy(&file, copy.path().join(file.file_name().expect("a name"))).expect("copied");
    assert_registered(&Launch::new().data(copy.path()).start(), "fault-one-file");
}

#[test]
fn a_corrupt_database_is_told_and_left_as_it_is() {
    let data = data_with("fault-corrupt");
    let file = database_file(data.path());
    let whole = fs::read(&file).expect("readable");
    let page_bytes = usize::from(u16::from_be_bytes([whole[16], whole[17]]));
    let mut headless = whole.clone();
    headless[..100].fill(0xa5);
    let mut bodyless = whole.clone();
    bodyless[page_bytes..].fill(0xa5);
    for corrupt in [&headless, &bodyless, &whole[..whole.len() / 2].to_vec()] {
        fs::write(&file, corrupt).expect("writable");
        assert_told(&refusal(Launch::new().data(data.path())), text(data.path()));
        assert_eq!(&fs::read(&file).expect("readable"), corrupt, "the evidence was changed");
    }
    fs::write(&file, &whole).expect("writable");
    assert_registered(&Launch::new().data(data.path()).start(), "fault-corrupt");
}

/// Runs `act` where file systems can be mounted that nobody else sees and that end with it; says so where that is not allowed.
fn with_own_mounts(test: &str, act: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let own = scope.spawn(|| {
            if let Err(error) = unshare(CloneFlags::CLONE_NEWNS) {
                return skip::note(test, &format!("own mounts need a right this user lacks: {error}"));
            }
            if !mount(&["--make-rprivate", "/"]) {
                return skip::note(test, "mounts cannot be made private here");
            }
            act();
        });
        own.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn mount(arguments: &[&str]) -> bool {
    Command::new("mount").args(arguments).status().is_ok_and(|status| status.success())
}

#[test]
fn a_read_only_data_directory_is_told_and_left_as_it_is() {
    with_own_mounts("a_read_only_data_directory_is_told_and_left_as_it_is", || {
        let data = data_with("fault-read-only");
        let path = text(data.path());
        assert!(mount(&["--bind", path, path]) && mount(&["-o", "remount,bind,ro", path]), "a bind mount");
        assert_told(&refusal(Launch::new().data(data.path())), path);
        assert!(mount(&["-o", "remount,bind,rw", path]), "writable again");
        assert_registered(&Launch::new().data(data.path()).start(), "fault-read-only");
        // The thread's end takes the mount along, and then the directory can go.
        assert!(Command::new("umount").arg(path).status().is_ok_and(|status| status.success()));
    });
}

/// Most registrations until a full disk must have been met: room that the database had reserved is used up first.
const REGISTRATIONS_LIMIT: usize = 2_000;
/// Most events until a full disk must have been met: the file has room to the end of its page.
const EVENTS_LIMIT: usize = 200;
/// Metadata that makes each of them take a noticeable part of the disk, in bytes.
const FILLING_BYTES: usize = 8 * 1024;

/// A file system of this size at `data`.
fn mount_small(data: &Path, size: &str) {
    assert!(mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", text(data)]), "a small file system");
}

/// Takes all the room that is left.
fn fill_up(path: &Path) {
    let mut ballast = File::create(path).expect("created");
    let (block, byte) = (vec![0; 64 * 1024], [0]);
    while ballast.write_all(&block).is_ok() {}
    while ballast.write_all(&byte).is_ok() {}
}

#[test]
fn a_disk_that_is_full_at_the_start_is_told() {
    with_own_mounts("a_disk_that_is_full_at_the_start_is_told", || {
        let data = TempDir::new().expect("a temporary directory");
        mount_small(data.path(), "64k");
        fill_up(&data.path().join("ballast"));
        assert_told(&refusal(Launch::new().data(data.path())), text(data.path()));
    });
}

#[test]
fn a_disk_that_fills_up_stops_writes_only_until_there_is_room() {
    with_own_mounts("a_disk_that_fills_up_stops_writes_only_until_there_is_room", || {
        let data = TempDir::new().expect("a temporary directory");
        mount_small(data.path(), "16m");
        let cloud = Launch::new().data(data.path()).start();
        let ballast = data.path().join("ballast");
        fill_up(&ballast);

        let filled = |name: &str| {
            let filling = json!({"filling": "x".repeat(FILLING_BYTES)});
            cloud.post("/serviceregistry/register", &with(service("fault-full", system(name, 1)), "/metadata", filling))
        };
        let mut written = Vec::new();
        let refused = (0..REGISTRATIONS_LIMIT).find_map(|index| {
            let name = format!("full-{index}");
            let answer = filled(&name);
            match answer.status {
                201 => written.push(name),
                _ => return Some(answer),
            }
            None
        });
        let refused = refused.expect("the disk was never full");
        assert!((500..600).contains(&refused.status), "{refused:?}");
        let reason = refused.json()["errorMessage"].as_str().unwrap_or_default().to_lowercase();
        assert!(["disk", "space", "full"].iter().any(|word| reason.contains(word)), "the reason is not told: {reason:?}");

        assert_full_list(&cloud, &written);
        cloud.get("/serviceregistry/echo").expect_status(200);
        cloud.get("/orchestrator/echo").expect_status(200);
        // The cloud's own log is written too: a line of it may still fit where a registration does not, or make room for one in the database's log.
        let is_told = eventually(|| {
            let name = format!("full-more-{}", written.len());
            match filled(&name).status {
                201 => written.push(name),
                _ => return database_suspended(&cloud) == 1,
            }
            false
        });
        assert!(is_told, "the metrics do not say that the database takes nothing");
        assert_trouble_is_told(&cloud);
        for alert in ["BodkinDatabaseSuspended", "BodkinDiskFull"] {
            assert_shown(cloud.address(System::Monitor), alert);
        }
        fs::remove_file(&ballast).expect("removed");
        assert!(eventually(|| database_suspended(&cloud) == 0), "there is room again, and it is not found out");
        let works_again = eventually(|| {
            let answer = cloud.post("/serviceregistry/register", &service("fault-full", system("full-again", 1)));
            answer.status == 201
        });
        assert!(works_again, "there is room again and nothing is written");
        written.push("full-again".into());
        assert_full_list(&cloud, &written);
        cloud.kill();
        assert_full_list(&Launch::new().data(data.path()).start(), &written);
    });
}

fn database_suspended(cloud: &Cloud) -> i64 {
    number(&cloud.get("/api/v1/overview").expect_status(200).json(), "/numbers/bodkin_database_suspended")
}

/// A full disk is on the screen of `bodkin status`, as a metric, and its bytes with it.
#[track_caller]
fn assert_trouble_is_told(cloud: &Cloud) {
    let overview = cloud.get("/api/v1/overview").expect_status(200).json();
    assert!(number(&overview, "/numbers/bodkin_data_free_bytes") < 64 << 20, "{overview}");
    let at = [("BODKIN_SERVICE_REGISTRY", System::ServiceRegistry), ("BODKIN_MONITOR", System::Monitor)];
    let at = at.map(|(variable, system)| (variable, cloud.address(system).to_string()));
    let status = Command::new(BINARY).arg("status").envs(at).output().expect("the binary starts");
    let told = String::from_utf8_lossy(&status.stdout);
    assert_eq!(status.status.code(), Some(1), "{status:?}");
    assert!(told.contains("are free on the disk of the data directory: make room"), "{told}");
}

/// Runs `act` with a cloud on a small file system, and with the path of a file that may take all the room that is left.
fn on_small_disk<const N: usize>(test: &str, flags: [&str; N], act: impl FnOnce(&Cloud, &Path) + Send) {
    with_own_mounts(test, || {
        let data = TempDir::new().expect("a temporary directory");
        mount_small(data.path(), "16m");
        let cloud = Launch::new().data(data.path()).flags(flags).start();
        cloud.register_publisher("recorder", 1);
        act(&cloud, &data.path().join("ballast"));
    });
}

#[test]
fn durable_events_are_taken_again_when_there_is_room() {
    on_small_disk("durable_events_are_taken_again_when_there_is_room", ["--durable-event-types", "alarm"], |cloud, ballast| {
        let publish = || cloud.post("/eventhandler/publish", &event("alarm", system("recorder", 1), "x")).status;
        assert_eq!(publish(), 200);
        fill_up(ballast);
        assert!((0..EVENTS_LIMIT).any(|_| publish() == 503), "the disk was never full");
        assert_eq!(publish(), 503, "there is no room yet");
        fs::remove_file(ballast).expect("removed");
        assert!(eventually(|| publish() == 200), "there is room again and no durable event is taken");
    });
}

#[test]
fn a_replay_tells_what_a_full_disk_has_cost() {
    on_small_disk("a_replay_tells_what_a_full_disk_has_cost", [], |cloud, ballast| {
        let publish = |payload: &str| cloud.publish(&event("measured", system("recorder", 1), payload));
        let is_suspended = || !cloud.get("/api/v1/event-log").expect_status(200).json()["suspended"].is_null();
        let replayed = || -> Vec<String> {
            let target = "/eventhandler/subscription?eventtype=measured&since=0";
            let events = until_live(&EventStream::open(cloud.address(System::EventHandler), target, &[]));
            let told = |event: Event| if event.event_type == "bodkin-lost" { event.event_type } else { event.data.trim().to_owned() };
            events.into_iter().map(told).collect()
        };
        fill_up(ballast);
        let large = format!("large{:1000}", "");
        let full = (0..EVENTS_LIMIT).find(|_| {
            publish(&large);
            is_suspended()
        });
        assert!(full.is_some(), "the disk was never full");
        publish("skipped");
        let told = replayed();
        assert_eq!(told.iter().position(|data| data == "bodkin-lost"), Some(told.len() - 1), "{told:?}");
        fs::remove_file(ballast).expect("removed");
        assert!(eventually(|| !is_suspended()), "there is room again and the log is not tried");
        publish("kept");
        assert_eq!(replayed(), [told, vec!["kept".into()]].concat());
    });
}

/// Runs `act` with a cloud that has a small file system for this folder of its data directory, and with the path of a file that may take all the room that is left.
fn on_small_disk_for(folder: &str, size: &str, test: &str, act: impl FnOnce(&Cloud, &Path) + Send) {
    with_own_mounts(test, || {
        let data = TempDir::new().expect("a temporary directory");
        let place = data.path().join(folder);
        fs::create_dir(&place).expect("a directory");
        mount_small(&place, size);
        let cloud = Launch::new().data(data.path()).start();
        cloud.register_publisher("recorder", 1);
        act(&cloud, &place.join("ballast"));
    });
}

#[test]
fn full_disk_of_the_audit_log_is_reported() {
    on_small_disk_for("audit", "64k", "full_disk_of_the_audit_log_is_reported", |cloud, ballast| {
        let change = |number: usize| cloud.post("/serviceregistry/mgmt/systems", &system(&format!("audited-{number}"), 1)).status;
        assert_eq!(change(0), 201);
        fill_up(ballast);
        // The file of the log has room to the end of its page.
        assert!((1..EVENTS_LIMIT).any(|number| change(number) == 503), "the disk was never full");
        assert_shown(cloud.address(System::Monitor), "BodkinAuditSuspended");
        fs::remove_file(ballast).expect("removed");
        assert!(eventually(|| change(EVENTS_LIMIT) == 201), "there is room again and no change is accepted");
    });
}

#[test]
fn full_disk_of_the_event_log_is_reported() {
    on_small_disk_for("events", "16m", "full_disk_of_the_event_log_is_reported", |cloud, ballast| {
        fill_up(ballast);
        let large = format!("large{:1000}", "");
        let is_full = || {
            cloud.publish(&event("measured", system("recorder", 1), &large));
            !cloud.get("/api/v1/event-log").expect_status(200).json()["suspended"].is_null()
        };
        assert!((0..EVENTS_LIMIT).any(|_| is_full()), "the disk was never full");
        assert_shown(cloud.address(System::Monitor), "BodkinEventLogSuspended");
    });
}

#[test]
fn disk_that_the_event_log_may_fill_is_reported() {
    with_own_mounts("disk_that_the_event_log_may_fill_is_reported", || {
        let data = TempDir::new().expect("a temporary directory");
        mount_small(data.path(), "128m");
        let cloud = Launch::new().data(data.path()).flags(["--event-log-bytes-max", "1073741824"]).start();
        assert_shown(cloud.address(System::Monitor), "BodkinDiskFills");
    });
}

#[track_caller]
fn assert_full_list(cloud: &Cloud, written: &[String]) {
    let found = cloud.query(&json!({"serviceDefinitionRequirement": "fault-full"}));
    let mut names = texts(list(&found, "/serviceQueryData"), "/provider/systemName");
    names.sort();
    let mut expected = written.to_vec();
    expected.sort();
    assert_eq!(names, expected, "what was answered is what is there");
}

#[test]
fn sigterm_ends_it_with_success_and_closes_kept_connections() {
    let data = TempDir::new().expect("a temporary directory");
    let cloud = Launch::new().data(data.path()).start();
    assert!(number(cloud.ready(), "/pid") == i64::from(cloud.pid()), "{}", cloud.ready());
    assert!(cloud.ready()["ready_ms"].is_number(), "{}", cloud.ready());
    let mut kept = cloud.connect(System::ServiceRegistry);
    kept.request("GET", "/serviceregistry/echo", &[], None).expect("an answer");
    assert_eq!(cloud.stop().code(), Some(0));
    assert!(kept.is_closed_by_server());
}
