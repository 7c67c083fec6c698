//! `bodkin status` finds the leader of a pair from any one node, also when a node has just died.

use std::process::{Command, Output};

use nix::sys::signal::Signal;

use super::nodes::{Node, Pair};
use crate::support::cloud::{BINARY, System};
use crate::support::patience::eventually;

/// Runs `bodkin status` with the address of this node alone.
fn status(node: &Node) -> Output {
    let monitor = node.address(System::Monitor).to_string();
    Command::new(BINARY).args(["status", "--insecure", "--monitor", &monitor]).output().expect("the binary starts")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn status_at_standby_is_that_of_leader() {
    let (_pair, _witness, backup, primary) = Pair::protected();
    let [own, leader] = [&backup, &primary].map(|node| node.address(System::Monitor).to_string());
    // The leader's address is in the copy of its database.
    assert!(eventually(|| printed(&status(&backup)).contains("leads in epoch")), "{}", printed(&status(&backup)));
    let shown = status(&backup);
    let text = printed(&shown);
    assert!(text.contains(&leader) && text.contains(&format!("{own} was asked")), "{text}");
    assert_eq!(shown.status.code(), status(&primary).status.code(), "a standby in sync is no trouble: {text}");

    primary.signal(Signal::SIGKILL);
    // Asked once, at once: it waits for the takeover.
    let shown = status(&backup);
    let text = printed(&shown);
    assert!(text.contains(&own) && text.contains("leads in epoch"), "{text}");
    assert!(!text.contains("was asked") && shown.status.code() == Some(1), "nothing is protected: {text}");
}

#[test]
fn status_at_standby_without_leader_says_why() {
    let (_pair, witness, backup, primary) = Pair::protected();
    [&witness, &primary].iter().for_each(|node| node.signal(Signal::SIGKILL));
    assert!(eventually(|| printed(&status(&backup)).contains("No leader of the pair is found.")), "{}", printed(&status(&backup)));
    let shown = status(&backup);
    assert!(printed(&shown).contains("the witness is not reached") && shown.status.code() == Some(1), "{}", printed(&shown));
}
