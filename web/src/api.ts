/** The only file that calls the network: what each operation answers, and how an error reads. */

import type {
    AccessExplanation,
    AuditLog,
    DeadLetter,
    Delivery,
    EventLog,
    EventTypeState,
    Explanation,
    ExplainedOrchestration,
    FlexibleRule,
    GraphState,
    Grant,
    IntraCloudRule,
    List,
    Overview,
    Platform,
    RealTimeTopic,
    RegisteredService,
    ServiceLife,
    Stages,
    StoreEntry,
    System,
} from "./forms";

/** Milliseconds that an answer may take. */
const ANSWER_MS_MAX = 10_000;

/** An answer that is no success. The message is the server's own words where it has said any. */
export class Refused extends Error {
    constructor(
        readonly status: number,
        message: string,
    ) {
        super(message);
    }
}

const member = (body: unknown, name: string): string | undefined => {
    const value = typeof body === "object" && body !== null ? (body as Record<string, unknown>)[name] : undefined;
    return typeof value === "string" && value !== "" ? value : undefined;
};

/** What an error's body says: a problem's detail (RFC 9457), a core system's message, or plain words. */
const reason = async (answer: Response): Promise<Refused> => {
    const text = await answer.text().catch(() => "");
    let told: string | undefined;
    try {
        const body: unknown = JSON.parse(text);
        told = member(body, "detail") ?? member(body, "errorMessage") ?? member(body, "title");
    } catch {
        told = text.trim() === "" ? undefined : text.trim();
    }
    return new Refused(answer.status, told ?? `${answer.status} ${answer.statusText}`.trim());
};

const send = async (method: string, path: string, body?: unknown, stopped?: AbortSignal): Promise<Response> => {
    const late = AbortSignal.timeout(ANSWER_MS_MAX);
    // The Event Handler is another origin, and asks for a certificate as well.
    const request: RequestInit = { method, credentials: "include", signal: stopped ? AbortSignal.any([stopped, late]) : late };
    if (body !== undefined) {
        request.body = JSON.stringify(body);
        request.headers = { "Content-Type": "application/json" };
    }
    const answer = await fetch(path, request);
    if (!answer.ok) throw await reason(answer);
    return answer;
};

const read = async <T>(path: string, stopped?: AbortSignal): Promise<T> => (await send("GET", path, undefined, stopped)).json() as Promise<T>;
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

/** `?a=1&b=2` of those that have a value. */
const query = (parameters: Record<string, string | number | undefined>): string => {
    const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
    return given.length === 0 ? "" : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
};

export const api = {
    overview: (stopped: AbortSignal) => read<Overview>("/api/v1/overview", stopped),
    platform: (stopped: AbortSignal) => read<Platform>("/api/v1/platform", stopped),
    stages: (stopped: AbortSignal) => read<Stages>("/api/v1/stages", stopped),
    eventLog: (stopped: AbortSignal) => orNone(404, read<EventLog>("/api/v1/event-log", stopped)),
    services: (stopped: AbortSignal) => readList<ServiceLife>("/api/v1/services", stopped),
    registered: (stopped: AbortSignal) => readList<RegisteredService>("/serviceregistry/mgmt", stopped),
    systems: (stopped: AbortSignal) => readList<System>("/serviceregistry/mgmt/systems", stopped),
    grants: (stopped: AbortSignal) => readList<Grant>("/api/v1/onboarding/grants", stopped),
    eventTypes: (stopped: AbortSignal) => readList<EventTypeState>("/api/v1/event-types", stopped),
    topics: (stopped: AbortSignal) => readList<RealTimeTopic>("/api/v1/topics", stopped),
    graphs: (stopped: AbortSignal) => readList<GraphState>("/api/v1/graphs", stopped),
    subscriptions: (stopped: AbortSignal) => readList<Delivery>("/api/v1/subscriptions", stopped),
    deadLetters: (stopped: AbortSignal) => read<List<DeadLetter>>("/api/v1/dead-letters", stopped),
    rules: (stopped: AbortSignal) => readList<IntraCloudRule>("/authorization/mgmt/intracloud", stopped),
    storeEntries: (stopped: AbortSignal) => readList<StoreEntry>("/orchestrator/mgmt/store", stopped),
    flexibleRules: (stopped: AbortSignal) => readList<FlexibleRule>("/orchestrator/mgmt/store/flexible", stopped),
    audit: (asked: { kind: string; caller: string; count: number }, stopped: AbortSignal) =>
        read<AuditLog>(`/api/v1/audit${query(asked)}`, stopped),

    pause: (id: number) => send("POST", `/api/v1/subscriptions/${id}/pause`),
    resume: (id: number) => send("POST", `/api/v1/subscriptions/${id}/resume`),
    replay: async (subscription: number) =>
        (await send("POST", `/api/v1/dead-letters/replay${query({ subscription })}`)).json() as Promise<{
            replayed: number;
            failed: number;
            remaining: number;
        }>,
    addRule: (rule: { consumerId: number; providerIds: number[]; serviceDefinitionIds: number[]; interfaceIds: number[] }) =>
        send("POST", "/authorization/mgmt/intracloud", rule),
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

/** An event stream's answer, whose body goes on for ever. */
export const openStream = async (url: string, lastEventId: string, stopped: AbortSignal): Promise<ReadableStream<Uint8Array>> => {
    const headers: Record<string, string> = lastEventId === "" ? {} : { "Last-Event-ID": lastEventId };
    const answer = await fetch(url, { headers, signal: stopped, credentials: "include", cache: "no-store" });
    if (!answer.ok || !answer.body) throw await reason(answer);
    return answer.body;
};
