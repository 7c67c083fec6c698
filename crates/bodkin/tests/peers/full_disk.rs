//! Full disks of a pair: a leader hands over to a standby that has room, a standby takes over, and a former leader comes back, when there is room. The leader
//! reports a witness that cannot write.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::crash::has_namespaces;
use crate::nodes::{Node, Pair};
use crate::support::arrowhead::{event, system};
use crate::support::cloud::System;
use crate::support::conditions::assert_shown;
use crate::support::patience::eventually;
use crate::support::skip;

const TOPIC: &str = "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 10\ndeadline_s = 60\nloss_tolerance = 0\nretention = 200\n";

/// A small disk in memory; unmounted when dropped.
pub struct Disk(PathBuf);

impl Disk {
    pub fn mount(place: PathBuf) -> Self {
        fs::create_dir_all(&place).expect("a directory");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(&place).status();
        assert!(mounted.is_ok_and(|status| status.success()), "no disk can be mounted");
        Self(place)
    }

    pub fn fill(&self) {
        let mut filler = File::create(self.0.join("filler")).expect("a file");
        for bytes in [1 << 16, 1 << 12, 1] {
            while filler.write_all(&vec![0; bytes]).is_ok() {}
        }
    }

    /// Releases the blocks of a file, so that its next write needs room, as each one does on a file system that copies on write.
    fn release(&self, file: &str) {
        File::options().write(true).open(self.0.join(file)).and_then(|file| file.set_len(0)).expect("the file is there");
    }

    pub fn make_room(&self) {
        fs::remove_file(self.0.join("filler")).expect("it was filled");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // One that is busy goes with its last user.
        let _ = Command::new("umount").arg("-l").arg(&self.0).stderr(Stdio::null()).status();
    }
}

fn register(node: &Node, name: &str) -> Option<u16> {
    let registered = node.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system(name, 1)));
    registered.ok().map(|answer| answer.status)
}

fn publish(node: &Node) -> Option<u16> {
    let publication = event("hot", system("sensor", 1), "1");
    node.call(System::EventHandler, "POST", "/eventhandler/publish", Some(&publication)).ok().map(|answer| answer.status)
}

#[test]
#[ignore = "peer: ./x test --all"]
fn standby_with_a_full_disk_takes_over_and_serves_everything_when_there_is_room() {
    const NAME: &str = "standby_with_a_full_disk_takes_over_and_serves_everything_when_there_is_room";
    if !has_namespaces() {
        return skip::note(NAME, "no disk can be mounted here");
    }
    let pair = Pair::with("", TOPIC);
    let disk = Disk::mount(pair.database("backup").parent().expect("a directory").to_owned());
    let (_pair, _witness, mut backup, primary) = pair.begin();
    assert_eq!(register(&primary, "sensor"), Some(201));
    disk.fill();
    primary.signal(Signal::SIGKILL);
    assert!(eventually(|| backup.gauge("bodkin_pair_leads") == 1), "{}", backup.said());
    // Long enough for several attempts to serve everything.
    thread::sleep(Duration::from_secs(2));
    assert_eq!(publish(&backup), Some(200), "{}", backup.said());
    assert!(backup.said().contains("its database takes no change"), "{}", backup.said());
    assert_eq!(backup.gauge("bodkin_database_suspended"), 1);
    assert_ne!(register(&backup, "late"), Some(201), "{}", backup.said());
    disk.make_room();
    backup.served();
    assert_eq!(register(&backup, "late"), Some(201), "{}", backup.said());
}

#[test]
#[ignore = "peer: ./x test --all"]
fn former_leader_with_a_full_disk_follows_when_there_is_room() {
    const NAME: &str = "former_leader_with_a_full_disk_follows_when_there_is_room";
    if !has_namespaces() {
        return skip::note(NAME, "no disk can be mounted here");
    }
    let pair = Pair::with("durable_event_types = [\"kept\"]\n", TOPIC);
    let disk = Disk::mount(pair.database("primary").parent().expect("a directory").to_owned());
    let (_pair, _witness, mut backup, primary) = pair.begin();
    assert_eq!(register(&primary, "sensor"), Some(201));
    primary.signal(Signal::SIGSTOP);
    backup.served();
    disk.fill();
    primary.signal(Signal::SIGCONT);
    assert!(eventually(|| primary.said().contains("cannot keep what the leader sends")), "{}", primary.said());
    assert_shown(primary.address(System::Monitor), "BodkinPairFollowFailed");
    // Long enough for several attempts to follow.
    thread::sleep(Duration::from_secs(3));
    let told = |node: &Node| node.said().matches("replica channel has ended").count();
    assert!(told(&primary) <= 3 && told(&backup) <= 5, "{}\n{}", primary.said(), backup.said());
    disk.make_room();
    backup.protected(true);
    disk.fill();
    assert_eq!(primary.stop(), Some(0));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn leader_reports_a_witness_that_cannot_write_its_record() {
    const NAME: &str = "leader_reports_a_witness_that_cannot_write_its_record";
    if !has_namespaces() {
        return skip::note(NAME, "no disk can be mounted here");
    }
    let pair = Pair::with("", TOPIC);
    let disk = Disk::mount(pair.database("witness").parent().expect("a directory").to_owned());
    let (_pair, witness, _backup, primary) = pair.begin();
    ["member.0", "member.1"].iter().for_each(|file| disk.release(file));
    disk.fill();
    // Nothing is to be recorded: the witness tests its disk before its vote is needed.
    assert!(eventually(|| witness.said().contains("cannot be written")), "{}", witness.said());
    assert!(eventually(|| primary.gauge("bodkin_pair_record_failed") == 1), "{}", primary.said());
    let overview = primary.call(System::Monitor, "GET", "/api/v1/overview", None).unwrap().expect_status(200).text();
    assert!(overview.contains("the witness cannot write its record of votes"), "{overview}");
    assert_shown(primary.address(System::Monitor), "BodkinPairRecordFailed");
    assert!(primary.said().contains("cannot write its record of votes"), "{}", primary.said());
    disk.make_room();
    assert!(eventually(|| primary.gauge("bodkin_pair_record_failed") == 0), "{}", primary.said());
    // It is counted a moment before it is logged.
    assert!(eventually(|| primary.said().contains("writes its record of votes again")), "{}", primary.said());
}

#[test]
#[ignore = "peer: ./x test --all"]
fn leader_with_full_disk_hands_over_to_standby() {
    const NAME: &str = "leader_with_full_disk_hands_over_to_standby";
    if !has_namespaces() {
        return skip::note(NAME, "no disk can be mounted here");
    }
    let pair = Pair::with("", TOPIC);
    let disk = Disk::mount(pair.database("primary").parent().expect("a directory").to_owned());
    let (_pair, _witness, mut backup, primary) = pair.begin();
    assert_eq!(register(&primary, "sensor"), Some(201));
    disk.fill();
    assert!(eventually(|| register(&primary, "refused") == Some(503)), "{}", primary.said());
    backup.served();
    assert_eq!(register(&backup, "late"), Some(201), "{}", backup.said());
    assert!(primary.said().contains("hands over to the standby"), "{}", primary.said());
    assert!(eventually(|| backup.gauge("bodkin_pair_disks_full") == 1), "{}", backup.said());
    let overview = backup.call(System::Monitor, "GET", "/api/v1/overview", None).unwrap().expect_status(200).text();
    assert!(overview.contains("the disk of the first candidate (--role primary) takes no new data"), "{overview}");
    disk.make_room();
    backup.protected(true);
    assert!(eventually(|| backup.gauge("bodkin_pair_disks_full") == 0), "{}", backup.said());
}

/// Neither node could do better than the other one.
#[test]
#[ignore = "peer: ./x test --all"]
fn leader_with_full_disk_stays_when_standby_is_full() {
    const NAME: &str = "leader_with_full_disk_stays_when_standby_is_full";
    if !has_namespaces() {
        return skip::note(NAME, "no disk can be mounted here");
    }
    let pair = Pair::with("", TOPIC);
    let [ours, theirs] = ["primary", "backup"].map(|node| Disk::mount(pair.database(node).parent().expect("a directory").to_owned()));
    let (_pair, _witness, backup, primary) = pair.begin();
    assert_eq!(register(&primary, "sensor"), Some(201));
    theirs.fill();
    assert!(eventually(|| primary.gauge("bodkin_pair_disks_full") == 1), "{}", primary.said());
    assert!(backup.said().contains("takes no new data"), "{}", backup.said());
    assert_shown(primary.address(System::Monitor), "BodkinPairDiskFull");
    let epoch = primary.gauge("bodkin_pair_epoch");
    ours.fill();
    assert!(eventually(|| register(&primary, "refused") == Some(503)), "{}", primary.said());
    assert!(eventually(|| primary.gauge("bodkin_pair_disks_full") == 2), "{}", primary.said());
    // Longer than a switchover takes to begin.
    thread::sleep(Duration::from_secs(5));
    assert_eq!((primary.gauge("bodkin_pair_leads"), primary.gauge("bodkin_pair_epoch")), (1, epoch), "{}", primary.said());
    // Without a copy of the leader's database the standby lacks changes, also with room: it does not lead.
    theirs.make_room();
    assert!(eventually(|| primary.gauge("bodkin_pair_disks_full") == 1), "{}", primary.said());
    assert_eq!(primary.gauge("bodkin_pair_epoch"), epoch, "{}", primary.said());
    ours.make_room();
    primary.protected(true);
    assert_eq!(register(&primary, "late"), Some(201), "{}", primary.said());
}
