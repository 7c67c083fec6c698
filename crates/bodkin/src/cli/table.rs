//! Results as aligned columns.

use std::fmt;

/// Space between columns, in characters.
const GAP: usize = 2;
/// No column is cut below this, in characters.
const COLUMN_WIDTH_MIN: usize = 8;

/// Rows under a header line. Cells are texts of one line; control characters (whatever a peer put there) become `?`.
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row of as many cells as the header has.
    pub fn push(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<String> = cells.into_iter().map(|cell| cell.replace(char::is_control, "?")).collect();
        assert_eq!(row.len(), self.header.len(), "a row has a cell for every column");
        self.rows.push(row);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text, its widest columns cut (marked with an ellipsis) until a line fits into `width` characters.
    pub fn cut_to(&self, width: usize) -> String {
        let mut widths = self.column_widths();
        let mut excess = (widths.iter().sum::<usize>() + GAP * (widths.len() - 1)).saturating_sub(width);
        while excess > 0 {
            let Some(widest) = widths.iter_mut().filter(|width| **width > COLUMN_WIDTH_MIN).max() else { break };
            *widest -= 1;
            excess -= 1;
        }
        self.text(&widths)
    }

    fn column_widths(&self) -> Vec<usize> {
        let width = |column: usize| self.rows.iter().map(|row| length(&row[column])).fold(length(self.header[column]), usize::max);
        (0..self.header.len()).map(width).collect()
    }

    fn text(&self, widths: &[usize]) -> String {
        let mut text = String::new();
        let mut line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut line = String::new();
            for (cell, width) in cells.zip(widths) {
                let cell = cut(cell, *width);
                line.push_str(&cell);
                line.extend(std::iter::repeat_n(' ', width - length(&cell) + GAP));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        };
        line(&mut self.header.iter().copied());
        self.rows.iter().for_each(|row| line(&mut row.iter().map(String::as_str)));
        text
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&self.column_widths()))
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn cut(text: &str, width: usize) -> String {
    if length(text) <= width { text.to_owned() } else { text.chars().take(width - 1).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["ID", "SERVICE", "URI"]);
        table.push(["1".into(), "größe".into(), "/a".into()]);
        table.push(["12".into(), "t".into(), "/a/very/long/path\u{1b}[2J".into()]);
        table
    }

    /// Every table of the commands has its headings as literals, in `Table::new` or as `header` in front of it.
    #[test]
    fn headings_are_in_capitals() {
        let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        let mut tables = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                for opening in [concat!("Table::", "new(&["), concat!("let header", " = [")] {
                    for rest in text.split(opening).skip(1) {
                        let headings = rest.split(']').next().unwrap();
                        let is_lower = headings.split('"').skip(1).step_by(2).any(|heading| heading.contains(char::is_lowercase));
                        assert!(!is_lower, "{}: {headings}", path.display());
                        tables += 1;
                    }
                }
            }
        }
        assert!(tables > 40, "{tables} tables were found");
    }

    #[test]
    fn columns_are_aligned_by_characters() {
        assert_eq!(table().to_string(), "ID  SERVICE  URI\n1   größe    /a\n12  t        /a/very/long/path?[2J\n");
    }

    #[test]
    fn the_widest_column_is_cut_to_fit() {
        assert_eq!(table().cut_to(24), "ID  SERVICE  URI\n1   größe    /a\n12  t        /a/very/lo…\n");
        assert!(table().cut_to(1).lines().count() == 3);
    }
}
