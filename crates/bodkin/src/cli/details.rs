//! One thing with all that is known of it: a line a property.

use std::fmt;

/// Names and values, printed in two columns. An empty value is `none`; control characters in values (whatever a peer put
/// there) become `?`.
#[derive(Default)]
pub struct Details {
    lines: Vec<(&'static str, String)>,
}

impl Details {
    /// Adds a property.
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        let value = value.to_string().replace(char::is_control, "?");
        self.lines.push((name, if value.is_empty() { "none".to_owned() } else { value }));
        self
    }

    /// Rows of a terminal that is so many characters wide.
    pub fn rows(&self, columns: usize) -> usize {
        self.to_string().lines().map(|line| line.chars().count().div_ceil(columns).max(1)).sum()
    }

    /// Adds a property if there is one.
    pub fn with_some(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds the times of a row.
    pub fn with_times(self, created_at: Option<&String>, updated_at: Option<&String>) -> Self {
        self.with_some("created", created_at).with_some("updated", updated_at)
    }
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        self.lines.iter().try_for_each(|(name, value)| writeln!(f, "{name:<width$}  {value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_under_each_other() {
        let details =
            Details::default().with("id", 7).with_some("valid until", Some("a\nb")).with_some("none", None::<&str>).with("uri", "");
        assert_eq!(details.to_string(), "id           7\nvalid until  a?b\nuri          none\n");
    }
}
