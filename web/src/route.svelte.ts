/** The address: which page, and what is chosen on it. `#/events?type=HOT`. */

const parts = (hash: string): { page: string; chosen: URLSearchParams } => {
    const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
    return { page: path === "" ? "overview" : path, chosen: new URLSearchParams(query) };
};

class Route {
    #address = $state.raw(parts(location.hash));

    constructor() {
        window.addEventListener("hashchange", () => (this.#address = parts(location.hash)));
    }

    get page(): string {
        return this.#address.page;
    }

    /** What is chosen under a name; empty if nothing is. */
    get(name: string): string {
        return this.#address.chosen.get(name) ?? "";
    }

    /** Chooses, without a step back in the history. Empty is nothing. */
    set(name: string, value: string): void {
        const chosen = new URLSearchParams(this.#address.chosen);
        if (value === "") chosen.delete(name);
        else chosen.set(name, value);
        this.#address = { page: this.page, chosen };
        history.replaceState(null, "", address(this.page, Object.fromEntries(chosen)));
    }
}

/** The address of a page with what is chosen on it. */
export const address = (page: string, chosen: Record<string, string> = {}): string => {
    const query = new URLSearchParams(chosen).toString();
    return `#/${page}${query === "" ? "" : `?${query}`}`;
};

export const route = new Route();
