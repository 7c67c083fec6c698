//! What is wrong with a file, shown at its place.

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};

/// Mistakes that are shown; there may be many, all of one kind.
const SHOWN_MAX: usize = 16;
/// Characters of a line that are shown.
const SHOWN_WIDTH_MAX: usize = 100;

/// One mistake.
#[derive(Debug)]
pub(super) struct Mistake {
    /// Bytes of the text; absent where it is about the whole.
    pub at: Option<Range<usize>>,
    /// What is wrong, beginning with the key.
    pub what: String,
}

/// Everything that is wrong with a file; at least one thing.
#[derive(Debug)]
pub struct Mistakes {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) found: Vec<Mistake>,
}

impl fmt::Display for Mistakes {
    /// For each, in the order of the text, `file:line:column: what`, the line, and a mark under what is meant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<&Mistake> = self.found.iter().collect();
        sorted.sort_by_key(|mistake| mistake.at.as_ref().map(|at| at.start));
        for (index, mistake) in sorted.iter().take(SHOWN_MAX).enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            self.show(mistake, f)?;
        }
        match self.found.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\n{more} more mistakes in {}", self.path.display()),
        }
    }
}

impl Mistakes {
    /// What another reader has found: bytes of the text, and what is wrong there.
    pub fn of(path: &Path, text: String, found: impl Iterator<Item = (Range<usize>, String)>) -> Self {
        let found = found.map(|(at, what)| Mistake { at: Some(at), what }).collect();
        Self { path: path.to_owned(), text, found }
    }

    fn show(&self, Mistake { at, what }: &Mistake, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(at) = at else { return write!(f, "{}: {what}", self.path.display()) };
        let start = self.text.floor_char_boundary(at.start);
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = self.text[line_start..].lines().next().unwrap_or_default();
        let column = before[line_start..].chars().count();
        let number = 1 + before.matches('\n').count();
        write!(f, "{}:{number}:{}: {what}", self.path.display(), column + 1)?;
        let visible = |text: &str| text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_WIDTH_MAX).collect::<String>();
        write!(f, "\n{number:>6} | {}", visible(line))?;
        if column < SHOWN_WIDTH_MAX {
            let meant = self.text.get(start..at.end).and_then(|meant| meant.lines().next()).unwrap_or_default().chars().count();
            let width = meant.clamp(1, SHOWN_WIDTH_MAX - column);
            write!(f, "\n{:>6} | {:column$}{}", "", "", "^".repeat(width))?;
        }
        Ok(())
    }
}
