/** Texts of others are shown with their invisible characters escaped, so that no name can look like another one. */

/** Controls, bidirectional marks, embeddings, overrides and isolates, line and paragraph separators, and characters without width. */
const HIDDEN = "\\u0000-\\u001F\\u007F-\\u009F\\u00AD\\u061C\\u180E\\u200B\\u200E\\u200F\\u2028-\\u202E\\u2060-\\u2064\\u2066-\\u206F\\uFEFF\\uFFF9-\\uFFFB";
const hidden = new RegExp(`[${HIDDEN}]`, "gu");
/** The same without the white space that separates words in the page's own texts. */
const drawnHidden = new RegExp(`(?![\\t\\n\\r])[${HIDDEN}]`, "gu");

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/** A name or another text of one line. */
export const visible = (text: string): string => text.replace(hidden, escaped);

/** A text as the page draws it, which may have line ends. */
export const drawn = (text: string): string => text.replace(drawnHidden, escaped);

/** Attributes that are shown or read aloud. */
const SHOWN = ["title", "aria-label", "alt", "placeholder"];

const redraw = (node: Node): void => {
    if (node instanceof CharacterData) {
        const text = drawn(node.data);
        if (text !== node.data) node.data = text;
    } else if (node instanceof Element) {
        for (const name of SHOWN) {
            const value = node.getAttribute(name);
            if (value !== null && drawn(value) !== value) node.setAttribute(name, drawn(value));
        }
        node.childNodes.forEach(redraw);
    }
};

/**
 * Escapes hidden characters in whatever is drawn below `root` from now on, before the browser paints it.
 *
 * Names are drawn in hundreds of places. The one place that every text passes is the document, so that none is forgotten. What is typed into a field is not changed.
 */
export const watch = (root: Element): void => {
    redraw(root);
    const observer = new MutationObserver((mutations) => {
        for (const mutation of mutations) {
            if (mutation.type === "childList") mutation.addedNodes.forEach(redraw);
            else redraw(mutation.target);
        }
    });
    observer.observe(root, { attributeFilter: SHOWN, characterData: true, childList: true, subtree: true });
};
