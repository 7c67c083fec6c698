//! Tables of numbers in text: RFC 4180, with a point in numbers.

/// A cell, in quotation marks where it needs them.
pub fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

/// The numbers of one column: the one of that name or number (from 1), or the first. A first line without numbers has the names;
/// empty lines and lines that begin with `#` are passed over.
///
/// # Errors
/// What was found in which line, and what was expected.
pub fn column(text: &str, wanted: Option<&str>) -> Result<Vec<f64>, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')).peekable();
    let names: Option<Vec<&str>> = match lines.peek() {
        Some((_, line)) if cells(line).all(|cell| cell.parse::<f64>().is_err()) => {
            let names = cells(line).collect();
            lines.next();
            Some(names)
        }
        _ => None,
    };
    let index = match wanted {
        None => 0,
        Some(wanted) => match names.as_ref().and_then(|names| names.iter().position(|name| *name == wanted)) {
            Some(index) => index,
            None => wanted.parse::<usize>().ok().and_then(|number| number.checked_sub(1)).ok_or_else(|| {
                let known = names.map_or("the file has no names".to_owned(), |names| format!("there are {}", names.join(", ")));
                format!("there is no column {wanted}: {known}")
            })?,
        },
    };
    let number = |(line, text): (usize, &str)| {
        let cell = cells(text).nth(index).ok_or_else(|| format!("line {}: it has no column {}", line + 1, index + 1))?;
        cell.parse::<f64>().map_err(|_| format!("line {}: {cell:?} is no number", line + 1))
    };
    lines.map(number).collect()
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|cell| cell.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_found_by_name_by_number_or_is_the_first() {
        let text = "# measured\nms,size\n1.5,3\n\n2,4\n";
        assert_eq!(column(text, None), Ok(vec![1.5, 2.0]));
        assert_eq!(column(text, Some("size")), Ok(vec![3.0, 4.0]));
        assert_eq!(column(text, Some("2")), Ok(vec![3.0, 4.0]));
        assert_eq!(column("7\n8\n", None), Ok(vec![7.0, 8.0]));
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        assert_eq!(column("a,b\n1,2\n3\n", Some("b")), Err("line 3: it has no column 2".to_owned()));
        assert_eq!(column("a\n1\nx\n", None), Err("line 3: \"x\" is no number".to_owned()));
        assert_eq!(column("a,b\n1,2\n", Some("c")), Err("there is no column c: there are a, b".to_owned()));
        assert_eq!(column("1\n2\n", Some("c")), Err("there is no column c: the file has no names".to_owned()));
    }

    #[test]
    fn a_cell_is_quoted_where_it_needs_it() {
        assert_eq!(quoted("A + B"), "A + B");
        assert_eq!(quoted("max(A, \"B\")"), "\"max(A, \"\"B\"\")\"");
    }
}
