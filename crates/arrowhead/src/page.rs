//! Paging and sorting of the management lists (reference 1.5).

use serde::Serialize;

use crate::{error::ArrowheadError, record::Timestamps};

/// Upstream's spelling of the sort order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// Which part of a list is wanted, in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Page number from 0 and rows of a page; `None` is everything.
    pub window: Option<(usize, usize)>,
    /// Sort order.
    pub direction: Direction,
    /// Member to sort by.
    pub sort_field: String,
}

impl PageRequest {
    /// Checks the query parameters `page`, `item_per_page`, `direction` and `sort_field`.
    pub fn parse(
        page: Option<i64>,
        items: Option<i64>,
        direction: Option<&str>,
        sort_field: Option<&str>,
        origin: &str,
    ) -> Result<Self, ArrowheadError> {
        let window = match (page, items) {
            (None, None) => None,
            (Some(page), Some(items)) => {
                Some((usize::try_from(page).unwrap_or(0), usize::try_from(items).ok().filter(|n| *n > 0).unwrap_or(usize::MAX)))
            }
            _ => return Err(ArrowheadError::bad_payload("Defined page or item_per_page cannot be null, give both or neither.", origin)),
        };
        // Upstream's framework takes an empty parameter for a missing one.
        let direction = match direction.filter(|text| !text.is_empty()).map(str::trim) {
            None => Direction::Ascending,
            Some(text) if text.eq_ignore_ascii_case("ASC") => Direction::Ascending,
            Some(text) if text.eq_ignore_ascii_case("DESC") => Direction::Descending,
            Some(_) => return Err(ArrowheadError::bad_payload("Invalid sort direction flag", origin)),
        };
        let sort_field = sort_field.map(str::trim).filter(|text| !text.is_empty()).unwrap_or("id").to_owned();
        Ok(Self { window, direction, sort_field })
    }
}

/// A value a list can be sorted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    /// Ids, times and ports.
    Number(u64),
    /// Names and addresses.
    Text(String),
}

/// The sort keys every list has: `id`, `createdAt`, `updatedAt`.
pub fn common_key(field: &str, id: i64, timestamps: &Timestamps) -> Option<SortKey> {
    match field {
        "id" => Some(SortKey::Number(id.unsigned_abs())),
        "createdAt" => Some(SortKey::Number(timestamps.created_at.unix_seconds())),
        "updatedAt" => Some(SortKey::Number(timestamps.updated_at.unix_seconds())),
        _ => None,
    }
}

/// A list answer: the page's rows, and the number of rows of the whole table.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    /// The rows of the page.
    pub data: Vec<T>,
    /// The rows of the table.
    pub count: usize,
}

impl<T> Page<T> {
    /// A list that is all there is.
    pub fn whole(data: Vec<T>) -> Self {
        Self { count: data.len(), data }
    }
}

/// Sorts rows (which come in order of id) and cuts the page out. `key` gives a row's sort key; `None` means that the field is not sortable.
pub fn page<R: Clone, T>(
    request: &PageRequest,
    rows: impl ExactSizeIterator<Item = R>,
    sortable: &[&str],
    key: impl Fn(&str, &R) -> Option<SortKey>,
    render: impl Fn(R) -> T,
) -> Result<Page<T>, ArrowheadError> {
    if !["id", "createdAt", "updatedAt"].contains(&request.sort_field.as_str()) && !sortable.contains(&request.sort_field.as_str()) {
        return Err(ArrowheadError::invalid_parameter(format!("Sortable field with reference '{}' is not available", request.sort_field)));
    }
    let count = rows.len();
    let (number, size) = request.window.unwrap_or((0, usize::MAX));
    let skipped = number.saturating_mul(size);
    if request.sort_field == "id" {
        // The rows come in this order, so a page costs what is in it.
        let taken = size.min(count.saturating_sub(skipped));
        let data = match request.direction {
            Direction::Ascending => rows.skip(skipped).take(taken).map(render).collect(),
            Direction::Descending => {
                let mut last: Vec<R> = rows.skip(count.saturating_sub(skipped) - taken).take(taken).collect();
                last.reverse();
                last.into_iter().map(render).collect()
            }
        };
        return Ok(Page { data, count });
    }
    let mut rows: Vec<R> = rows.collect();
    rows.sort_by_cached_key(|row| key(&request.sort_field, row));
    if request.direction == Direction::Descending {
        rows.reverse();
    }
    Ok(Page { data: rows.into_iter().skip(skipped).take(size).map(render).collect(), count })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(window: Option<(i64, i64)>, direction: &str, expected: &[u64]) {
        let request = PageRequest::parse(window.map(|w| w.0), window.map(|w| w.1), Some(direction), None, "/x").unwrap();
        let answer = page(&request, [1u64, 2, 3, 4, 5].into_iter(), &[], |_, row| Some(SortKey::Number(*row)), |row| row).unwrap();
        assert_eq!((answer.data.as_slice(), answer.count), (expected, 5));
    }

    #[test]
    fn pages_are_cut_after_sorting() {
        check(None, "ASC", &[1, 2, 3, 4, 5]);
        check(Some((0, 2)), "asc", &[1, 2]);
        check(Some((2, 2)), "ASC", &[5]);
        check(Some((3, 2)), "ASC", &[]);
        check(Some((0, 2)), "DESC", &[5, 4]);
        check(Some((-7, 3)), "ASC", &[1, 2, 3]);
        check(Some((0, 0)), "ASC", &[1, 2, 3, 4, 5]);
        check(Some((i64::MAX, i64::MAX)), "DESC", &[]);
    }

    #[test]
    fn half_a_page_and_unknown_fields_are_refused() {
        assert!(PageRequest::parse(Some(1), None, None, None, "/x").is_err());
        assert!(PageRequest::parse(None, None, Some("UP"), None, "/x").is_err());
        let request = PageRequest::parse(None, None, None, Some("colour"), "/x").unwrap();
        let refused = page(&request, [1u64].into_iter(), &["port"], |_, _| None, |row| row).unwrap_err();
        assert_eq!(refused.error_message, "Sortable field with reference 'colour' is not available");
    }
}
