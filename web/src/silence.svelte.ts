/** For how long the server has said nothing, although it is asked or tells something each second: a server that hangs holds its connections open. */

import { clock } from "./clock.svelte";

/** Milliseconds without a word that are told. The overview comes every second. */
const TOLD_MS_MIN = 3000;

class Silence {
    #heardAt = $state(Date.now());

    constructor() {
        // While nobody looked nothing was asked.
        document.addEventListener("visibilitychange", () => this.heard());
    }

    /** Octets of an answer have come. */
    heard(): void {
        this.#heardAt = Date.now();
    }

    /** Milliseconds since the last word; 0 while that is not worth a word. */
    get ms(): number {
        const ms = clock.now - this.#heardAt;
        return ms < TOLD_MS_MIN ? 0 : ms;
    }
}

export const silence = new Silence();
