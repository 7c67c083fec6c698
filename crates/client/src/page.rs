//! Which part of a list is asked for, and in which order (reference section 1.5).

use crate::query_string::path_with;

/// A part of a list. The default is all of it, by ascending id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Which page, from 0, and how many rows one has.
    pub number_and_rows: Option<(u64, u64)>,
    /// The field to sort by, as the list names it.
    pub sort_field: Option<String>,
    /// The last row first.
    pub descending: bool,
}

impl Page {
    /// The path with the parameters of the page behind further ones.
    pub(crate) fn of(&self, path: &str, further: &[(&str, &str)]) -> String {
        let (number, rows) = self.number_and_rows.map(|(number, rows)| (number.to_string(), rows.to_string())).unzip();
        let optional = [
            ("page", number.as_deref()),
            ("item_per_page", rows.as_deref()),
            ("sort_field", self.sort_field.as_deref()),
            ("direction", self.descending.then_some("DESC")),
        ];
        let mut parameters = further.to_vec();
        parameters.extend(optional.into_iter().filter_map(|(key, value)| Some((key, value?))));
        path_with(path, &parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_sent() {
        assert_eq!(Page::default().of("/x", &[]), "/x");
        let page = Page { number_and_rows: Some((2, 50)), sort_field: Some("priority".into()), descending: true };
        assert_eq!(page.of("/x", &[("a", "b c")]), "/x?a=b%20c&page=2&item_per_page=50&sort_field=priority&direction=DESC");
    }
}
