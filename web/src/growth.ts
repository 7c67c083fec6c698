/** How fast counts grow that are told again and again. */

/** Seconds that a rate is taken over: long enough to be steady, short enough to follow. */
const WINDOW_S = 10;
/** Seconds between two readings that say how fast a count grows: closer ones are the same answer, told twice. */
const APART_S = 1.5;
/** Seconds for which the newest counts are those of now; later than that nothing has changed since. */
const FRESH_S = 5;

type Counts = ReadonlyMap<string, number>;

interface Reading {
    atS: number;
    counts: Counts;
}

/** How much a count has grown, and in how many seconds. */
export interface Grown {
    by: number;
    inS: number;
}

/**
 * Takes answers as they are read, at instants in seconds; the same answer again says nothing new. Gives how much a count has grown in the last seconds, or null: there is nothing yet to
 * compare with. A count that began anew counts from there.
 */
export const growth = <Answer>(counted: (answer: Answer) => Counts) => {
    let readings: readonly Reading[] = [];
    let last: Answer | null = null;
    return (atS: number, answer: Answer): ((key: string) => Grown | null) => {
        if (answer !== last) readings = [...readings, { atS, counts: counted(answer) }];
        last = answer;
        const newest = readings[readings.length - 1] ?? { atS, counts: new Map() };
        const endS = atS - newest.atS > FRESH_S ? atS : newest.atS;
        readings = readings.filter((reading) => reading === newest || reading.atS >= endS - WINDOW_S);
        const before = readings.slice(0, -1);
        return (key) => {
            const now = newest.counts.get(key);
            if (now === undefined) return null;
            const first = before.find((reading) => endS - reading.atS >= APART_S && (reading.counts.get(key) ?? Infinity) <= now);
            if (first) return { by: now - (first.counts.get(key) ?? 0), inS: endS - first.atS };
            return endS > newest.atS ? { by: 0, inS: endS - newest.atS } : null;
        };
    };
};

/** In 1/s. */
export const perSecond = (grown: Grown | null): number | null => (grown === null ? null : grown.by / grown.inS);
