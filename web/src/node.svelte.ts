/** This node at a glance, asked while the dashboard is open, with what its numbers were in the last minutes. */

import { untrack } from "svelte";
import { api, together } from "./api";
import { clock } from "./clock.svelte";
import { Poll } from "./feed.svelte";
import type { HandedOver, Overview } from "./forms";

/** Milliseconds between two readings. */
const PERIOD_MS = 1000;
/** Seconds between two readings that a rate can be told from: closer ones have the same counts, asked for and told. */
const APART_S = 0.5;
/** Readings that are kept: five minutes. */
const READINGS_MAX = 300;

/** Numbers at an instant of the server's clock, in seconds since 1970. */
interface Reading {
    atS: number;
    numbers: Record<string, number>;
}

class Node {
    readonly poll = new Poll<Overview>(
        together([api.overview], async (stopped) => this.#keep(await api.overview(stopped))),
        PERIOD_MS,
    );
    /** What became of the lead that this page has handed to the other node, until this one leads again. */
    handedOver = $state.raw<HandedOver | null>(null);
    #readings = $state.raw<readonly Reading[]>([]);
    /** By how much the server's clock is ahead of the browser's. */
    #aheadMs = $state(0);

    /** What the server's clock shows, in milliseconds since 1970: ends that it tells are counted down by it. */
    get nowMs(): number {
        return clock.now + this.#aheadMs;
    }

    /** Whether this certificate may see nothing of the cloud. */
    get isBarred(): boolean {
        const { feed } = this.poll;
        return feed.kind === "lost" && (feed.status === 401 || feed.status === 403);
    }

    run(): () => void {
        return untrack(() => this.poll.run());
    }

    #keep(overview: Overview): Overview {
        if (this.handedOver && (overview.numbers["bodkin_pair_epoch"] ?? 0) > this.handedOver.epoch) this.handedOver = null;
        const atS = new Date(overview.at).getTime() / 1000;
        const last = this.#readings.at(-1);
        // A server that has started again counts from nothing.
        const isAnother = last !== undefined && (last.numbers["bodkin_events_published_total"] ?? 0) > (overview.numbers["bodkin_events_published_total"] ?? 0);
        const before = isAnother ? [] : this.#readings;
        if (last === undefined || isAnother || atS > last.atS + APART_S) {
            this.#aheadMs = atS * 1000 - Date.now();
            this.#readings = [...before, { atS, numbers: overview.numbers }].slice(-READINGS_MAX);
        }
        return overview;
    }

    /** Instants, and at each how fast these numbers grew since the one before, in 1/s. */
    rates(names: readonly string[]): [number[], ...number[][]] {
        const pairs = this.#readings.slice(1).map((now, index) => ({ now, before: this.#readings[index] ?? now }));
        const rate = (name: string) => pairs.map(({ now, before }) => ((now.numbers[name] ?? 0) - (before.numbers[name] ?? 0)) / (now.atS - before.atS));
        return [pairs.map(({ now }) => now.atS), ...names.map(rate)];
    }

    /** Instants, and at each these numbers, divided by `unit`. */
    values(names: readonly string[], unit: number): [number[], ...number[][]] {
        const value = (name: string) => this.#readings.map(({ numbers }) => (numbers[name] ?? 0) / unit);
        return [this.#readings.map(({ atS }) => atS), ...names.map(value)];
    }
}

export const node = new Node();
