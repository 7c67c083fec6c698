/** What a report of `bodkin bench --json` says, and how two of them differ. */

import type { ReportDocument } from "./forms";

/** A figure of one outcome over its runs. */
export interface Figure {
    outcome: string;
    figure: string;
    median: number;
    min: number;
    max: number;
    runs: number;
}

/** A figure of one report beside that of another. */
export interface Compared extends Figure {
    other: Figure | null;
    /** The other's median by this one's; `null` where there is none, or this one is 0. */
    ratio: number | null;
    /** Whether no run of one is within the runs of the other. */
    isApart: boolean;
}

type Fields = Record<string, unknown>;
const fields = (value: unknown): Fields => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {});
const items = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);
const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

/** The reports of a document: of a series many, else itself. */
export const reportsOf = (document: ReportDocument): ReportDocument[] => {
    const many = items(document.reports).map((report) => fields(report) as ReportDocument);
    return many.length > 0 ? many : [document];
};

export const titleOf = (document: ReportDocument): string => (typeof document.experiment === "string" ? document.experiment : "a document without a title");

/** Every figure, in the order of the document. */
export const figuresOf = (document: ReportDocument): Figure[] =>
    reportsOf(document).flatMap((report) => {
        const title = reportsOf(document).length > 1 ? `${titleOf(report)}: ` : "";
        return items(report.outcomes).flatMap((outcome) => {
            const { label, repeats } = fields(outcome);
            return Object.entries(fields(repeats)).flatMap(([figure, value]) => {
                const { values, median, min, max } = fields(value);
                if (!isNumber(median) || !isNumber(min) || !isNumber(max)) return [];
                return [{ outcome: title + String(label ?? ""), figure, median, min, max, runs: items(values).length }];
            });
        });
    });

/** Every figure of `document`, with that of the same outcome and name in `other`. */
export const compare = (document: ReportDocument, other: ReportDocument | null): Compared[] => {
    const key = ({ outcome, figure }: Figure): string => JSON.stringify([outcome, figure]);
    const others = new Map((other ? figuresOf(other) : []).map((figure) => [key(figure), figure]));
    return figuresOf(document).map((figure) => {
        const found = others.get(key(figure)) ?? null;
        return {
            ...figure,
            other: found,
            ratio: found && figure.median !== 0 ? found.median / figure.median : null,
            isApart: found !== null && (found.min > figure.max || found.max < figure.min),
        };
    });
};

/** What no two runs have in common, and says nothing about what was measured. */
const OF_A_RUN = ["command", "seed", "load before", "load after"];

/** Conditions that are not the same in both: name, of this one, of the other. */
export const differing = (document: ReportDocument, other: ReportDocument): [string, string, string][] => {
    const [here, there] = [document, other].map((report) => new Map(conditionsOf(report)));
    const names = [...new Set([...(here?.keys() ?? []), ...(there?.keys() ?? [])])].filter((name) => !OF_A_RUN.includes(name));
    return names.flatMap((name) => {
        const [one, two] = [here?.get(name) ?? "not told", there?.get(name) ?? "not told"];
        return one === two ? [] : [[name, one, two]];
    });
};

/** Under which conditions, a line each. */
export const conditionsOf = (document: ReportDocument): [string, string][] =>
    Object.entries(fields(reportsOf(document)[0]?.conditions)).flatMap(([name, value]) => {
        if (value === null || value === "") return [];
        return [[name.replaceAll("_", " "), typeof value === "object" ? JSON.stringify(value) : String(value)]];
    });
