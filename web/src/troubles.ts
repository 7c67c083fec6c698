/** What is not as it should be at a node, by the overview's numbers: whatever an alert of docs/monitoring/alerts.yml says of a node, its overview says too. */

import { bytes, digits, seconds, some } from "./format";

export type Numbers = Readonly<Record<string, number>>;

export interface Trouble {
    /** Numbers of which it speaks. */
    of: readonly string[];
    /** What it says, and what to do; `null`: nothing. `nowS`: what the node's clock shows, in seconds since 1970. */
    says: (numbers: Numbers, nowS: number) => string | null;
}

/** Bytes below which the database may soon not be written, as in the alert BodkinDiskFull. */
const FREE_BYTES_MIN = 64 * 1024 * 1024;
/** By how much clocks of nodes that share a database may differ from its clock, as in the alert BodkinClockDiffers. */
const CLOCK_DIFFERENCE_S_MAX = 1;
/** For how long what goes between nodes beside the snapshot may not get through, as in the alerts BodkinCertificatesHeldUp and BodkinAuditNotCopied. */
const EXCHANGE_AGE_S_MAX = 10;
/** How long a message to the shared database and its answer may take, as in the alert BodkinDatabaseSlow. */
const ROUND_TRIP_S_MAX = 0.1;
/** How long an event may wait for the fleet's stream, as in the alert BodkinFleetBehind. */
const FLEET_LAG_S_MAX = 300;
/** Before its end a certificate is to be looked at: it was due for renewal long ago. As in the alert BodkinCertificateEnds. */
const CERTIFICATE_LEFT_S_MIN = 14 * 86_400;

/** A node that does not tell a number has none of it. */
const value = (numbers: Numbers, name: string): number => numbers[name] ?? 0;

const isOver = (name: string, most: number, words: (value: number) => string): Trouble => ({
    of: [name],
    says: (numbers) => (value(numbers, name) > most ? words(value(numbers, name)) : null),
});
const is = (name: string, words: (value: number) => string): Trouble => isOver(name, 0, words);
/** Where the number is told at all, and says no. */
const isNot = (name: string, words: (numbers: Numbers) => string): Trouble => ({ of: [name], says: (numbers) => (numbers[name] === 0 ? words(numbers) : null) });

/** It does not get through though the database is reached: that it is not is a trouble of its own. */
const heldUp = (name: string, words: (age: string) => string): Trouble => ({
    of: [name, "bodkin_database_connected"],
    says: (numbers) => (numbers["bodkin_database_connected"] !== 0 && value(numbers, name) > EXCHANGE_AGE_S_MAX ? words(seconds(value(numbers, name))) : null),
});

const slowDatabase: Trouble = {
    of: ["bodkin_database_round_trip_seconds", "bodkin_database_connected"],
    says: (numbers) => {
        const roundTripS = value(numbers, "bodkin_database_round_trip_seconds");
        if (numbers["bodkin_database_connected"] === 0 || roundTripS <= ROUND_TRIP_S_MAX) return null;
        return `A message to the shared database and its answer take ${digits(roundTripS * 1000)} ms, and each change at this node takes several of them: look at the network between them.`;
    },
};

const disk: Trouble = {
    of: ["bodkin_data_free_bytes", "bodkin_event_log_max_bytes", "bodkin_event_log_bytes"],
    says: (numbers) => {
        const free = numbers["bodkin_data_free_bytes"];
        if (free === undefined) return null;
        if (free < FREE_BYTES_MIN) return `${bytes(free)} are free on the disk: make room, for a full one refuses every change and keeps no events.`;
        const growth = Math.max(0, value(numbers, "bodkin_event_log_max_bytes") - value(numbers, "bodkin_event_log_bytes"));
        return free < FREE_BYTES_MIN + growth ? `${bytes(free)} are free on the disk, and the event log may take ${bytes(growth)} more: make room.` : null;
    },
};

const alone: Trouble = {
    of: ["bodkin_pair_leads", "bodkin_pair_protected"],
    says: (numbers) => (value(numbers, "bodkin_pair_leads") === 1 && numbers["bodkin_pair_protected"] === 0 ? "The Backup is out, and nothing is protected: start it, or look why it cannot follow." : null),
};

const certificate: Trouble = {
    of: ["bodkin_certificates_end_timestamp_seconds"],
    says: (numbers, nowS) => {
        const endS = numbers["bodkin_certificates_end_timestamp_seconds"];
        if (endS === undefined || endS - nowS >= CERTIFICATE_LEFT_S_MIN) return null;
        return `The certificate of a core system ${endS <= nowS ? "has ended" : `ends in ${seconds(endS - nowS)}`}, and was not renewed: look at the log, and at bodkin doctor.`;
    },
};

/** What is so now, most urgent first; then what has been since the start. */
export const TROUBLES: readonly Trouble[] = [
    is("bodkin_database_suspended", () => "The database takes no change: each is answered 503."),
    isNot("bodkin_database_connected", () => "The shared database is not reached: changes are refused, and what was last read is shown. Look whether PostgreSQL runs, and is reached from there."),
    is("bodkin_nodes_silent", (value) => `${some(value, "node of this cloud is silent", "nodes of this cloud are silent")}: see below which, and look whether they run and reach the database.`),
    isNot("bodkin_node_events_connected", () => "NATS is not reached, or its stream takes or gives nothing: live subscribers hear only what is published at their own node. Look whether it runs, and is reached from there (GET /api/v1/nodes/events says why)."),
    slowDatabase,
    isOver("bodkin_database_clock_difference_seconds", CLOCK_DIFFERENCE_S_MAX, (value) => `This node's clock differs from the shared database's by ${digits(value)} s, and what ends at some time ends there at another: have both machines keep time.`),
    heldUp("bodkin_certificate_exchange_age_seconds", (age) => `Certificates have not gone from node to node for ${age}: what is revoked at one counts on at others. The log says why.`),
    heldUp("bodkin_audit_copy_age_seconds", (age) => `The other nodes have not seen for ${age} what this one's audit log says: its own files have it, and the log says why.`),
    is("bodkin_audit_suspended", () => "The audit log cannot be written: changes are refused."),
    is("bodkin_event_log_suspended", () => "The event log keeps nothing: the disk takes nothing."),
    is("bodkin_event_log_lost_total", (value) => `The event log has lost ${some(value, "event", "events")} since the start: its files were removed, or lost in a power failure. The log names them.`),
    disk,
    isNot("bodkin_fleet_connected", (numbers) => `Events do not reach the fleet's stream, and ${some(value(numbers, "bodkin_fleet_waiting_events"), "waits", "wait")} in the event log: Events says why.`),
    is("bodkin_fleet_stopped_lanes", (value) => `${some(value, "lane to the fleet's stream stands still", "lanes to the fleet's stream stand still")}: another edge has this one's name, or it was put back to an earlier state. Events says which.`),
    is("bodkin_fleet_refused_lanes", (value) => `The fleet's stream does not accept the events of ${some(value, "lane", "lanes")}, which wait in the event log: Events has the server's words.`),
    isOver("bodkin_fleet_lag_seconds", FLEET_LAG_S_MAX, (value) => `Events have waited for the fleet's stream for ${seconds(value)}, and are lost when the event log is full: look at the link and the servers.`),
    isNot("bodkin_from_fleet_connected", () => "Events of the fleet do not come here, and wait in its stream: Events says why."),
    alone,
    is("bodkin_topics_waiting", (value) => `${some(value, "topic rejects events", "topics reject events")} because a required subscriber has not acknowledged earlier ones: bodkin status names it. Look whether it runs.`),
    is("bodkin_pair_unreached", () => "A node of the reliable pair is unreachable: see below which."),
    is("bodkin_pair_duplicates", () => "A second process claims to be a node of this pair, and is refused: bodkin status says which node, and where the process connects from. Stop one of the two."),
    is("bodkin_pair_rejected", (value) => `${some(value, "node of the pair refuses", "nodes of the pair refuse")} this one, which neither leads nor votes: bodkin status says why.`),
    is("bodkin_pair_settings_differ", (value) => `${some(value, "node of the pair runs", "nodes of the pair run")} with other settings, and a failover may fail: bodkin status has both values. Give all nodes the same --config.`),
    is("bodkin_pair_lease_refused", (value) => `${some(value, "node of the pair refuses", "nodes of the pair refuse")} this node's lease, and none takes over when the leader fails: give all nodes the same [platform].`),
    is("bodkin_pair_record_failed", () => "A node of the pair cannot write its record of votes, and votes for no node: bodkin status says which. Make room on its disk."),
    is("bodkin_pair_disks_full", (value) => `The disk of ${some(value, "node", "nodes")} of the pair takes no new data, neither changes nor events: bodkin status says which. Make room on it.`),
    is("bodkin_pair_follow_failed", () => "This standby cannot keep what the leader sends, and does not take over: bodkin status says why."),
    is("bodkin_pair_certificate_revoked", () => "This node's own certificate is revoked, and the node takes no part in the pair. If it is to return, issue another certificate for it."),
    is("bodkin_pair_certificates_unshared", () => "Certificates that were issued or revoked at this standby are not known at the leader: start the leader, or bring it to this release."),
    is("bodkin_quotas_exceeded", (value) => `${some(value, "quota", "quotas")} of clients rejected something in the last minute: the log names the client, bodkin_quota_rejected_total the quota.`),
    is("bodkin_relay_clients_at_limit", (value) => `The relay refuses requests of ${some(value, "client", "clients")} at a limit: bodkin_relay_client_rejected_total names client and limit.`),
    is("bodkin_graphs_suspended", (value) => `${some(value, "graph stands still because an operator has failed", "graphs stand still because an operator has failed")}: see Graphs.`),
    is("bodkin_graph_links_down", (value) => `${some(value, "link of graphs to other edges is down", "links of graphs to other edges are down")}, and results are late: see Graphs.`),
    certificate,
    is("bodkin_guarantee_suspended", () => "Deadlines are not guaranteed just now: below is why."),
    is("bodkin_backup_far", () => "Replicas take longer to the Backup than was admitted with."),
    is("bodkin_nodes_other_release", (value) => `${some(value, "node of this cloud runs another release", "nodes of this cloud run another release")} than this one: bring them to the same one.`),
    is("bodkin_database_setbacks_total", (value) => `The shared database was found without commits that had been shown, ${some(value, "time", "times")} since the start: what was answered in them is lost. The log says which.`),
    is("bodkin_audit_lost_total", (value) => `${some(value, "entry of the audit log was lost", "entries of the audit log were lost")} since the start.`),
    is("bodkin_fleet_lost_total", (value) => `${some(value, "event was lost for the fleet", "events were lost for the fleet")} since the start: the event log did not keep them until they were forwarded.`),
    is("bodkin_fleet_lost_by_stream_total", (value) => `${some(value, "event was lost by the fleet's stream", "events were lost by the fleet's stream")} since the start, which had acknowledged them.`),
    is("bodkin_fleet_emptied_total", (value) => `The fleet's stream was found purged or deleted ${some(value, "time", "times")} since the start: what it had acknowledged is gone, and not sent again. Events says of which lane.`),
    is("bodkin_from_fleet_lost_total", (value) => `${some(value, "message of the fleet, at the most, was let go of", "messages of the fleet, at the most, were let go of")} by its stream before coming here.`),
    is("bodkin_from_fleet_refused_total", (value) => `${some(value, "message of the fleet", "messages of the fleet")} could not be published here since the start: Events has the last one.`),
    is("bodkin_node_events_missing_total", (value) => `${some(value, "event of other nodes is missing", "events of other nodes are missing")} since the start.`),
    is("bodkin_node_events_unsent_total", (value) => `${some(value, "event was not sent to the other nodes", "events were not sent to the other nodes")} since the start.`),
    is("bodkin_topic_late_total", (value) => `${some(value, "event of real-time topics was late", "events of real-time topics were late")} since the start.`),
    is("bodkin_topic_lost_total", (value) => `${some(value, "event of real-time topics was lost", "events of real-time topics were lost")} since the start.`),
    is("bodkin_graph_links_exceeded_total", (value) => `${some(value, "gap of links of graphs was", "gaps of links of graphs were")} longer than the links tolerate, since the start: see Graphs.`),
    is("bodkin_events_lost_total", (value) => `${some(value, "event was lost to slow subscribers", "events were lost to slow subscribers")} since the start.`),
    is("bodkin_dead_letters_total", (value) => `${some(value, "pushed event was given up", "pushed events were given up")} since the start: Events has those that were not delivered again.`),
];

/** What of it is so. */
export const troubles = (numbers: Numbers, nowS: number): string[] => TROUBLES.flatMap(({ says }) => says(numbers, nowS) ?? []);
