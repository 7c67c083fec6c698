/** Histograms as they are drawn. */

type Buckets = readonly (readonly [number, number])[];

/** The same counts in buckets that begin with the powers of two and have so many of them to a doubling; upper bounds ascend. A bound only grows, so what is told as below it is. */
export const wider = (buckets: Buckets, perDoubling: number): Buckets => {
    const counts = new Map<number, number>();
    for (const [bound, count] of buckets) {
        const upper = bound <= 0 ? bound : Math.ceil(2 ** (Math.ceil(Math.log2(bound) * perDoubling) / perDoubling));
        counts.set(upper, (counts.get(upper) ?? 0) + count);
    }
    return [...counts];
};
