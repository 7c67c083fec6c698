/** What tables show, and in which order. */

import { count } from "./format";

export type Value = string | number | boolean | null | undefined;

export interface Column<Row> {
    /** Names it in the address. */
    key: string;
    label: string;
    /** Of its numbers; stands in the head. */
    unit?: string;
    /** By what rows are ordered and found. */
    of: (row: Row) => Value;
    /** What is read, where that is not the value itself. */
    text?: (row: Row) => string;
    /** Drawn by the table's `cell`. */
    drawn?: boolean;
}

/** Rows that a table draws at a time. */
export const ROWS_MAX = 100;

/** Made once: to make it takes longer than many comparisons. */
const alphabet = new Intl.Collator("en", { numeric: true });

const isNumber = (value: Value): value is number => typeof value === "number";

/** Numbers before texts before nothing; texts as people order them. */
const compare = (a: Value, b: Value): number => {
    if (isNumber(a) && isNumber(b)) return a - b;
    if (isNumber(a) !== isNumber(b) && a != null && b != null) return isNumber(a) ? -1 : 1;
    if (a == null || b == null) return Number(a == null) - Number(b == null);
    return alphabet.compare(String(a), String(b));
};

/** An order as the address has it: a column's key, `-` in front of it for the greatest first. */
export const ordered = <Row>(rows: readonly Row[], columns: readonly Column<Row>[], order: string): readonly Row[] => {
    const isDown = order.startsWith("-");
    const column = columns.find((column) => column.key === (isDown ? order.slice(1) : order));
    if (!column) return rows;
    const sign = isDown ? -1 : 1;
    return rows.toSorted((a, b) => sign * compare(column.of(a), column.of(b)));
};

/** What a row reads as in a column. Numbers that count something have their thousands apart; those of other columns are names. */
export const reads = <Row>(row: Row, column: Column<Row>): string => {
    const value = column.of(row);
    return column.text?.(row) ?? (column.unit !== undefined && Number.isInteger(value) ? count(value as number) : String(value ?? ""));
};

/** Columns that have numbers, by their keys; one that has a unit and no value yet will have them. */
export const numbers = <Row>(rows: readonly Row[], columns: readonly Column<Row>[]): ReadonlySet<string> => {
    const hasNumbers = (column: Column<Row>): boolean => {
        const values = rows.map(column.of);
        return values.some(isNumber) || (column.unit !== undefined && values.every((value) => value == null));
    };
    return new Set(columns.filter(hasNumbers).map((column) => column.key));
};

const wordsOf = (wanted: string): readonly string[] => wanted.toLowerCase().split(/\s+/).filter((word) => word !== "");

/** Whether every word that is wanted stands in a text, in any case. */
export const hasWords = (text: string, wanted: string): boolean => {
    const lower = text.toLowerCase();
    return wordsOf(wanted).every((word) => lower.includes(word));
};

/** Finds rows in which every word stands, in any column and case. What they read as is gathered at the first search, and once; who goes on typing has those looked through that were found before. */
export class Search<Row> {
    readonly #rows: readonly Row[];
    readonly #columns: readonly Column<Row>[];
    #texts: ReadonlyMap<Row, string> | null = null;
    #last: { words: readonly string[]; rows: readonly Row[] } = { words: [], rows: [] };

    constructor(rows: readonly Row[], columns: readonly Column<Row>[]) {
        this.#rows = rows;
        this.#columns = columns;
    }

    /** Those rows, in the order they were given. */
    find(wanted: string): readonly Row[] {
        const words = wordsOf(wanted);
        if (words.length === 0) return this.#rows;
        const texts = (this.#texts ??= new Map(this.#rows.map((row) => [row, this.#reads(row)])));
        const { words: before, rows } = this.#last;
        // Where every word of the last search is part of one of these, nothing is found that was not found then.
        const isNarrower = before.length > 0 && before.every((part) => words.some((word) => word.includes(part)));
        const found = (isNarrower ? rows : this.#rows).filter((row) => words.every((word) => texts.get(row)?.includes(word)));
        this.#last = { words, rows: found };
        return found;
    }

    #reads(row: Row): string {
        return this.#columns.map((column) => `${column.of(row) ?? ""} ${column.text?.(row) ?? ""}`).join(" ").toLowerCase();
    }
}
