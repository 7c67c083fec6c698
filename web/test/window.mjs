// Windows of a browser in which a test opens pages of the dashboard.

/** `base`: where the dashboard is, with a slash at its end; `patienceMs`: how long it is waited for whatever should be seen. */
export const windows = (browser, base, patienceMs) => {
    /** A page whose errors and breaches of the content policy are noted. */
    const open = async (options = {}) => {
        const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light", ...options });
        const page = await context.newPage();
        page.setDefaultTimeout(patienceMs);
        const said = [];
        page.on("pageerror", (error) => said.push(String(error)));
        page.on("console", (message) => message.type() === "error" && said.push(message.text()));
        const close = async () => {
            // A question that is answered by the test may be under way.
            await page.unrouteAll({ behavior: "ignoreErrors" });
            await context.close();
        };
        return { page, said, close };
    };
    const show = async (page, hash) => {
        await page.goto(`${base}#/${hash}`);
        await page.getByRole("heading", { level: 1 }).waitFor();
    };
    /** Until every panel has its value. */
    const settle = async (page) => {
        await page.waitForFunction(() => document.querySelector(".state.live") !== null && document.querySelector(".state.waiting") === null);
    };
    /** A page is told no stream, so that each of these paths is asked for, and answered as given. */
    const answerWith = async (page, answers) => {
        await page.route("**/api/v1/live**", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: '{"title":"Too many streams"}' }));
        for (const [path, body] of Object.entries(answers)) {
            await page.route(`**${path}`, async (route) => {
                const told = typeof body === "function" ? body(await (await route.fetch()).json()) : body;
                await route.fulfill({ contentType: "application/json", body: JSON.stringify(told) });
            });
        }
    };
    return { open, show, settle, answerWith };
};
