import { readdirSync, readFileSync } from "node:fs";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

/** Writes the licence of every package whose code is in the built files. */
const licences: Plugin = {
    name: "licences",
    generateBundle(_, bundle) {
        const modules = Object.values(bundle).flatMap((part) => (part.type === "chunk" ? Object.entries(part.modules) : []));
        const used = modules.filter(([, module]) => module.renderedLength > 0).map(([id]) => id);
        // The stylesheets that are written out have left no module behind.
        const packages = [...used, "/node_modules/uplot/"].flatMap((id) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? []);
        const texts = [...new Set(packages)].sort().map((name) => {
            const file = readdirSync(`node_modules/${name}`).find((file) => /^licen[cs]e/i.test(file));
            if (file === undefined) return this.error(`${name} has no licence file`);
            const text = readFileSync(`node_modules/${name}/${file}`, "utf8").replaceAll("\r\n", "\n").trim();
            return `${name}\n${"=".repeat(name.length)}\n\n${text}\n`;
        });
        this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join("\n\n") });
    },
};

/** Texts of others never become markup. */
const noMarkup: Plugin = {
    name: "no-markup",
    enforce: "pre",
    transform(code, id) {
        if (id.endsWith(".svelte") && code.includes("{@html")) this.error(`${id}: {@html} would make markup of a text`);
    },
};

// Names without hashes: the server's table of files stays the same, and entity tags tell what has changed.
export default defineConfig({
    base: "./",
    plugins: [noMarkup, svelte({ compilerOptions: { runes: true } }), licences],
    build: {
        outDir: "dist",
        emptyOutDir: true,
        target: "es2022",
        cssCodeSplit: false,
        modulePreload: false,
        assetsInlineLimit: 0,
        rollupOptions: {
            output: { entryFileNames: "dashboard.js", assetFileNames: "dashboard[extname]" },
        },
    },
    server: {
        // `BODKIN=http://localhost:8440 npm run dev` works on a running cloud. Where there is none, panels are unreachable.
        proxy: Object.fromEntries(
            ["/api", "/metrics", "/serviceregistry", "/authorization", "/orchestrator", "/eventhandler"].map((path) => [
                path,
                process.env["BODKIN"] ?? "http://localhost:8440",
            ]),
        ),
    },
});
