/** What tables show, and in which order. */

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

const isNumber = (value: Value): value is number => typeof value === "number";

/** Numbers before texts before nothing; texts as people order them. */
const compare = (a: Value, b: Value): number => {
    if (isNumber(a) && isNumber(b)) return a - b;
    if (isNumber(a) !== isNumber(b) && a != null && b != null) return isNumber(a) ? -1 : 1;
    if (a == null || b == null) return Number(a == null) - Number(b == null);
    return String(a).localeCompare(String(b), "en", { numeric: true });
};

/** An order as the address has it: a column's key, `-` in front of it for the greatest first. */
export const ordered = <Row>(rows: readonly Row[], columns: readonly Column<Row>[], order: string): readonly Row[] => {
    const isDown = order.startsWith("-");
    const column = columns.find((column) => column.key === (isDown ? order.slice(1) : order));
    if (!column) return rows;
    const sign = isDown ? -1 : 1;
    return rows.toSorted((a, b) => sign * compare(column.of(a), column.of(b)));
};

/** What a row reads as in a column. */
export const reads = <Row>(row: Row, column: Column<Row>): string => column.text?.(row) ?? String(column.of(row) ?? "");

/** Rows in which every word is found, in any column and case. */
export const found = <Row>(rows: readonly Row[], columns: readonly Column<Row>[], wanted: string): readonly Row[] => {
    const words = wanted.toLowerCase().split(/\s+/).filter((word) => word !== "");
    if (words.length === 0) return rows;
    return rows.filter((row) => {
        const text = columns.map((column) => `${column.of(row) ?? ""} ${column.text?.(row) ?? ""}`).join(" ").toLowerCase();
        return words.every((word) => text.includes(word));
    });
};
