/** What is known of something that is asked again and again. */

import { untrack } from "svelte";
import { Refused } from "./answer";
import { live } from "./live";

/** A value with the instant at which it came (milliseconds since 1970 of the browser's clock). */
export interface Reading<T> {
    value: T;
    at: number;
}

export type Feed<T> =
    | { kind: "waiting" }
    | ({ kind: "live" } & Reading<T>)
    /** `isRefused`: there was an answer, and it was no. */
    | { kind: "lost"; since: number; why: string; isRefused: boolean; last: Reading<T> | null };

/** The newest value, if there has been any. */
export const newest = <T>(feed: Feed<T>): Reading<T> | null => {
    switch (feed.kind) {
        case "waiting":
            return null;
        case "live":
            return feed;
        case "lost":
            return feed.last;
    }
};

const lost = <T>(before: Feed<T>, error: unknown): Feed<T> => ({
    kind: "lost",
    since: before.kind === "lost" ? before.since : Date.now(),
    why: words(error),
    isRefused: error instanceof Refused,
    last: newest(before),
});

/** A question, with the paths that it asks where the live stream may tell their answers. */
type Question<T> = ((stopped: AbortSignal) => Promise<T>) & { readonly paths?: readonly string[] };

/**
 * Asks when the live stream tells that there is something new. Where it does not, asks every `periodMs`; never twice at a time, and not while nobody
 * looks.
 */
export class Poll<T> {
    feed = $state.raw<Feed<T>>({ kind: "waiting" });
    /** Whether changes are told. */
    isTold = $state(false);
    readonly #paths: readonly string[];
    #again: () => void = () => undefined;

    constructor(
        readonly read: Question<T>,
        readonly periodMs: number,
    ) {
        this.#paths = read.paths ?? [];
    }

    /** Asks at once, as after a change of one's own. */
    again(): void {
        live.forget(this.#paths);
        this.#again();
    }

    /** Begins; what it gives ends it. */
    run(): () => void {
        const stop = new AbortController();
        let timer = 0;
        let asking = false;
        let dueAgain = false;
        const ask = async (): Promise<void> => {
            clearTimeout(timer);
            if (asking) {
                dueAgain = true;
                return;
            }
            if (document.hidden) return;
            asking = true;
            try {
                const value = await this.read(stop.signal);
                this.feed = { kind: "live", value, at: Date.now() };
            } catch (error) {
                if (!stop.signal.aborted) this.feed = lost(this.feed, error);
            }
            asking = false;
            if (stop.signal.aborted) return;
            this.isTold = live.tells(this.#paths);
            if (dueAgain || !this.isTold) timer = window.setTimeout(ask, dueAgain ? 0 : this.periodMs);
            dueAgain = false;
        };
        this.#again = ask;
        document.addEventListener("visibilitychange", ask);
        const unwatch = live.watch(this.#paths, ask);
        void ask();
        return () => {
            unwatch();
            stop.abort();
            clearTimeout(timer);
            document.removeEventListener("visibilitychange", ask);
        };
    }
}

/** An error as a reader is told it. */
export const words = (error: unknown): string => {
    if (!(error instanceof Error)) return String(error);
    if (error.name === "TimeoutError") return "no answer within 10 s";
    // What fetch throws when there is no connection.
    if (error instanceof TypeError) return "the server does not answer";
    return error.message;
};

/** Asks while the component lives that this is called in. */
export const poll = <T>(read: Question<T>, periodMs: number): Poll<T> => {
    const made = new Poll(read, periodMs);
    $effect(() => untrack(() => made.run()));
    return made;
};
