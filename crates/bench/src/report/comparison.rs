//! A table of somebody else's figures with ours beside them.

use std::fmt::Write;

use serde::Serialize;

use super::figure;
use super::html::escape;

/// The table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// What the figures are, with their unit, and whose.
    pub title: String,
    /// What each column is.
    pub columns: Vec<String>,
    /// Row by row.
    pub rows: Vec<ComparedRow>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRow {
    /// What it is about.
    pub what: String,
    /// A figure for each column; `None`: there is none.
    pub figures: Vec<Option<f64>>,
}

impl Comparison {
    /// As text on a terminal.
    pub fn text(&self) -> String {
        let width = self.rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = self.columns.iter().map(|column| column.chars().count().max(7)).collect();
        let mut out = format!("\n{}\n{:width$}", self.title, "");
        let mut put = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("text takes text");
        self.columns.iter().zip(&widths).for_each(|(column, width)| put(format_args!("  {column:>width$}")));
        put(format_args!("\n"));
        for row in &self.rows {
            put(format_args!("{:width$}", row.what));
            row.figures.iter().zip(&widths).for_each(|(value, width)| put(format_args!("  {:>width$}", cell(*value))));
            put(format_args!("\n"));
        }
        out
    }

    /// As a table of a page.
    pub fn html(&self) -> String {
        let mut out = format!("<h3>{}</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th></th>", escape(&self.title));
        let mut put = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("text takes text");
        self.columns.iter().for_each(|column| put(format_args!("<th>{}</th>", escape(column))));
        put(format_args!("</tr></thead>\n<tbody>"));
        for row in &self.rows {
            put(format_args!("<tr><th>{}</th>", escape(&row.what)));
            row.figures.iter().for_each(|value| put(format_args!("<td>{}</td>", cell(*value))));
            put(format_args!("</tr>\n"));
        }
        put(format_args!("</tbody>\n</table></div>"));
        out
    }
}

fn cell(value: Option<f64>) -> String {
    value.map(figure).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_under_their_columns() {
        let rows = vec![
            ComparedRow { what: "D 50 ms".into(), figures: vec![Some(73.2), None] },
            ComparedRow { what: "D 100 ms & more".into(), figures: vec![Some(100.0), Some(99.5)] },
        ];
        let comparison = Comparison { title: "Success".into(), columns: vec!["theirs".into(), "ours, today".into()], rows };
        let text = comparison.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1..4], ["Success", "                  theirs  ours, today", "D 50 ms            73.20             "]);
        assert_eq!(lines[4], "D 100 ms & more      100        99.50");
        let html = comparison.html();
        assert!(
            html.contains("<th>D 100 ms &amp; more</th><td>100</td><td>99.50</td>") && html.contains("<td>73.20</td><td></td>"),
            "{html}"
        );
    }
}
