//! A graph file, read with the names that this cloud would have.

use std::path::Path;

use bodkin_arrowhead::name::EventType;
use bodkin_operators::{
    catalogue::KINDS,
    file::{FILE_BYTES_MAX, GraphFile, parse},
};

use crate::topic_file::{Mistakes, read_text};

/// Reads a file.
pub fn read(path: &Path) -> Result<GraphFile, Mistakes> {
    let text = read_text(path, FILE_BYTES_MAX as u64)?;
    parse(&text, KINDS, topic_name).map_err(|found| Mistakes::of(path, text, found.into_iter().map(|mistake| (mistake.at, mistake.what))))
}

fn topic_name(text: &str) -> Result<String, String> {
    let name = EventType::parse(text).map_err(|error| error.to_string().trim_end_matches('.').to_owned())?;
    Ok(name.as_str().to_owned())
}
