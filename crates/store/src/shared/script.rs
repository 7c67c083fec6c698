//! What a turn writes into the shared database, as one text: statements with their values in them. Each was carried out on the node's mirror before, and the
//! server compares what it does there with what it did here, so that a mirror that differs is found before the commit.

use std::{borrow::Cow, fmt::Write};

use crate::database::Value;

/// SQLSTATE of a statement that did not do what it did on the mirror.
pub(crate) const DIVERGED: &str = "BK001";

/// Statements that are not sent yet, in order.
#[derive(Debug, Default)]
pub(super) struct Script(Vec<Step>);

#[derive(Debug)]
enum Step {
    /// A statement that changes this number of rows.
    Checked { sql: String, rows: usize },
    /// A statement that has no place on the mirror, or is about the transaction.
    Plain(Cow<'static, str>),
}

impl Script {
    /// Number of statements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets the statements from a place on.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Adds a statement that has changed this number of rows on the mirror.
    pub fn write(&mut self, sql: &str, values: &[Value<'_>], rows: usize) {
        self.0.push(Step::Checked { sql: with_values(without_returning(sql), values), rows });
    }

    /// Adds a statement that the mirror cannot carry out.
    pub fn unchecked(&mut self, sql: &str, values: &[Value<'_>]) {
        self.0.push(Step::Plain(with_values(sql, values).into()));
    }

    /// Adds a statement about the transaction.
    pub fn plain(&mut self, sql: &'static str) {
        self.0.push(Step::Plain(sql.into()));
    }

    /// Adds a statement about the transaction in front of those from a place on.
    pub fn plain_at(&mut self, place: usize, sql: &'static str) {
        self.0.insert(place, Step::Plain(sql.into()));
    }

    /// Takes all statements as one text, each ended by a semicolon.
    pub fn take(&mut self) -> String {
        let mut text = String::new();
        let steps = std::mem::take(&mut self.0);
        for part in steps.chunk_by(|one, other| matches!((one, other), (Step::Checked { .. }, Step::Checked { .. }))) {
            match part {
                [Step::Plain(sql)] => _ = writeln!(text, "{sql};"),
                checked => text.push_str(&block(checked)),
            }
        }
        text
    }
}

/// Statements that are compared with what they did on the mirror, as one of the server's.
fn block(steps: &[Step]) -> String {
    let mut body = String::from(" DECLARE bodkin_rows BIGINT; BEGIN\n");
    for step in steps {
        let Step::Checked { sql, rows } = step else { continue };
        _ = write!(
            body,
            "{sql};\nGET DIAGNOSTICS bodkin_rows = ROW_COUNT; IF bodkin_rows <> {rows} THEN \
             RAISE EXCEPTION 'a statement changes % rows, and {rows} at the node', bodkin_rows USING ERRCODE = '{DIVERGED}'; END IF;\n"
        );
    }
    body.push_str("END ");
    quoted_block(&body)
}

/// Returns a statement that fails unless the counters of ids stand as they do on the mirror.
pub(super) fn counters_check(counters: &[(String, i64)]) -> String {
    let differ = counters.iter().map(|(name, last)| format!("(name = '{name}' AND last <> {last})")).collect::<Vec<_>>().join(" OR ");
    quoted_block(&format!(
        " BEGIN IF EXISTS (SELECT FROM id_counter WHERE {differ}) THEN \
         RAISE EXCEPTION 'ids differ from those at the node' USING ERRCODE = '{DIVERGED}'; END IF; END "
    ))
}

/// A block of the server's language, in quotes that it does not have itself.
fn quoted_block(body: &str) -> String {
    let mut tag = String::from("$bodkin$");
    for number in 0_u32.. {
        if !body.contains(&tag) {
            break;
        }
        tag = format!("$bodkin{number}$");
    }
    format!("DO {tag}{body}{tag};\n")
}

/// A statement whose rows nobody reads. What it returns stands at its end.
fn without_returning(sql: &str) -> &str {
    sql.rsplit_once("RETURNING").map_or(sql, |(statement, _)| statement).trim_end()
}

/// A statement with its values in place of `?1` and further ones. Ours have no question mark in a text.
fn with_values(sql: &str, values: &[Value<'_>]) -> String {
    let mut parts = sql.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let value = part[..digits].parse::<usize>().ok().and_then(|number| values.get(number.checked_sub(1)?));
        literal(value.unwrap_or(&Value::Null), &mut text);
        text.push_str(&part[digits..]);
    }
    text
}

/// A value as PostgreSQL writes it with `standard_conforming_strings`.
fn literal(value: &Value<'_>, text: &mut String) {
    _ = match value {
        Value::Null => write!(text, "NULL"),
        Value::Bool(true) => write!(text, "TRUE"),
        Value::Bool(false) => write!(text, "FALSE"),
        Value::Integer(number) if *number < 0 => write!(text, "({number})"),
        Value::Integer(number) => write!(text, "{number}"),
        Value::Text(value) => write!(text, "'{}'", value.replace('\'', "''")),
        Value::Bytes(bytes) => {
            text.push_str("'\\x");
            bytes.iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
            write!(text, "'")
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::params;

    #[test]
    fn values_are_written_as_postgresql_reads_them() {
        let values = params!["it's", -5_i64, true, None::<&str>, [0xab_u8, 0x01]];
        let text = with_values("UPDATE t SET a = ?1, b = ?2, c = ?3, d = ?4, e = ?5 WHERE a = ?1", &values);
        assert_eq!(text, "UPDATE t SET a = 'it''s', b = (-5), c = TRUE, d = NULL, e = '\\xab01' WHERE a = 'it''s'");
        let eleven: Vec<Value<'_>> = (1..12_i64).map(Value::from).collect();
        assert_eq!(with_values("(?1, ?11)", &eleven), "(1, 11)");
    }

    #[test]
    fn script_compares_rows_and_keeps_the_order() {
        let mut script = Script::default();
        script.write("INSERT INTO t (a) VALUES (?1)\n ON CONFLICT DO NOTHING RETURNING id", &params!["x"], 1);
        script.write("DELETE FROM t", &[], 3);
        script.plain("RELEASE operation");
        script.plain_at(1, "SAVEPOINT operation");
        let text = script.take();
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is missing in {text}"));
        assert!(at("ON CONFLICT DO NOTHING;") < at("bodkin_rows <> 1") && at("bodkin_rows <> 1") < at("SAVEPOINT operation;"));
        assert!(at("SAVEPOINT operation;") < at("DELETE FROM t;") && at("bodkin_rows <> 3") < at("RELEASE operation;"));
        assert!(!text.contains("RETURNING") && script.is_empty());
    }

    #[test]
    fn quotes_of_a_block_are_not_in_a_text() {
        let mut script = Script::default();
        script.write("INSERT INTO t (a) VALUES (?1)", &params!["$bodkin$; DROP TABLE t; DO $bodkin0$"], 1);
        let text = script.take();
        assert!(text.starts_with("DO $bodkin1$") && text.ends_with("$bodkin1$;\n"), "{text}");
    }
}
