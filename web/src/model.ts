/** What a file of models is, by what is in it. */

/** A prediction beside a measurement. */
export interface Validated {
    load: string;
    figure: string;
    measuredUs: number;
    predictedUs: number;
    errorPercent: number;
    holds: boolean;
}

export type Content =
    | { kind: "net"; places: number; transitions: number; unit: string }
    | { kind: "calibration"; machine: string; cores: number; loads: string[]; meanOffPercent: number; steps: Step[]; leftOut: LeftOut[] }
    | { kind: "recording" }
    | { kind: "validation"; rows: Validated[] }
    | { kind: "other" };

/** What a step costs, as it was fitted. */
export interface Step {
    of: "an event" | "an orchestration";
    name: string;
    meanUs: number;
}

/** A load of a calibration as a net of its other loads predicts it: times, and how much more than measured that is. */
export interface LeftOut {
    of: string;
    /** Of a graph with the level of its results. */
    load: string;
    /** `null`: the others say nothing of it. */
    predicted: { meanUs: number; meanOffPercent: number; p99Us: number; p99OffPercent: number } | null;
    /** Why they do not. */
    why: string | null;
}

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const list = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);

const validated = (row: unknown): Validated[] => {
    if (!isFields(row) || typeof row["load"] !== "string") return [];
    const load = row["load"];
    return ["mean", "p99"].flatMap((figure) => {
        const compared = row[figure];
        if (!isFields(compared)) return [];
        const { measured_us: measuredUs, predicted_us: predictedUs, error_percent: errorPercent, is_within, is_in_spread } = compared;
        if (typeof measuredUs !== "number" || typeof predictedUs !== "number" || typeof errorPercent !== "number") return [];
        return [{ load, figure, measuredUs, predictedUs, errorPercent, holds: is_within === true || is_in_spread === true }];
    });
};

/** Steps that are fitted as a mean. What else a calibration holds, its nets show. */
const steps = (of: Step["of"], fitted: [unknown, unknown][], member: string): Step[] =>
    fitted.flatMap(([name, step]) => {
        const meanUs = isFields(step) ? step[member] : undefined;
        return typeof name === "string" && typeof meanUs === "number" ? [{ of, name: name.replaceAll("_", " "), meanUs }] : [];
    });

/** What is worked for an event: the same for every load of a calibration. */
const work = (events: unknown): Record<string, unknown> => {
    const [first] = list(events);
    const costs = isFields(first) ? first["costs"] : undefined;
    return isFields(costs) ? costs : {};
};

/** Kinds of loads as a calibration names them, and as they are told. */
const LEFT_OUT_OF: readonly (readonly [string, string])[] = [
    ["events", "events"],
    ["orchestration", "orchestrations"],
    ["intercloud", "orchestrations at another cloud"],
    ["graph", "the graph's results"],
];

/** What a net of the other loads makes of one: a row each, of a graph one of each level. */
const byOthers = (of: string, loaded: unknown): LeftOut[] => {
    if (!isFields(loaded) || typeof loaded["load"] !== "string" || !isFields(loaded["by_others"])) return [];
    const load = loaded["load"];
    const { predicted, nothing } = loaded["by_others"];
    if (typeof nothing === "string") return [{ of, load, predicted: null, why: nothing }];
    return list(predicted).flatMap((off): LeftOut[] => {
        if (!isFields(off)) return [];
        const { level, mean_us: meanUs, mean_off_percent: meanOffPercent, p99_us: p99Us, p99_off_percent: p99OffPercent } = off;
        if (typeof meanUs !== "number" || typeof meanOffPercent !== "number" || typeof p99Us !== "number" || typeof p99OffPercent !== "number") return [];
        return [{ of, load: typeof level === "number" ? `${load}, level ${level}` : load, predicted: { meanUs, meanOffPercent, p99Us, p99OffPercent }, why: null }];
    });
};

const leftOut = (kinds: unknown): LeftOut[] => (isFields(kinds) ? LEFT_OUT_OF.flatMap(([member, of]) => list(kinds[member]).flatMap((loaded) => byOthers(of, loaded))) : []);

export const contentOf = (document: unknown): Content => {
    // A printed list has its rows at the top or below `data`.
    const rows = list(isFields(document) ? document["data"] : document).flatMap(validated);
    if (rows.length > 0) return { kind: "validation", rows };
    if (!isFields(document)) return { kind: "other" };
    const { places, transitions, schema } = document;
    if (typeof schema === "string" && schema.startsWith("bodkin-calibration-")) {
        const { machine, cores, loads, mean_off_percent: meanOffPercent, events, orchestration, left_out } = document;
        const asked = isFields(orchestration) ? list(orchestration["steps"]).map((step): [unknown, unknown] => [isFields(step) ? step["name"] : null, step]) : [];
        return {
            kind: "calibration",
            machine: String(machine ?? ""),
            cores: Number(cores ?? 0),
            loads: list(loads).map(String),
            meanOffPercent: Number(meanOffPercent ?? 0),
            steps: [...steps("an event", Object.entries(work(events)), "mean_us"), ...steps("an orchestration", asked, "work_us")],
            leftOut: leftOut(left_out),
        };
    }
    if (typeof schema === "string" && schema.startsWith("bodkin-recording")) return { kind: "recording" };
    if (places !== undefined && transitions !== undefined) {
        const size = (parts: unknown): number => (Array.isArray(parts) ? parts.length : isFields(parts) ? Object.keys(parts).length : 0);
        const unit = document["time_unit"];
        return { kind: "net", places: size(places), transitions: size(transitions), unit: typeof unit === "string" ? unit : "" };
    }
    return { kind: "other" };
};
