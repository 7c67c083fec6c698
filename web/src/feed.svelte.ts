/** What is known of something that is asked again and again. */

import { untrack } from "svelte";
import { Refused } from "./answer";
import { waitMs } from "./backoff";
import { live } from "./live";

/** A value with the instant at which it came (milliseconds since 1970 of the browser's clock). */
export interface Reading<T> {
    value: T;
    at: number;
}

export type Feed<T> =
    | { kind: "waiting" }
    | ({ kind: "live" } & Reading<T>)
    /** `status`: of the answer, which was no; `null`: there was none. */
    | { kind: "lost"; since: number; why: string; status: number | null; last: Reading<T> | null };

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
    status: error instanceof Refused ? error.status : null,
    last: newest(before),
});

/** Whether it is the caller who is refused, and not the server that cannot. */
const isCallers = (error: unknown): boolean => error instanceof Refused && error.status < 500;

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
    /** When it is asked again, in milliseconds since 1970. */
    nextAt = $state(0);
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
        let refusals = 0;
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
                refusals = 0;
            } catch (error) {
                if (!stop.signal.aborted) this.feed = lost(this.feed, error);
                refusals = isCallers(error) ? refusals + 1 : 0;
            }
            asking = false;
            if (stop.signal.aborted) return;
            this.isTold = live.tells(this.#paths);
            if (dueAgain || !this.isTold) {
                const inMs = dueAgain ? 0 : waitMs(this.periodMs, refusals);
                this.nextAt = Date.now() + inMs;
                timer = window.setTimeout(ask, inMs);
            }
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
