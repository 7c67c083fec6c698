//! Which part of a list is printed.

use bodkin_client::Page;
use clap::Args;

/// Rows of a page when only `--page` is given.
const ROWS: u64 = 100;

/// Options of every list.
#[derive(Args, Clone, Debug)]
pub struct PageOptions {
    /// Print one page only, counted from 0
    #[arg(long, help_heading = "Paging", value_name = "N")]
    page: Option<u64>,
    /// Rows of a page [default: 100]
    #[arg(long, help_heading = "Paging", value_name = "N", requires = "page", value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,
    /// Sort by this field of the JSON form, for example createdAt [default: id]
    #[arg(long, help_heading = "Paging", value_name = "FIELD")]
    sort: Option<String>,
    /// The last row first
    #[arg(long, help_heading = "Paging")]
    descending: bool,
}

impl From<PageOptions> for Page {
    fn from(options: PageOptions) -> Self {
        Self {
            number_and_rows: options.page.map(|number| (number, options.rows.unwrap_or(ROWS))),
            sort_field: options.sort,
            descending: options.descending,
        }
    }
}
