//! A dump of a MySQL or MariaDB database, as `mysqldump` and `mariadb-dump` write it: the rows of its INSERT statements. Everything else is passed over.
//!
//! The text comes from outside. Nothing in it can make reading fail otherwise than by a [`DumpError`], which names the line; what is read is bounded by the text itself.

use std::{borrow::Cow, collections::BTreeMap, rc::Rc};

/// Rows of a dump; one with more is refused.
pub const ROWS_MAX: usize = 20_000_000;
/// Columns of a table; one with more is refused (MySQL's own limit).
pub const COLUMNS_MAX: usize = 4096;

/// Why a text is no dump that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct DumpError {
    /// The line, from 1.
    pub line: usize,
    /// What was expected, and what came.
    pub fault: String,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field<'d> {
    /// NULL.
    Null,
    /// A number or a bare word, as it stands there.
    Bare(&'d str),
    /// A text, without its quotes and escapes.
    Text(Cow<'d, str>),
}

/// A row: its table, and a value for each column.
#[derive(Clone, Debug)]
pub struct Row<'d> {
    /// The table's name.
    pub table: &'d str,
    /// The line at which the row begins.
    pub line: usize,
    columns: Rc<[&'d str]>,
    fields: Vec<Field<'d>>,
}

impl Row<'_> {
    /// The value of a column; `None` where the table has no such column or the value is NULL.
    pub fn text(&self, column: &str) -> Option<&str> {
        let at = self.columns.iter().position(|name| name.eq_ignore_ascii_case(column))?;
        match &self.fields[at] {
            Field::Null => None,
            Field::Bare(text) => Some(text),
            Field::Text(text) => Some(text),
        }
    }
}

/// Reads a whole dump and hands each row over, in the order of the text.
pub fn read<'d>(text: &'d str, mut take: impl FnMut(Row<'d>)) -> Result<(), DumpError> {
    let mut reader = Reader { text, at: 0, line: 1 };
    let mut tables: BTreeMap<&str, Rc<[&str]>> = BTreeMap::new();
    let mut rows = 0;
    while reader.skip_blank()? {
        let word = reader.word();
        if word.eq_ignore_ascii_case("CREATE") && reader.keyword("TABLE")? {
            reader.words(&["IF", "NOT", "EXISTS"])?;
            let table = reader.name("the name of a table")?;
            tables.insert(table, reader.columns_of_definition()?);
            reader.skip_statement()?;
        } else if word.eq_ignore_ascii_case("INSERT") || word.eq_ignore_ascii_case("REPLACE") {
            reader.words(&["IGNORE"])?;
            reader.words(&["INTO"])?;
            let table = reader.name("the name of a table")?;
            reader.insert(table, tables.get(table), &mut rows, &mut take)?;
        } else {
            reader.skip_statement()?;
        }
    }
    Ok(())
}

struct Reader<'d> {
    text: &'d str,
    at: usize,
    line: usize,
}

impl<'d> Reader<'d> {
    fn fault(&self, fault: impl Into<String>) -> DumpError {
        DumpError { line: self.line, fault: fault.into() }
    }

    /// Expected and found.
    fn expected(&self, what: &str) -> DumpError {
        let rest: String = self.rest().chars().take(20).collect();
        let came = if rest.is_empty() { "the end of the text".to_owned() } else { format!("{rest:?}") };
        self.fault(format!("{what} was expected, {came} came"))
    }

    fn rest(&self) -> &'d str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes on by so many bytes, which end between two characters.
    fn advance(&mut self, bytes: usize) -> &'d str {
        let passed = &self.text[self.at..self.at + bytes];
        self.line += passed.bytes().filter(|byte| *byte == b'\n').count();
        self.at += bytes;
        passed
    }

    /// Passes over everything in front of the next ASCII character that is no part.
    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &'d str {
        let length = self.rest().bytes().position(|byte| byte.is_ascii() && !is_part(byte)).unwrap_or(self.rest().len());
        self.advance(length)
    }

    /// Passes over white space and comments; false at the end.
    fn skip_blank(&mut self) -> Result<bool, DumpError> {
        loop {
            let blanks = self.rest().len() - self.rest().trim_ascii_start().len();
            self.advance(blanks);
            let rest = self.rest();
            if rest.is_empty() {
                return Ok(false);
            } else if rest.starts_with("-- ") || rest.starts_with("--\n") || rest.starts_with("--\r") || rest.starts_with('#') {
                self.take_while(|byte| byte != b'\n');
            } else if rest.starts_with("/*") {
                let Some(length) = rest.find("*/") else { return Err(self.fault("a comment has no end (*/)")) };
                self.advance(length + 2);
            } else {
                return Ok(true);
            }
        }
    }

    /// The next word, which may be empty.
    fn word(&mut self) -> &'d str {
        self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    /// Whether this keyword is next; then it is passed over.
    fn keyword(&mut self, keyword: &str) -> Result<bool, DumpError> {
        self.skip_blank()?;
        let (at, line) = (self.at, self.line);
        if self.word().eq_ignore_ascii_case(keyword) {
            return Ok(true);
        }
        (self.at, self.line) = (at, line);
        Ok(false)
    }

    /// Passes over those of these keywords that are there, in this order.
    fn words(&mut self, keywords: &[&str]) -> Result<(), DumpError> {
        for keyword in keywords {
            self.keyword(keyword)?;
        }
        Ok(())
    }

    /// A name, in backticks or bare; of `database.table` the last part.
    fn name(&mut self, what: &str) -> Result<&'d str, DumpError> {
        loop {
            self.skip_blank()?;
            let name = match self.peek() {
                Some(b'`') => self.quoted_name()?,
                _ => self.word(),
            };
            if name.is_empty() {
                return Err(self.expected(what));
            }
            if self.peek() != Some(b'.') {
                return Ok(name);
            }
            self.advance(1);
        }
    }

    fn quoted_name(&mut self) -> Result<&'d str, DumpError> {
        self.advance(1);
        let Some(length) = self.rest().find('`') else { return Err(self.fault("a name has no end (`)")) };
        let name = self.advance(length);
        self.advance(1);
        Ok(name)
    }

    fn symbol(&mut self, symbol: u8) -> Result<(), DumpError> {
        self.skip_blank()?;
        if self.peek() != Some(symbol) {
            return Err(self.expected(&format!("'{}'", char::from(symbol))));
        }
        self.advance(1);
        Ok(())
    }

    /// The columns of a CREATE TABLE: what begins with a name in backticks. Keys and constraints begin with a word, and names inside of brackets are not columns.
    fn columns_of_definition(&mut self) -> Result<Rc<[&'d str]>, DumpError> {
        self.symbol(b'(')?;
        let mut columns = Vec::new();
        let mut depth = 0_usize;
        let mut is_begin = true;
        loop {
            if !self.skip_blank()? {
                return Err(self.fault("a CREATE TABLE has no end"));
            }
            match self.peek() {
                Some(b'`') => {
                    let name = self.quoted_name()?;
                    if is_begin && depth == 0 {
                        columns.push(name);
                    }
                    is_begin = false;
                }
                Some(b'\'') | Some(b'"') => drop(self.quoted_text()?),
                Some(b'(') => {
                    depth += 1;
                    self.advance(1);
                }
                Some(b')') if depth == 0 => break,
                Some(b')') => {
                    depth -= 1;
                    self.advance(1);
                }
                Some(b',') => {
                    is_begin = depth == 0;
                    self.advance(1);
                }
                _ => {
                    self.symbols_of_word();
                    is_begin = false;
                }
            }
            if columns.len() > COLUMNS_MAX {
                return Err(self.fault(format!("a table has more than {COLUMNS_MAX} columns")));
            }
        }
        Ok(columns.into())
    }

    /// Passes over a word, or over one character that is part of none.
    fn symbols_of_word(&mut self) {
        if self.word().is_empty() {
            let length = self.rest().chars().next().map_or(0, char::len_utf8);
            self.advance(length);
        }
    }

    /// Passes over everything up to the end of a statement; what is quoted has no end in it.
    fn skip_statement(&mut self) -> Result<(), DumpError> {
        while self.skip_blank()? {
            match self.peek() {
                Some(b';') => {
                    self.advance(1);
                    return Ok(());
                }
                Some(b'`') => drop(self.quoted_name()?),
                Some(b'\'') | Some(b'"') => drop(self.quoted_text()?),
                _ => self.symbols_of_word(),
            }
        }
        Ok(())
    }

    /// `(columns)`, which may be missing, and the rows behind VALUES.
    fn insert(
        &mut self,
        table: &'d str,
        defined: Option<&Rc<[&'d str]>>,
        rows: &mut usize,
        take: &mut impl FnMut(Row<'d>),
    ) -> Result<(), DumpError> {
        self.skip_blank()?;
        let columns: Rc<[&str]> = if self.peek() == Some(b'(') {
            self.names()?
        } else {
            let missing = "rows without the names of their columns, and no CREATE TABLE in front of them: dump the tables' definitions as well, or by --complete-insert";
            defined.cloned().ok_or_else(|| self.fault(format!("{table}: {missing}")))?
        };
        if !self.keyword("VALUES")? && !self.keyword("VALUE")? {
            return Err(self.expected("VALUES"));
        }
        loop {
            self.skip_blank()?;
            let line = self.line;
            let fields = self.fields()?;
            if fields.len() != columns.len() {
                let fault = format!("{table} has {} columns, a row of {} values came", columns.len(), fields.len());
                return Err(DumpError { line, fault });
            }
            *rows += 1;
            if *rows > ROWS_MAX {
                return Err(self.fault(format!("a dump has more than {ROWS_MAX} rows")));
            }
            take(Row { table, line, columns: columns.clone(), fields });
            self.skip_blank()?;
            match self.peek() {
                Some(b',') => drop(self.advance(1)),
                // ON DUPLICATE KEY UPDATE and the like.
                _ => return self.skip_statement(),
            }
        }
    }

    fn names(&mut self) -> Result<Rc<[&'d str]>, DumpError> {
        self.symbol(b'(')?;
        let mut names = Vec::new();
        loop {
            names.push(self.name("the name of a column")?);
            if names.len() > COLUMNS_MAX {
                return Err(self.fault(format!("a row has more than {COLUMNS_MAX} columns")));
            }
            self.skip_blank()?;
            match self.peek() {
                Some(b',') => drop(self.advance(1)),
                _ => break,
            }
        }
        self.symbol(b')')?;
        Ok(names.into())
    }

    fn fields(&mut self) -> Result<Vec<Field<'d>>, DumpError> {
        self.symbol(b'(')?;
        let mut fields = Vec::new();
        loop {
            fields.push(self.field()?);
            if fields.len() > COLUMNS_MAX {
                return Err(self.fault(format!("a row has more than {COLUMNS_MAX} values")));
            }
            self.skip_blank()?;
            match self.peek() {
                Some(b',') => drop(self.advance(1)),
                _ => break,
            }
        }
        self.symbol(b')')?;
        Ok(fields)
    }

    fn field(&mut self) -> Result<Field<'d>, DumpError> {
        self.skip_blank()?;
        match self.peek() {
            Some(b'\'') | Some(b'"') => return Ok(Field::Text(self.quoted_text()?)),
            Some(b'_') => {
                // A text of a stated character set: _binary 'x'.
                self.word();
                self.skip_blank()?;
                return match self.peek() {
                    Some(b'\'') | Some(b'"') => Ok(Field::Text(self.quoted_text()?)),
                    _ => Err(self.expected("a text")),
                };
            }
            _ => {}
        }
        let bare = self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        match bare {
            "" => Err(self.expected("a value")),
            _ if bare.eq_ignore_ascii_case("NULL") => Ok(Field::Null),
            _ => Ok(Field::Bare(bare)),
        }
    }

    /// A text in quotes, which are doubled in it or escaped by a backslash.
    fn quoted_text(&mut self) -> Result<Cow<'d, str>, DumpError> {
        let begin = self.line;
        let without_end = || DumpError { line: begin, fault: "a text has no end".into() };
        let quote = self.peek().ok_or_else(without_end)?;
        self.advance(1);
        let mut text = Cow::Borrowed("");
        loop {
            let plain = self.take_while(|byte| byte != quote && byte != b'\\');
            if text.is_empty() {
                text = Cow::Borrowed(plain);
            } else {
                text.to_mut().push_str(plain);
            }
            let Some(special) = self.peek() else { return Err(without_end()) };
            self.advance(1);
            if special == quote {
                if self.peek() != Some(quote) {
                    return Ok(text);
                }
                self.advance(1);
                text.to_mut().push(char::from(quote));
            } else {
                let escaped = self.rest().chars().next().ok_or_else(without_end)?;
                self.advance(escaped.len_utf8());
                text.to_mut().push(match escaped {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'b' => '\u{8}',
                    '0' => '\0',
                    'Z' => '\u{1a}',
                    other => other,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &str) -> Result<Vec<String>, DumpError> {
        let mut rows = Vec::new();
        let told = |row: &Row<'_>, column: &&str| format!("{column}={}", row.text(column).unwrap_or("NULL"));
        read(text, |row| {
            let fields: Vec<String> = row.columns.iter().map(|column| told(&row, column)).collect();
            rows.push(format!("{} {}: {}", row.line, row.table, fields.join(" ")));
        })?;
        Ok(rows)
    }

    #[test]
    fn rows_have_the_columns_of_their_definition() {
        let text = "/*M!999999\\- enable the sandbox mode */\n-- MariaDB dump\n\n/*!40101 SET NAMES utf8mb4 */;\nDROP TABLE IF EXISTS `cloud`;\n\
            CREATE TABLE `cloud` (\n  `id` bigint(20) NOT NULL,\n  `name` varchar(255) DEFAULT 'a,(b' COMMENT 'it''s; `x`',\n  PRIMARY KEY (`id`),\n  \
            UNIQUE KEY `cloud` (`id`,`name`)\n) ENGINE=InnoDB;\nLOCK TABLES `cloud` WRITE;\nINSERT INTO `cloud` VALUES\n(1,'one'),\n(-2,NULL);\nUNLOCK TABLES;\n";
        assert_eq!(rows(text).unwrap(), ["14 cloud: id=1 name=one", "15 cloud: id=-2 name=NULL"]);
    }

    #[test]
    fn rows_may_name_their_columns_and_texts_are_escaped() {
        let text = r#"insert ignore into a.`t` (`x`, y) values ('it''s \'so\'\\\n\"', 1.5e3), (_binary 'ü;)', "d""q") ON DUPLICATE KEY UPDATE x = ';';"#;
        assert_eq!(rows(text).unwrap(), ["1 t: x=it's 'so'\\\n\" y=1.5e3", "1 t: x=ü;) y=d\"q"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let told = |text: &str| rows(text).unwrap_err().to_string();
        assert!(told("\nINSERT INTO t VALUES (1);").starts_with("line 2: t: rows without the names of their columns"));
        assert_eq!(told("INSERT INTO t (a,b) VALUES\n(1);"), "line 2: t has 2 columns, a row of 1 values came");
        assert_eq!(told("INSERT INTO t (a) VALUES ('x"), "line 1: a text has no end");
        assert_eq!(told("INSERT INTO t (a) VALUES (1"), "line 1: ')' was expected, the end of the text came");
        assert_eq!(told("INSERT INTO t (a) SELECT 1;"), "line 1: VALUES was expected, \"SELECT 1;\" came");
        assert_eq!(told("/* x"), "line 1: a comment has no end (*/)");
        assert_eq!(told("CREATE TABLE `t` (`a` int"), "line 1: a CREATE TABLE has no end");
        assert_eq!(told("INSERT INTO t (a) VALUES (,)"), "line 1: a value was expected, \",)\" came");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(INSERT INTO |CREATE TABLE |VALUES|`|'|\"|\\\\|\\(|\\)|,|;|t|1|ü|\n| |--|/\\*|\\*/){0,60}") {
            let _ = rows(&text);
        }

        #[test]
        fn a_text_comes_back(text in any::<String>()) {
            let escaped = text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n").replace('\0', "\\0");
            let mut found = Vec::new();
            read(&format!("INSERT INTO t (a) VALUES ('{escaped}');"), |row| found.push(row.text("a").unwrap().to_owned())).unwrap();
            prop_assert_eq!(found, [text]);
        }
    }
}
