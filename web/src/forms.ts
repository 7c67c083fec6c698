/** Members of the answers that pages show. `/openapi.json` has all of them with what they mean. */

export interface List<T> {
    data: T[];
    count: number;
}

export interface Overview {
    version: string;
    at: string;
    uptimeS: number;
    cloud: string;
    secure: boolean;
    /** Insecure mode has neither Gatekeeper nor Gateway. */
    ports: Record<"serviceregistry" | "authorization" | "orchestrator" | "eventhandler" | "monitor", number> & Partial<Record<"gatekeeper" | "gateway", number>>;
    /** Metrics without labels, by name. */
    numbers: Record<string, number>;
}

/** A node that serves its cloud from a database that it shares with others. */
export interface NodeState {
    node: string;
    isThis: boolean;
    state: "serves" | "silent" | "unknown";
    host: string;
    monitorPort: number;
    secure: boolean;
    release: string;
    startedAt: string;
    seenAt: string;
    commit: number;
    clockAheadMs: number;
    keeper: boolean;
    issues: boolean;
    /** When it last started from a data directory that was restored or copied. */
    restoredAt: string | null;
}

export type Guarantee = "pending" | "unstated" | "held" | "suspended";

export interface Platform {
    guarantee: Guarantee;
    /** The one to look at first in front. */
    causes: ("clock" | "publishers" | "stall")[];
    /** The same in words, with figures and what to do; `null`: nothing is suspended. */
    why: string | null;
    worstUs: number;
    blockingUs: number;
    machineStallUs: number | null;
    longestTurnUs: number | null;
    scheduling: { asked: string; policy: string; why: string; memoryLocked: boolean; memory: string; threads: Thread[] };
    failoverUs: number;
    lease: { leaseUs: number; heartbeatUs: number };
    loadMaxPercent: number;
    clockDifferenceUs: number;
    clockErrorUs: number;
    publisherExcessUs: number;
    brokerBackupUs: number;
    brokerBackupStatedUs: number;
    timeOfDay: { isSynchronised: boolean; errorMaxUs: number } | null;
    zmtp: { address: string | null; ipc: string | null };
}

export interface Thread {
    name: string;
    rank: string;
    priority: number;
    cores: number[];
    refused: string | null;
}

/** Each bucket is its upper bound and its count. */
export interface Histogram {
    count: number;
    sum_ns: number;
    buckets: [number, number][];
}

export interface Stages {
    unit: string;
    systems: Record<string, Record<string, Histogram>>;
}

export interface EventLog {
    segments: number;
    bytes: number;
    firstPosition: number;
    nextPosition: number;
    syncedPosition: number;
    oldest: string | null;
    skipped: number;
    suspended: string | null;
}

export interface System {
    id: number;
    systemName: string;
    address: string;
    port: number;
    authenticationInfo?: string;
    metadata?: Record<string, string>;
    createdAt: string;
    updatedAt: string;
}

export interface ServiceLife {
    id: number;
    serviceDefinition: string;
    provider: System;
    serviceUri: string;
    endOfValidity: string | null;
    state: "fresh" | "expired" | "unreachable" | "unknown";
    lastProbeAt: string | null;
    lastProbe: string | null;
    deregisterAt: string | null;
}

export interface Named {
    id: number;
    serviceDefinition: string;
}

export interface Interface {
    id: number;
    interfaceName: string;
}

export interface RegisteredService {
    id: number;
    serviceDefinition: Named;
    provider: System;
    serviceUri: string;
    secure: string;
    version: number;
    interfaces: Interface[];
}

export interface Grant {
    id: number;
    systemName: string;
    device?: string;
    usesLeft: number;
    expiresAt: string;
}

export interface EventTypeState {
    eventType: string;
    published: number;
    subscriptions: number;
    streams: number;
    durable: boolean;
}

export interface StreamState {
    id: string;
    form: "payload" | "event" | "cloudEvent" | "sub" | "dealer";
    eventTypes: number;
    eventType: string | null;
    consumer: string | null;
    address: string | null;
    state: "live" | "catchingUp" | "losing";
    waitingBytes: number;
    roomBytes: number;
    lost: number;
}

export interface RealTimeTopic {
    eventType: string;
    periodUs: number;
    deadlineUs: number | null;
    lossTolerance: number | null;
    retention: number;
    level: number;
    publishers: number;
    /** Systems that may publish; none: every system. */
    publisher: string[];
    publisherSlots: { held: number; systems: { system: string; since: string }[] };
    requiredForMaxUs: number;
    durable: boolean;
    /** Whether its events go on to the fleet's stream. */
    fleet: boolean;
    declaredBy: string;
    guarantee: Guarantee | null;
    accepted: number;
    excess: number;
    refused: number;
    publisherRejected: number;
    rejectedPublisher: { system: string; at: string; key: "publisher" | "publishers"; reason: string } | null;
    /** The required subscriber because of which events are rejected; `null`: it accepts events. */
    waitsFor: { subscriber: string; since: string; rejected: number; requiredForS: number } | null;
    dispatched: number;
    late: number;
    shed: number;
    lost: number;
    longestLossRun: number;
    /** Upper bound (`null`: any length) and count, ascending. */
    lossRuns: [number | null, number][];
    /** `null`: none went out. */
    latency: Ages | null;
}

/** How old events were at some place, in microseconds. */
export interface Ages {
    p50Us: number;
    p99Us: number;
    worstUs: number;
    /** Upper bound and count. */
    bucketsUs: [number, number][];
}

export interface IssuedCertificate {
    state: "valid" | "expired" | "revoked";
    serial: string;
    name: string;
    notBefore: string;
    notAfter: string;
    issuedAt: string;
    revokedAt: string | null;
    node?: string;
    warning?: string;
}

export interface NeighbourCloud {
    id: number;
    operator: string;
    name: string;
    own: boolean;
    secure: boolean;
    neighbor: boolean;
    hasKey: boolean;
    relays: string[];
    rules: number;
}

/** Events of a type that another cloud shares with this one, since the start. */
export interface HeardEvents {
    /** NAME.OPERATOR; `null`: a cloud that is not known any more. */
    cloud: string | null;
    eventType: string;
    accepted: boolean;
    taken: number;
    lost: number;
    repeated: number;
    refused: number;
}

export interface RelayState {
    id: number;
    place: string;
    type: string;
    secure: boolean;
    exclusive: boolean;
    hasKey: boolean;
    /** How it is with the Gatekeeper's connection to it. */
    state: string | null;
    clouds: string[];
}

/** A tunnel to or from another cloud. */
export interface GatewaySession {
    /** The first letters of it. */
    queueId: string;
    side: "consumer" | "provider";
    state: string;
    reason: string | null;
    trouble: string | null;
    consumer: string;
    consumerCloud: string;
    provider: string;
    providerCloud: string;
    service: string;
    relay: string;
    port: number | null;
    connections: number;
    bytesToPeer: number;
    bytesFromPeer: number;
    startedAt: string;
}

/** A file of the data directory's folders `reports` and `models`. */
export interface ShelfFile {
    name: string;
    bytes: number;
    modifiedAt: string | null;
}

/** Laws fitted to a stage; times in microseconds, shares from 0 to 1. */
export interface Fits {
    count: number;
    values: number;
    meanUs: number;
    p99Us: number | null;
    us: number[];
    measured: number[];
    laws: { family: string; parameters: Record<string, number>; distance: number; meanUs: number; p99Us: number; shares: number[] }[];
}

/** What `bodkin bench --json` writes, as far as pages show it. Members of an outcome that are numbers or lists of numbers are its figures. */
export interface ReportDocument {
    experiment?: unknown;
    conditions?: unknown;
    outcomes?: unknown;
    reports?: unknown;
}

export interface HandedOver {
    leader: string;
    epoch: number;
    drainedMs: number;
    gapMs: number;
}

/** An operator of a graph; counts and times are since the graph was deployed. */
export interface GraphNode {
    name: string;
    level: number;
    inputs: string[];
    outputs: string[];
    rounds: number;
    failed: number;
    shed: number;
    marked: number;
    /** Restarts from the start values, because the state was no longer finite. */
    restarts: number;
    /** Of a round at the most, as the graph says. */
    costUs: number;
    /** Of all rounds. */
    busyUs: number;
    longestUs: number;
}

/** A supplier's topic that comes from another edge; counts are since the graph was deployed. */
export interface GraphLink {
    edge: string;
    topic: string;
    /** Why nothing comes from there; `null`: it is subscribed to. */
    down: string | null;
    /** Events in a row that may be missing; `null`: nothing is kept for this edge. */
    lossTolerance: number | null;
    received: number;
    lost: number;
    /** Rows of missing events that were longer than is tolerated. */
    exceeded: number;
    /** Events that cannot be taken. */
    refused: number;
}

export interface GraphState {
    name: string;
    declaredBy: string;
    operators: number;
    nodes: GraphNode[];
    suppliers: string[];
    outputs: string[];
    links: GraphLink[];
    suspended: string | null;
    taken: number;
    refused: number;
    /** Events that arrived faster than their supplier's declared period. */
    excess: number;
    /** Events and results that newer ones replaced before an operator used them. */
    replaced: number;
    rounds: number;
    failed: number;
    /** Restarts of operators whose state was no longer finite. */
    restarts: number;
    shed: number;
    published: number;
    marked: number;
    late: number;
    lost: number;
}

export interface Delivery {
    id: number;
    eventType: string;
    subscriber: { systemName: string; address: string; port: number } | null;
    notifyUri: string;
    state: "live" | "retrying" | "open" | "behind" | "paused";
    delivered: number;
    attempts: number;
    failures: number;
    lost: number;
    deadLetters: number;
    behind: number | null;
    lastSuccessAt: string | null;
    lastError: string | null;
}

export interface DeadLetter {
    id: number;
    subscription: number;
    eventId: string | null;
    eventType: string | null;
    publishedAt: string | null;
    attempts: number;
    reason: string;
    diedAt: string;
    /** `null`: the event log does not keep it any more. */
    event: DeadEvent | null;
    /** Of a payload that is withheld, for the cloud is secure. */
    payloadWithheldBytes: number | null;
}

/** The event of a dead letter: without its payload in secure mode. */
export type DeadEvent = Omit<Event, "payload"> & { payload: string | null };

export interface IntraCloudRule {
    id: number;
    consumerSystem: System;
    providerSystem: System;
    serviceDefinition: Named;
    interfaces: Interface[];
    createdAt: string;
}

export interface InterCloudRule {
    id: number;
    cloud: { operator: string; name: string };
    provider: System;
    serviceDefinition: Named;
}

export interface StoreEntry {
    id: number;
    serviceDefinition: Named;
    consumerSystem: System;
    providerSystem: { systemName: string; address: string; port: number };
    serviceInterface: Interface;
    priority: number;
    createdAt: string | null;
}

export interface SystemDescriber {
    systemName?: string | null;
    metadata?: Record<string, string> | null;
}

export interface FlexibleRule {
    id: number;
    consumerSystem: SystemDescriber;
    providerSystem: SystemDescriber;
    serviceDefinition: string;
    serviceInterface: string | null;
    priority: number;
}

export interface Step {
    criterion: string;
    row?: number;
    asked: string;
    found: string;
    verdict: "passed" | "refused";
}

export interface Explanation {
    outcome: "granted" | "denied" | "nothing";
    why: string;
    steps: Step[];
    services: { service: RegisteredService; verdict: "passed" | "refused"; interfaces: Interface[]; steps: Step[] }[];
    serviceCount: number;
}

export interface AccessExplanation {
    caller: string;
    method: string;
    path: string;
    allowed: boolean;
    enforced: boolean;
    steps: Step[];
}

export interface ExplainedOrchestration {
    response: {
        provider: System;
        service: Named;
        serviceUri: string;
        secure: string;
        interfaces: Interface[];
        warnings: string[];
    }[];
    explanation?: Explanation;
}

export interface AuditEntry {
    node?: string;
    number: number;
    at: string;
    kind: string;
    caller: string;
    from?: string;
    what: string;
    status?: number;
    detail?: unknown;
}

export interface AuditLog {
    data: AuditEntry[];
    head: { number: number; hash: string };
    cut?: boolean;
}

/** A node's audit log, as far as it was copied into the database that nodes share. */
export interface AuditChain {
    node: string;
    whole: boolean;
    first: number;
    last: number;
    entries: number;
    /** Entries that were never copied. */
    skipped: number;
    /** Entries that are not copied yet. */
    behind: number;
    lastAt: string;
    wrong: string | null;
}

/** An event as a stream of events tells it. */
export interface Event {
    eventType: string;
    metaData: Record<string, string> | null;
    payload: string;
    timeStamp: string;
}
