//! Metrics without a label: what stands at some value, and what has been counted.

use std::sync::atomic::Ordering::Relaxed;

use bodkin_arrowhead::shared_event::Account;

use super::{Monitor, Number, disk, fleet, overview, pair, quality, quotas, relay, stalls, tunnel};
use crate::{
    fleet::{BackState, FleetState},
    gatekeeper::DialogueCounts,
    shared,
};

impl Monitor {
    /// What stands at some value just now and has no label.
    pub(super) fn gauges(&self) -> Vec<Number> {
        let snapshot = self.store.snapshot();
        let gauges = [
            ("bodkin_services", "Service Registry entries.", snapshot.entries().len() as u64),
            ("bodkin_systems", "Registered systems.", snapshot.systems().len() as u64),
            ("bodkin_authorization_rules", "Intracloud authorization rules.", snapshot.rules().len() as u64),
            ("bodkin_event_subscriptions", "Event streams and pushed subscriptions.", self.events.subscriptions.load(Relaxed)),
            (
                "bodkin_events_waiting",
                "Events of real-time topics that wait for their turn by deadline, as of the last second.",
                self.events.waiting.load(Relaxed),
            ),
            ("bodkin_control_connections", "Open connections of the control plane.", self.quotas.control.connections() as u64),
            ("bodkin_event_connections", "Open connections of the Event Handler.", self.events.connections.load(Relaxed)),
            ("bodkin_zmtp_connections", "Open connections of the ZMTP port and path.", self.events.zmtp_connections.load(Relaxed)),
            ("bodkin_live_streams", "Dashboards and others that hear what changes.", self.live.listeners()),
            ("bodkin_dns_sd_services", "Services announced by multicast DNS.", self.events.announced.said.load(Relaxed)),
            (
                "bodkin_dns_sd_services_unannounced",
                "Services that should be announced and are not, for there are too many or their addresses are not found.",
                self.events.announced.unsaid.load(Relaxed),
            ),
            ("bodkin_resident_memory_bytes", "Memory in use.", resident_memory_bytes()),
        ];
        let log = self.api.log_state();
        let (bytes, records, suspended) =
            log.map_or((0, 0, 0), |log| (log.bytes, log.next.0.saturating_sub(log.first.0), u64::from(log.suspended.is_some())));
        let gauges = gauges.into_iter().chain([
            ("bodkin_event_log_bytes", "Bytes of the event log's files.", bytes),
            ("bodkin_event_log_events", "Events that are kept.", records),
            ("bodkin_event_log_suspended", "1 while the disk takes nothing and events are not kept.", suspended),
        ]);
        let audit = self.api.audit.log();
        let gauges = gauges.chain(disk::gauges(&self.disk)).chain([
            ("bodkin_audit_entries", "Number of the last entry of the audit log that is on disk.", audit.head().number),
            (
                "bodkin_audit_suspended",
                "1 while the audit log cannot be written and changes are refused.",
                u64::from(audit.check().is_err()),
            ),
        ]);
        let gauges = gauges.chain(self.pair.iter().flat_map(|pair| pair::gauges(pair.leadership())));
        let topics = self.api.topics.all();
        let waiting = overview::waiting(&topics).count() as u64;
        let gauges = gauges.chain([
            ("bodkin_topics", "Real-time topics; beyond 1,000 their counts are summed under the event type \"\".", topics.len() as u64),
            (
                "bodkin_topics_waiting",
                "Real-time topics that reject events because a required subscriber has not acknowledged earlier ones.",
                waiting,
            ),
        ]);
        let gauges = gauges.chain(stalls::gauges(&self.api.stalls));
        let gauges = gauges.chain([self.graphs_suspended(), self.graph_links_down()]).chain(self.certificates_end());
        let standing = self.store.standing();
        let gauges = gauges.chain(standing.iter().flat_map(shared::gauges)).chain(quality::gauges(&self.api.control.qualities));
        let gauges = gauges.chain(self.forwarding().flat_map(fleet::gauges)).chain(self.way_back().flat_map(fleet::back_gauges));
        let gauges = gauges.chain(self.crossing.iter().flat_map(|crossing| crossing.counts.gauges()));
        let gauges = gauges.chain(self.relay.iter().flat_map(|relay| relay::gauges(relay.counts())));
        gauges
            .chain(quotas::gauges(&self.quotas))
            .chain(self.api.control.gateway.iter().flat_map(|gateway| tunnel::gauges(gateway)))
            .collect()
    }

    /// The same of what comes from the fleet.
    pub(super) fn way_back(&self) -> impl Iterator<Item = &BackState> {
        self.fleet().filter_map(|fleet| fleet.back.as_deref())
    }

    /// What is told of forwarding to the fleet's stream, by the node that does it; an edge may only take.
    pub(super) fn forwarding(&self) -> impl Iterator<Item = &FleetState> {
        self.fleet().filter(|fleet| fleet.forwards.load(Relaxed))
    }

    fn fleet(&self) -> impl Iterator<Item = &FleetState> {
        self.api.fleet.as_deref().filter(|_| self.pair.as_ref().is_none_or(|pair| pair.leadership().leads())).into_iter()
    }

    /// What has been counted since the start and has no label.
    pub(super) fn counters(&self) -> Vec<Number> {
        let counted = [
            ("bodkin_events_published_total", "Accepted events.", &self.events.published),
            ("bodkin_events_delivered_total", "Events put into subscribers' queues.", &self.events.delivered),
            (
                "bodkin_events_lost_total",
                "Events lost to full subscriber queues, or gone from the event log before they were delivered.",
                &self.events.lost,
            ),
            (
                "bodkin_zmtp_events_refused_total",
                "Events refused that came by PUB and PUSH sockets, which cannot be told.",
                &self.events.refused_untold,
            ),
            ("bodkin_push_attempts_total", "Attempts to push an event.", &self.events.push_attempts),
            ("bodkin_push_delivered_total", "Pushed events that the subscriber took.", &self.events.push_delivered),
            ("bodkin_push_failures_total", "Attempts to push an event that failed.", &self.events.push_failures),
            ("bodkin_dead_letters_total", "Pushed events that were given up.", &self.events.dead_letters),
            (
                "bodkin_shared_events_late_total",
                "Events that another cloud has taken later than they should be there.",
                &self.events.shared_late,
            ),
            ("bodkin_replicas_sent_total", "Replicas of events that were sent to the Backup.", &self.events.replicated),
            ("bodkin_replicas_late_total", "Of these, replicas that were due before.", &self.events.replicated_late),
            (
                "bodkin_replicas_saved_total",
                "Replicas that did not have to be sent, because their events were covered before.",
                &self.events.replicas_saved,
            ),
        ];
        let counted = counted.map(|(name, help, value)| (name, help, value.load(Relaxed)));
        let parts =
            ("bodkin_live_parts_total", "Answers that were made for those who hear what changes, once for all of them.", self.live.made());
        let log = self.api.log_state();
        let log_lost = (
            "bodkin_event_log_lost_total",
            "Events of the event log that were lost because its files were removed, or because it had lost its end at the start.",
            log.map_or(0, |log| log.lost),
        );
        let syncs = ("bodkin_audit_syncs_total", "Syncs of the audit log to the disk.", self.api.audit.log().syncs());
        let lost = ("bodkin_audit_lost_total", "Entries of the audit log that could not be written.", self.api.audit.log().lost());
        let relay = self.relay.iter().flat_map(|relay| relay::counters(relay.counts()));
        let dialogues = self.api.control.gatekeeper.iter().flat_map(|gatekeeper| dialogues(&gatekeeper.counts));
        let tunnels = self.api.control.gateway.iter().flat_map(|gateway| tunnel::counters(gateway));
        let heard = self.api.control.gatekeeper.iter().flat_map(|gatekeeper| heard(&gatekeeper.heard.sum()));
        let spans = self.api.control.traces.iter().flat_map(|traces| traces.numbers());
        let quality = quality::counters(&self.api.control.qualities);
        let counted = counted
            .into_iter()
            .chain([parts, log_lost, syncs, lost, disk::counters(&self.disk), self.graph_links_exceeded()])
            .chain(quality)
            .chain(self.forwarding().flat_map(fleet::counters));
        let counted = counted.chain(self.way_back().flat_map(fleet::back_counters));
        let counted = counted.chain(self.crossing.iter().flat_map(|crossing| crossing.counts.counters()));
        let standing = self.store.standing();
        counted
            .chain(standing.iter().flat_map(shared::counters))
            .chain(relay)
            .chain(dialogues)
            .chain(tunnels)
            .chain(heard)
            .chain(spans)
            .collect()
    }
}

/// Dialogues with the gatekeepers of other clouds.
fn dialogues(counts: &DialogueCounts) -> [Number; 4] {
    [
        ("bodkin_dialogues_asked_total", "Dialogues that were begun with other clouds.", &counts.asked),
        ("bodkin_dialogues_failed_total", "Of these, those that came to nothing.", &counts.failed),
        ("bodkin_dialogues_answered_total", "Dialogues that other clouds have begun, and that were answered.", &counts.answered),
        ("bodkin_dialogues_refused_total", "Calls and dialogues of other clouds that were not answered.", &counts.not_answered),
    ]
    .map(|(name, help, value)| (name, help, value.load(Relaxed)))
}

fn heard(events: &Account) -> [Number; 4] {
    [
        ("bodkin_heard_events_total", "Events of other clouds that were taken.", events.taken),
        ("bodkin_heard_events_missing_total", "Events of other clouds that are missing between those.", events.lost),
        ("bodkin_heard_events_repeated_total", "Events of other clouds that came once more.", events.repeated),
        ("bodkin_heard_events_refused_total", "Attempts of other clouds to share an event whose type is not accepted.", events.refused),
    ]
}

/// `VmRSS` of this process; 0 where the system does not tell.
pub(crate) fn resident_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}
