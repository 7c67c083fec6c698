//! Three members over faulty schedules: clocks that drift, messages that are late, lost, doubled and overtaken, disks that are slow, nodes that crash, restart and
//! stall, links that are cut one way or both. Whatever happens there are never two accepting leaders, no epoch is led twice, and every
//! leader has every commit that was answered. And when at most one thing is broken, somebody leads.

mod clones;
mod connections;
mod process;
mod world;

use std::{collections::BTreeMap, time::Duration};

use self::{process::Event, world::World};
use super::*;
use crate::{epoch::PairId, event::Incarnation};

const LEASE_NS: u64 = 12_000;
const HEARTBEAT_NS: u64 = 3_000;
const DRIFT_PPM: u32 = 1_000;
const DELAY_NS: u64 = 400;
const DISK_NS: u64 = 300;
const SLOW_DISK_NS: u64 = 4 * LEASE_NS;
const TIMER_LATE_NS: u64 = 200;
/// The configured nodes, and two clones.
const PROCESSES_MAX: usize = 5;

/// The promises of a restarted voter, a candidate without messages, two votes that cross: nothing takes longer than this.
const RECOVERY_NS: u64 = 14 * LEASE_NS;

#[test]
fn there_are_never_two_leaders_and_every_leader_has_what_was_answered() {
    let mut led = 0;
    let mut answered = 0;
    let mut handed_over = 0;
    for seed in 0..400 {
        let mut world = World::started(seed);
        world.run_for(4 * LEASE_NS);
        (world.faults, world.operators) = (true, seed >= 300);
        world.at(world.now, Event::Fault);
        world.run_for(200 * LEASE_NS);
        led += world.led.len();
        answered += world.answered.count_ones();
        handed_over += world.handed_over;
    }
    assert!(led > 600 && answered > 6_000, "the schedules show little: {led} epochs, {answered} commits");
    assert!(handed_over > 100, "the schedules show little: {handed_over} leads were handed over");
}

#[test]
fn somebody_leads_again_when_only_one_node_is_dead() {
    let mut recovered = 0;
    for seed in 0..150 {
        for dead in [None, Some(0), Some(1), Some(2)] {
            let mut world = World::started(seed);
            world.faults = true;
            world.at(0, Event::Fault);
            world.run_for(60 * LEASE_NS);
            world.heal(None);
            // Long enough for the two to be in sync again.
            world.run_for(RECOVERY_NS + 4 * LEASE_NS);
            assert!(world.leader().is_some(), "seed {seed}: nobody leads, and nothing is broken");
            world.heal(dead);
            let only_in_sync = dead.is_some_and(|dead| dead < 2 && world.is_out(1 - dead, dead));
            world.run_for(RECOVERY_NS);
            assert!(world.leader().is_some() || only_in_sync, "seed {seed}: nobody leads without node {dead:?}");
            recovered += usize::from(!only_in_sync);
        }
    }
    assert!(recovered > 560, "the dead one was in sync alone too often: {recovered} of 600 schedules count");
}

#[test]
fn nothing_stops_while_one_node_that_follows_is_dead_or_one_link_is_cut() {
    for seed in 0..120 {
        let mut world = World::started(seed);
        world.run_for(RECOVERY_NS);
        let leader = world.leader().expect("nothing is broken");
        let epoch = world.nodes[leader].accepting(world.now);
        let (one, other) = [(0, 1), (0, 2), (1, 2)][seed as usize % 3];
        match seed % 2 {
            0 => (world.cut[one][other], world.cut[other][one]) = (true, true),
            _ => world.crash([1 - leader, 2][seed as usize % 4 / 2]),
        }
        world.longest_gap = 0;
        world.run_for(20 * LEASE_NS);
        assert_eq!((world.leader(), world.longest_gap), (Some(leader), 0), "seed {seed}");
        assert_eq!(world.nodes[leader].accepting(world.now), epoch, "seed {seed}");
    }
}

/// The grant by a slow clock in true time, its way, one more round of asking, two timers, the voter's disk.
const FAILOVER_NS: u64 = {
    let slow = LEASE_NS + LEASE_NS * 3 * DRIFT_PPM as u64 / 1_000_000 + 1;
    slow + DELAY_NS + HEARTBEAT_NS + 3 * DELAY_NS + 2 * TIMER_LATE_NS + DISK_NS
};

#[test]
fn the_backup_leads_in_time_when_the_lead_is_handed_over() {
    for seed in 0..200 {
        let mut world = World::started(seed);
        world.run_for(RECOVERY_NS + seed * 37);
        let leader = world.leader().expect("nothing is broken");
        world.longest_gap = 0;
        world.hand_over(leader);
        assert_eq!((world.handed_over, world.leader()), (1, None), "seed {seed}");
        world.run_for(3 * LEASE_NS);
        assert_eq!(world.leader(), Some(1 - leader), "seed {seed}");
        assert!(world.longest_gap <= FAILOVER_NS, "seed {seed}: {} ns without a leader, more than {FAILOVER_NS}", world.longest_gap);
        // The one that has handed over follows, and is in sync again.
        world.run_for(RECOVERY_NS);
        world.hand_over(1 - leader);
        world.run_for(3 * LEASE_NS);
        assert_eq!((world.handed_over, world.leader()), (2, Some(leader)), "seed {seed}: back again");
    }
}

#[test]
fn who_has_handed_over_leads_again_when_the_backup_restarts_before_it_leads() {
    for seed in 0..200 {
        let mut world = World::started(seed);
        world.run_for(RECOVERY_NS + seed * 37);
        let leader = world.leader().expect("nothing is broken");
        world.hand_over(leader);
        // At any instant until it would lead, and back in time to ask as soon as it is not silent any more.
        world.run_for(seed * 40);
        if world.leader().is_some() {
            continue;
        }
        world.crash(1 - leader);
        world.start(1 - leader);
        world.run_for(8 * LEASE_NS);
        assert_eq!(world.leader(), Some(leader), "seed {seed}: the one that restarted lacks what only memories hold");
    }
}

#[test]
fn the_backup_leads_in_time_when_the_leader_dies() {
    for seed in 0..200 {
        let mut world = World::started(seed);
        world.run_for(RECOVERY_NS + seed * 37);
        let leader = world.leader().expect("nothing is broken");
        world.crash(leader);
        world.check();
        world.longest_gap = 0;
        world.run_for(3 * LEASE_NS);
        assert_eq!(world.leader(), Some(1 - leader), "seed {seed}");
        assert!(world.longest_gap <= FAILOVER_NS, "seed {seed}: {} ns without a leader, more than {FAILOVER_NS}", world.longest_gap);
    }
}
