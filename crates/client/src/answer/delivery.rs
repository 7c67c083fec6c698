//! What Bodkin's own interface (port 8440) tells: deliveries, dead letters, event types, the event log, services' states.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{NameOrRow, ServiceDefinition, System};

answer! {
    /// A node at a glance.
    NodeOverview {
        /// Of the server.
        version: String,
        /// What its clock showed (UTC).
        at: String,
        /// Since its start, in seconds.
        uptime_s: u64,
        /// The end of its systems' names in certificates.
        cloud: String,
        /// Whether it works with certificates.
        secure: bool,
        /// Of every listener, by its name.
        ports: BTreeMap<String, u16>,
        /// Metrics without labels, by name.
        numbers: BTreeMap<String, f64>,
        /// Publishers that real-time topics have rejected within ten minutes.
        #[serde(default)]
        rejected_publishers: Vec<RejectedPublisher>,
        /// Real-time topics that wait for a required subscriber.
        #[serde(default)]
        waiting_topics: Vec<AwaitedSubscriber>,
        /// What is wrong with the node's pair, each with what to do.
        #[serde(default)]
        pair_troubles: Vec<String>,
        /// Lanes to the fleet's stream that are refused or stopped, each with the server's words.
        #[serde(default)]
        fleet_troubles: Vec<String>,
        /// Metrics whose 0 is no trouble yet: the first connection is still being made.
        #[serde(default)]
        connecting: Vec<String>,
        /// By the metric of a connection to NATS servers that is 0: the reason of the last failure.
        #[serde(default)]
        disconnected: BTreeMap<String, String>,
    }
}

answer! {
    /// The required subscriber that a real-time topic waits for, while the topic rejects events.
    AwaitedSubscriber {
        /// The topic; empty in the answer of the topic itself.
        #[serde(default)]
        event_type: String,
        /// Name of the subscriber; of a graph, `graph` and its name.
        subscriber: String,
        /// When the first event was rejected (UTC).
        since: String,
        /// Events that were rejected since.
        rejected: u64,
        /// For how long the subscriber may be silent, in seconds.
        required_for_s: u64,
    }
}

answer! {
    /// A system that holds a publisher slot of a real-time topic.
    SlotHolder {
        /// Its name.
        system: String,
        /// When it published first (UTC).
        since: String,
    }
}

answer! {
    /// Which systems hold the publisher slots of a real-time topic.
    PublisherSlots {
        /// How many hold one.
        held: u64,
        /// The first 32 of them by name.
        systems: Vec<SlotHolder>,
    }
}

answer! {
    /// A publisher that a real-time topic has rejected.
    RejectedPublisher {
        /// The topic; empty in the answer of the topic itself.
        #[serde(default)]
        event_type: String,
        /// Name of the system.
        system: String,
        /// When its last event was rejected (UTC).
        at: String,
        /// The key of the declaration that it does not meet: `publisher` or `publishers`.
        key: String,
        /// The same in words.
        reason: String,
        /// Which systems hold the topic's publisher slots; none in the answer of the topic itself.
        #[serde(default)]
        holders: Vec<SlotHolder>,
    }
}

answer! {
    /// A node that serves its cloud from a database that it shares with others.
    NodeState {
        /// What its data directory calls it.
        node: String,
        /// Whether it is the one that answers.
        is_this: bool,
        /// `serves`, `silent`, `unknown`.
        state: String,
        /// Its machine's address or name.
        host: String,
        /// Where its dashboard is on that.
        monitor_port: u16,
        /// The release that it runs.
        release: String,
        /// When it was heard last, by the database's clock (UTC).
        seen_at: String,
        /// The last commit of the database that it showed then.
        commit: i64,
        /// By how much its clock is in front of the database's for certain, in milliseconds.
        clock_ahead_ms: i64,
        /// Whether it does what is to be done once in the cloud.
        keeper: bool,
        /// When it last started from a data directory that was restored or copied, by the database's clock (UTC); `None`: never.
        #[serde(default)]
        restored_at: Option<String>,
    }
}

answer! {
    /// What deadlines count on, and what the machine shows of it. Times are in microseconds.
    PlatformState {
        /// `pending`, `unstated`, `held`, `suspended`.
        guarantee: String,
        /// What suspends it, the one to look at first: `clock`, `publishers`, `stall`.
        #[serde(default)]
        causes: Vec<String>,
        /// The same in words, with what to do; `None`: it is not suspended, or the server is an older one.
        #[serde(default)]
        why: Option<String>,
        /// The longest stall of the last minute.
        worst_us: u64,
        /// The longest one that deadlines were admitted with.
        blocking_us: u64,
        /// How the threads of the data plane are scheduled.
        scheduling: SchedulingState,
    }
}

answer! {
    /// How threads are scheduled.
    SchedulingState {
        /// `pending`, `fifo`, `default`.
        policy: String,
        /// By what that was decided.
        why: String,
    }
}

answer! {
    /// A topic that a graph fetches from another edge.
    GraphLinkState {
        /// Where it is made.
        edge: String,
        /// Its name.
        topic: String,
        /// Why nothing comes from there; `None`: it is subscribed to.
        down: Option<String>,
        /// Events in a row that may be missing; `None`: nothing is kept for this edge.
        loss_tolerance: Option<u32>,
        /// Events that have come.
        received: u64,
        /// Events that are missing.
        lost: u64,
        /// Rows of missing events that were longer than is tolerated.
        exceeded: u64,
        /// Events that cannot be taken.
        refused: u64,
    }
}

answer! {
    /// An event-processing graph, and what became of its events.
    GraphState {
        /// Its name.
        name: String,
        /// `configuration` or `operator`.
        declared_by: String,
        /// How many operators it has.
        operators: usize,
        /// Topics whose events it takes.
        suppliers: Vec<String>,
        /// Topics that it writes.
        outputs: Vec<String>,
        /// What comes from other edges.
        links: Vec<GraphLinkState>,
        /// Of its file: hosts with the same one run the same version.
        #[serde(default)]
        digest: String,
        /// Where the operators of a graph over several edges run.
        #[serde(default)]
        placement: Vec<GraphPlace>,
        /// An operator that is between two hosts.
        #[serde(default)]
        moving: Option<String>,
        /// Where it took the place of another one: operators that go on with the states of that.
        #[serde(default)]
        states_kept: Vec<String>,
        /// Where it did: operators that begin anew.
        #[serde(default)]
        states_anew: Vec<String>,
        /// Why it stands still; `None`: it runs.
        suspended: Option<String>,
        /// Events of suppliers' topics that it has taken.
        taken: u64,
        /// Events that it has not.
        refused: u64,
        /// Events that arrived faster than their supplier's declared period.
        #[serde(default)]
        excess: u64,
        /// Events and results that newer ones replaced before an operator used them.
        #[serde(default)]
        replaced: u64,
        /// Rounds that operators have run.
        rounds: u64,
        /// Of these, rounds without the result that was promised.
        failed: u64,
        /// Restarts of operators whose state was no longer finite.
        #[serde(default)]
        restarts: u64,
        /// Results that were not made because their events were not valid.
        shed: u64,
        /// Results.
        published: u64,
        /// Of these, results of events that were not valid.
        marked: u64,
        /// Of these, results later than their output's deadline.
        late: u64,
        /// Results that could not be published.
        lost: u64,
    }
}

answer! {
    /// Where an operator runs.
    GraphPlace {
        /// Which one.
        operator: String,
        /// Where.
        edge: String,
    }
}

answer! {
    /// A step of the move of an operator to another edge.
    MoveForm {
        /// Its graph.
        graph: String,
        /// Which operator.
        operator: String,
        /// The edge.
        to: String,
        /// `plan`, `prepare`, `commit`, `finish` or `abandon`.
        step: String,
        /// The edge that is asked: another one refuses.
        edge: Option<String>,
        /// Of the edge where the operator runs.
        release: Option<String>,
        /// The version of the graph's file in which the operator is there.
        file: Option<String>,
        /// What goes with the operator, in Base64.
        handover: Option<String>,
        /// Even if results may be late there.
        force: bool,
    }
}

answer! {
    /// What a step of a move has come to.
    GraphMove {
        /// Its graph.
        graph: String,
        /// Which operator.
        operator: String,
        /// The edge where it ran.
        from: String,
        /// The edge where it is to run.
        to: String,
        /// The step.
        step: String,
        /// Of this edge.
        release: String,
        /// Of the version in which the operator is there.
        digest: String,
        /// That version: of a plan and a commit.
        file: Option<String>,
        /// Other edges that have a part of the graph: of a plan.
        edges: Vec<String>,
        /// Whether the operator has gone, or is there.
        committed: bool,
        /// What goes with it, in Base64: of a commit.
        handover: Option<String>,
    }
}

answer! {
    /// A real-time topic. Times are in microseconds.
    RealTimeTopic {
        /// Its event type.
        event_type: String,
        /// Least time between two events of one publisher.
        period_us: u64,
        /// From an event's creation to its arrival; `None`: any time will do.
        deadline_us: Option<u64>,
        /// Events in a row that a subscriber may miss; `None`: any number.
        loss_tolerance: Option<u32>,
        /// Newest events that a publisher keeps.
        retention: u32,
        /// What is served first: 0 to 7.
        level: u8,
        /// At the same time.
        publishers: u32,
        /// Names of the systems that may publish; none: every system.
        #[serde(default)]
        publisher: Vec<String>,
        /// Which systems hold its publisher slots.
        #[serde(default)]
        publisher_slots: PublisherSlots,
        /// Whether publishers are answered after the sync.
        durable: bool,
        /// Whether its events go on to the fleet's stream.
        #[serde(default)]
        fleet: bool,
        /// `configuration` or `operator`.
        declared_by: String,
        /// Of the deadline, as far as the machine's stalls go: `pending`, `unstated`, `held`, `suspended`; `None`: there is no deadline.
        guarantee: Option<String>,
        /// Events taken since the start.
        accepted: u64,
        /// Of these, those that came faster than the period.
        excess: u64,
        /// Events that were not taken.
        refused: u64,
        /// Of these, events of publishers that the declaration does not name, or for which no slot was free.
        #[serde(default)]
        publisher_rejected: u64,
        /// The publisher that was rejected last.
        #[serde(default)]
        rejected_publisher: Option<RejectedPublisher>,
        /// The required subscriber that it waits for; `None`: it accepts events.
        #[serde(default)]
        waits_for: Option<AwaitedSubscriber>,
        /// Events handed to their subscribers.
        dispatched: u64,
        /// Of these, those that were due before.
        late: u64,
        /// Events taken and dropped.
        shed: u64,
        /// Events that full queues have cost subscribers, once for each.
        #[serde(default)]
        lost: u64,
    }
}

answer! {
    /// How a pushed subscription is delivered.
    Delivery {
        /// Row id of the subscription.
        id: i64,
        /// Which events.
        event_type: String,
        /// Who receives them.
        subscriber: System,
        /// Path at the subscriber.
        notify_uri: String,
        /// `live`, `retrying`, `open`, `behind` or `paused`.
        state: String,
        /// Events the subscriber took.
        delivered: u64,
        /// Requests that were made.
        attempts: u64,
        /// Requests that failed.
        failures: u64,
        /// Events that were lost.
        lost: u64,
        /// Events that another cloud has taken later than their share says.
        #[serde(default)]
        late: u64,
        /// Events that were given up and kept as dead letters.
        dead_letters: u64,
        /// What is still to deliver of the event log; `None` when it is not known.
        #[serde(default)]
        behind: Option<u64>,
        /// Failures since the last success.
        consecutive_failures: u64,
        /// When an event was taken last (UTC).
        #[serde(default)]
        last_success_at: Option<String>,
        /// When a request failed last (UTC).
        #[serde(default)]
        last_failure_at: Option<String>,
        /// Why.
        #[serde(default)]
        last_error: Option<String>,
        /// When the next request is made (UTC).
        #[serde(default)]
        next_attempt_at: Option<String>,
    }
}

answer! {
    /// An event that a subscriber did not take.
    DeadLetter {
        /// Its number.
        id: i64,
        /// Row id of the subscription.
        subscription: i64,
        /// Identity of the event, as streams write it; `None`: the event log does not keep the event any more.
        event_id: Option<String>,
        /// Event type, likewise.
        event_type: Option<String>,
        /// When it was accepted (UTC), likewise.
        published_at: Option<String>,
        /// How often it was tried.
        attempts: u64,
        /// Why it was given up.
        reason: String,
        /// When (UTC).
        died_at: String,
        /// The event; `None`: the event log does not keep it any more.
        event: Option<DeadEvent>,
        /// Bytes of its payload where that is not told, for the cloud is secure.
        #[serde(default)]
        payload_withheld_bytes: Option<u64>,
    }
}

answer! {
    /// The event of a dead letter.
    DeadEvent {
        /// Event type as published.
        event_type: String,
        /// Free pairs.
        #[serde(default)]
        meta_data: Option<BTreeMap<String, String>>,
        /// What happened; `None` where only those read it who may subscribe to it.
        #[serde(default)]
        payload: Option<String>,
        /// When (UTC).
        time_stamp: String,
    }
}

answer! {
    /// What a replay of dead letters did.
    Replayed {
        /// Events that were taken now.
        replayed: u64,
        /// Events that failed again.
        failed: u64,
        /// Dead letters that are left.
        remaining: u64,
        /// Those of them whose events are in the event log of the other node of a pair, which delivers them again when it leads.
        #[serde(default)]
        elsewhere: u64,
    }
}

answer! {
    /// What a removal of dead letters did.
    Removed {
        /// How many are gone.
        removed: u64,
    }
}

answer! {
    /// An event type the Event Handler knows.
    EventTypeState {
        /// Its name.
        event_type: String,
        /// Events that were accepted since the start.
        published: u64,
        /// Push subscriptions.
        subscriptions: u64,
        /// Open event streams.
        streams: u64,
        /// Whether publishers are answered after the sync.
        durable: bool,
    }
}

answer! {
    /// The event log as it is.
    EventLogState {
        /// Files.
        segments: u64,
        /// Bytes of all files.
        bytes: u64,
        /// Position of the oldest event that is kept.
        first_position: u64,
        /// Position of the next event.
        next_position: u64,
        /// Events before this position are on the disk.
        #[serde(default)]
        synced_position: u64,
        /// Positions that were skipped while the disk took nothing.
        #[serde(default)]
        skipped: u64,
        /// Every event that was accepted later is kept (UTC).
        #[serde(default)]
        oldest: Option<String>,
        /// Why nothing is kept now; `None` while the log works.
        #[serde(default)]
        suspended: Option<String>,
    }
}

answer! {
    /// What is known of a service's life.
    ServiceState {
        /// Row id of the service.
        id: i64,
        /// What.
        service_definition: NameOrRow<ServiceDefinition>,
        /// By whom.
        provider: System,
        /// Where at the provider.
        #[serde(default)]
        service_uri: String,
        /// Until when it is or was offered (UTC); `None` is for ever.
        #[serde(default)]
        end_of_validity: Option<String>,
        /// `fresh`, `expired`, `unreachable` or `unknown`.
        state: String,
        /// When a connection was tried last (UTC).
        #[serde(default)]
        last_probe_at: Option<String>,
        /// `reachable` or `unreachable`.
        #[serde(default)]
        last_probe: Option<String>,
        /// Since when no connection was accepted (UTC).
        #[serde(default)]
        unreachable_since: Option<String>,
        /// When it will be deregistered (UTC), if the operator chose that.
        #[serde(default)]
        deregister_at: Option<String>,
    }
}
