/** The only file that calls the network: what each operation answers, and how an error reads. */

import { Refused, refusal, refused } from "./answer";
import type {
    AccessExplanation,
    AuditChain,
    AuditLog,
    DeadLetter,
    Delivery,
    EventLog,
    EventTypeState,
    Explanation,
    ExplainedOrchestration,
    Fits,
    FlexibleRule,
    GatewaySession,
    GraphState,
    Grant,
    HandedOver,
    HeardEvents,
    InterCloudRule,
    IntraCloudRule,
    IssuedCertificate,
    List,
    NeighbourCloud,
    NodeState,
    Overview,
    Platform,
    RealTimeTopic,
    RegisteredService,
    RelayState,
    ReportDocument,
    ServiceLife,
    ShelfFile,
    Stages,
    StoreEntry,
    StreamState,
    System,
} from "./forms";
import type { Fleet, NodeEvents } from "./fleet";
import { live } from "./live";
import type { NewRule } from "./rule";
import { silence } from "./silence.svelte";

/** Milliseconds that an answer may take. */
const ANSWER_MS_MAX = 10_000;

const send = async (method: string, path: string, body?: unknown, stopped?: AbortSignal): Promise<Response> => {
    const late = AbortSignal.timeout(ANSWER_MS_MAX);
    // The Event Handler is another origin, and asks for a certificate as well.
    const request: RequestInit = { method, credentials: "include", signal: stopped ? AbortSignal.any([stopped, late]) : late };
    if (body !== undefined) {
        request.body = JSON.stringify(body);
        request.headers = { "Content-Type": "application/json" };
    }
    const answer = await fetch(path, request);
    silence.heard();
    if (!answer.ok) throw await refusal(answer);
    return answer;
};

/** What is told of a path by the live stream, or else what it answers. */
const read = async <T>(path: string, stopped?: AbortSignal): Promise<T> => {
    const told = live.newest(path);
    if (told && told.status >= 400) throw refused(told.status, told.body);
    if (told) return told.body as T;
    const body: unknown = await (await send("GET", path, undefined, stopped)).json();
    live.keep(path, body);
    return body as T;
};
const readList = async <T>(path: string, stopped?: AbortSignal): Promise<T[]> => (await read<List<T>>(path, stopped)).data;

/** `null` where the answer has this status: there is no such thing in this cloud. */
const orNone = async <T>(status: number, answer: Promise<T>): Promise<T | null> => {
    try {
        return await answer;
    } catch (error) {
        if (error instanceof Refused && error.status === status) return null;
        throw error;
    }
};

/** A question to these paths, whose answers the live stream may tell. */
export interface Asked<T> {
    (stopped: AbortSignal): Promise<T>;
    readonly paths: readonly string[];
}
const whole = <T>(path: string): Asked<T> => Object.assign((stopped: AbortSignal) => read<T>(path, stopped), { paths: [path] });
const list = <T>(path: string): Asked<T[]> => Object.assign((stopped: AbortSignal) => readList<T>(path, stopped), { paths: [path] });

/** A question that is made of others. */
export const together = <T>(others: readonly Asked<unknown>[], read: (stopped: AbortSignal) => Promise<T>): Asked<T> =>
    Object.assign(read, { paths: others.flatMap(({ paths }) => paths) });

/** `?a=1&b=2` of those that have a value. */
const query = (parameters: Record<string, string | number | undefined>): string => {
    const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
    return given.length === 0 ? "" : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
};

export const api = {
    overview: whole<Overview>("/api/v1/overview"),
    nodes: list<NodeState>("/api/v1/nodes"),
    /** `null`: events between nodes go by no stream. */
    nodeEvents: together([whole<NodeEvents>("/api/v1/nodes/events")], (stopped) => orNone(404, read<NodeEvents>("/api/v1/nodes/events", stopped))),
    platform: whole<Platform>("/api/v1/platform"),
    stages: whole<Stages>("/api/v1/stages"),
    eventLog: together([whole<EventLog>("/api/v1/event-log")], (stopped) => orNone(404, read<EventLog>("/api/v1/event-log", stopped))),
    services: list<ServiceLife>("/api/v1/services"),
    registered: list<RegisteredService>("/serviceregistry/mgmt"),
    systems: list<System>("/serviceregistry/mgmt/systems"),
    grants: list<Grant>("/api/v1/onboarding/grants"),
    eventTypes: list<EventTypeState>("/api/v1/event-types"),
    streams: whole<List<StreamState>>("/api/v1/streams"),
    topics: list<RealTimeTopic>("/api/v1/topics"),
    graphs: list<GraphState>("/api/v1/graphs"),
    subscriptions: list<Delivery>("/api/v1/subscriptions"),
    deadLetters: whole<List<DeadLetter>>("/api/v1/dead-letters"),
    certificates: together([whole<List<IssuedCertificate>>("/api/v1/certificates")], (stopped) =>
        orNone(409, read<List<IssuedCertificate>>("/api/v1/certificates", stopped)),
    ),
    clouds: list<NeighbourCloud>("/api/v1/clouds"),
    relays: list<RelayState>("/api/v1/relays"),
    sessions: list<GatewaySession>("/api/v1/gateway-sessions"),
    /** Only of a cloud with a fleet: its overview has `bodkin_fleet_connected` or `bodkin_from_fleet_connected`. */
    fleet: whole<Fleet>("/api/v1/fleet"),
    /** `null`: this cloud has no Gatekeeper. */
    heardEvents: together([whole<List<HeardEvents>>("/api/v1/clouds/heard-events")], (stopped) =>
        orNone(409, readList<HeardEvents>("/api/v1/clouds/heard-events", stopped)),
    ),
    reports: list<ShelfFile>("/api/v1/reports"),
    report: (name: string, stopped: AbortSignal) => read<ReportDocument>(`/api/v1/reports/${encodeURIComponent(name)}`, stopped),
    models: list<ShelfFile>("/api/v1/models"),
    model: (name: string, stopped: AbortSignal) => read<unknown>(`/api/v1/models/${encodeURIComponent(name)}`, stopped),
    fits: (asked: { system: string; stage: string }, stopped: AbortSignal) =>
        orNone(409, read<{ fits: Fits }>(`/api/v1/stages/fits${query(asked)}`, stopped)),
    rules: list<IntraCloudRule>("/authorization/mgmt/intracloud"),
    cloudRules: list<InterCloudRule>("/authorization/mgmt/intercloud"),
    storeEntries: list<StoreEntry>("/orchestrator/mgmt/store"),
    flexibleRules: list<FlexibleRule>("/orchestrator/mgmt/store/flexible"),
    audit: (asked: { kind: string; caller: string; count: number; node: string }, stopped: AbortSignal) =>
        read<AuditLog>(`/api/v1/audit${query(asked)}`, stopped),
    /** Of nodes that share a database. To check them takes the server some time, so they are asked for and not told. */
    auditChains: (stopped: AbortSignal) => readList<AuditChain>("/api/v1/audit/chains", stopped),

    revoke: (serial: string) => send("POST", `/api/v1/certificates/${encodeURIComponent(serial)}/revoke`),
    handOver: async () => (await send("POST", "/api/v1/pair/hand-over")).json() as Promise<HandedOver>,
    acceptEvents: (cloud: number, eventType: string) => send("POST", `/api/v1/clouds/${cloud}/accepted-events`, { eventType }),
    refuseEvents: (cloud: number, eventType: string) => send("DELETE", `/api/v1/clouds/${cloud}/accepted-events${query({ event_type: eventType })}`),
    pause: (id: number) => send("POST", `/api/v1/subscriptions/${id}/pause`),
    resume: (id: number) => send("POST", `/api/v1/subscriptions/${id}/resume`),
    replay: async (subscription: number) =>
        (await send("POST", `/api/v1/dead-letters/replay${query({ subscription })}`)).json() as Promise<{
            replayed: number;
            failed: number;
            remaining: number;
            elsewhere: number;
        }>,
    addRule: (rule: NewRule) => send("POST", "/authorization/mgmt/intracloud", rule),
    removeRule: (id: number) => send("DELETE", `/authorization/mgmt/intracloud/${id}`),
    explainAuthorization: (asked: { consumer: string; service: string; provider?: string }) =>
        read<Explanation>(`/api/v1/authorization/explain${query(asked)}`),
    explainAccess: (asked: { caller: string; method: string; path: string }) =>
        read<AccessExplanation>(`/api/v1/access/explain${query(asked)}`),
    orchestrate: async (form: unknown) =>
        (await send("POST", "/api/v1/orchestration?explain=true", form)).json() as Promise<ExplainedOrchestration>,
    publish: (eventHandler: string, event: unknown) => send("POST", `${eventHandler}/eventhandler/publish`, event),
};

/** Where a listener of this host is: the same name that the page was called by, another port. */
export const origin = (port: number): string => `${location.protocol}//${location.hostname}:${port}`;
