/** How long the stages of an answer's making took between two readings of their histograms. */

import type { Histogram, Stages } from "./forms";

export interface StageRow {
    system: string;
    stage: string;
    count: number;
    p50Us: number;
    p99Us: number;
    worstUs: number;
}

type Buckets = readonly (readonly [number, number])[];

/** What `now` has more than `before`; bounds are the same in both. */
const between = (before: Histogram | undefined, now: Histogram): Buckets => {
    const had = new Map(before?.buckets ?? []);
    return now.buckets.map(([bound, count]) => [bound, count - (had.get(bound) ?? 0)] as const).filter(([, count]) => count > 0);
};

/** The bound (ns) below which a part of all lies; buckets are in the order of their bounds. */
const quantile = (buckets: Buckets, part: number): number => {
    const all = buckets.reduce((sum, [, count]) => sum + count, 0);
    let below = 0;
    for (const [bound, count] of buckets) {
        below += count;
        if (below >= part * all) return bound;
    }
    return 0;
};

/** Gives rows of what happened since its first reading. A server that has started again is a first reading. */
export const since = (): ((now: Stages) => StageRow[]) => {
    let first: Stages | null = null;
    const total = (stages: Stages): number => Object.values(stages.systems).flatMap(Object.values<Histogram>).reduce((sum, { count }) => sum + count, 0);
    return (now) => {
        if (first === null || total(now) < total(first)) first = now;
        const { systems } = first;
        return Object.entries(now.systems).flatMap(([system, stages]) =>
            Object.entries(stages).flatMap(([stage, histogram]) => {
                const buckets = between(systems[system]?.[stage], histogram);
                const count = buckets.reduce((sum, [, count]) => sum + count, 0);
                if (count === 0) return [];
                const us = (part: number): number => quantile(buckets, part) / 1000;
                return [{ system, stage, count, p50Us: us(0.5), p99Us: us(0.99), worstUs: us(1) }];
            }),
        );
    };
};
