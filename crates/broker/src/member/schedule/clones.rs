//! Two processes of one node: cloned machines, wrong roles, replaced hosts that return, second standbys and witnesses, in every order of starts.

use super::*;

/// A witness dies while its clone runs: the clone has not been silent for the promises of the witness.
const PROMISED_TO_ANOTHER: [u64; 1] = [686];

/// The node that a schedule clones, and whether the clone copies its disk.
fn cloned(seed: u64) -> (usize, bool) {
    (seed as usize % 3, (seed / 3).is_multiple_of(2))
}

/// Starts the three nodes and a clone in an order that the seed gives, each up to two leases behind the one before.
fn any_order(seed: u64, by_name: bool) -> World {
    let mut world = World::new(seed);
    world.by_name = by_name;
    let (node, copies_disk) = cloned(seed);
    let mut order = vec![0, 1, 2, 3];
    for last in (1..order.len()).rev() {
        order.swap(last, world.random.below(last as u64 + 1) as usize);
    }
    for process in order {
        if process == 3 {
            world.clone_of(node, copies_disk);
        } else {
            world.start(process);
        }
        let pause = [0, DELAY_NS, 2 * LEASE_NS][world.random.below(3) as usize];
        world.run_for(pause);
    }
    world
}

/// A pair that runs, with a clone that starts later and stops of the processes in between.
fn late_clone(seed: u64, by_name: bool) -> World {
    let mut world = World::new(seed);
    world.by_name = by_name;
    (0..3).for_each(|node| world.start(node));
    world.run_for(RECOVERY_NS);
    let (node, copies_disk) = cloned(seed);
    world.clone_of(node, copies_disk);
    for _ in 0..6 {
        let pause = world.random.below(4 * LEASE_NS);
        world.run_for(pause);
        let stopped = world.random.below(4) as usize;
        let lasts = world.random.below(8 * LEASE_NS);
        world.nodes[stopped].stalled_until = world.now + lasts;
        world.at(world.now + lasts, Event::Wake { node: stopped });
    }
    world
}

#[test]
fn names_alone_let_two_processes_lead() {
    // The schedules can show the fault: without incarnations it is there.
    let runs = |make: fn(u64, bool) -> World| {
        let led_twice = |seed| {
            let mut world = make(seed, true);
            world.run_for(40 * LEASE_NS);
            world.double_leads > 0
        };
        (0..30).filter(|seed| led_twice(*seed)).count()
    };
    let found = (runs(any_order), runs(late_clone));
    assert!(found.0 > 2 && found.1 > 2, "two led in {found:?} of 30 schedules each");
}

#[test]
fn clone_never_leads_beside_its_node() {
    let (mut refused, mut led) = (0, 0);
    for make in [any_order, late_clone] {
        for seed in 0..120 {
            let mut world = make(seed, false);
            world.run_for(60 * LEASE_NS);
            led += u32::from(world.leader().is_some());
            refused += world.duplicates;
        }
    }
    // The only process that is in sync may be the one that is refused: then nobody may lead.
    assert!(led > 228, "somebody leads at the end of {led} of 240 schedules");
    assert!(refused > 200, "{refused} greetings were refused as duplicates");
}

#[test]
fn clone_of_the_leader_does_not_disturb_it() {
    for seed in 0..40 {
        let mut world = World::started(seed);
        world.run_for(RECOVERY_NS);
        let leader = world.leader().expect("nothing is broken");
        let epoch = world.nodes[leader].accepting(world.now);
        world.longest_gap = 0;
        for copies_disk in [false, true] {
            world.clone_of(leader, copies_disk);
            world.run_for(30 * LEASE_NS);
        }
        assert_eq!((world.leader(), world.longest_gap), (Some(leader), 0), "seed {seed}");
        assert_eq!(world.nodes[leader].accepting(world.now), epoch, "seed {seed}");
        for clone in [3, 4] {
            let member = world.nodes[clone].member.as_ref().expect("it runs");
            assert!(member.is_rejected() && member.connected(Node::Witness).is_none(), "seed {seed}: clone {clone}");
        }
    }
}

#[test]
fn clone_with_faults_never_leads_beside_its_node() {
    for seed in (0..100).chain(PROMISED_TO_ANOTHER) {
        let mut world = World::started(seed);
        world.run_for(RECOVERY_NS);
        let (node, copies_disk) = cloned(seed);
        let clone = world.clone_of(node, copies_disk);
        world.run_for(8 * LEASE_NS);
        // One link at a time: a clone behind a network that is split in two is outside the promise.
        for _ in 0..12 {
            let (one, other) = [(0, 1), (0, 2), (1, 2)][world.random.below(3) as usize];
            let ends = |name: usize| [name, if name == node { clone } else { name }];
            let is_crash = world.random.one_in(2);
            let crashed = world.random.below(4) as usize;
            if is_crash {
                world.crash(crashed);
            } else {
                let cuts: Vec<_> = ends(one).into_iter().flat_map(|one| ends(other).map(|other| (one, other))).collect();
                cuts.iter().for_each(|(one, other)| (world.cut[*one][*other], world.cut[*other][*one]) = (true, true));
            }
            let pause = world.random.below(6 * LEASE_NS);
            world.run_for(pause);
            world.cut = [[false; PROCESSES_MAX]; PROCESSES_MAX];
            if is_crash {
                world.start(crashed);
            }
            let pause = world.random.below(6 * LEASE_NS);
            world.run_for(pause);
        }
    }
}

#[test]
fn killed_node_is_back_within_its_silence() {
    for seed in 0..40 {
        for hides_end in [false, true] {
            let mut world = World::started(seed);
            world.run_for(RECOVERY_NS);
            let node = seed as usize % 3;
            if hides_end {
                // The cable is pulled: nobody learns that the connections have ended.
                (0..3).for_each(|other| (world.cut[node][other], world.cut[other][node]) = (true, true));
            }
            world.crash(node);
            world.run_for(DELAY_NS + 1);
            world.cut = [[false; PROCESSES_MAX]; PROCESSES_MAX];
            world.start(node);
            world.run_for(2 * LEASE_NS + 2 * HEARTBEAT_NS + 4 * DELAY_NS);
            for other in (0..3).filter(|other| *other != node) {
                let member = world.nodes[other].member.as_ref().expect("it runs");
                let connected = member.connected(Node::ALL[node]).map(|peer| peer.incarnation);
                assert_eq!(connected, Some(world.nodes[node].incarnation), "seed {seed}: {node} at {other}");
            }
            assert_eq!(world.duplicates, 0, "seed {seed}: a restart is no duplicate");
        }
    }
}
