/** The browser's clock as a value that pages follow, so that ages grow. */

const TICK_MS = 500;

class Clock {
    now = $state(Date.now());

    constructor() {
        setInterval(() => (this.now = Date.now()), TICK_MS);
    }
}

export const clock = new Clock();
