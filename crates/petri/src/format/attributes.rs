//! Which attributes the elements of a format may have. An attribute that is not in the table may change the meaning, and is refused.

use super::xml::Element;

/// What an attribute may be.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    /// Read, or without meaning for what a net does.
    Any,
    /// Without meaning as long as it has one of these values, blanks not counted.
    Only(&'static [&'static str]),
}

/// For each kind of element its attributes. A kind that is not in the table has none.
pub type Table = [(&'static str, &'static [(&'static str, Use)])];

/// Checks the attributes of an element of a kind, not those of its children.
///
/// # Errors
/// The first attribute that is not known or has another value, and what was expected.
pub fn check(element: &Element, kind: &str, table: &Table) -> Result<(), String> {
    let known = table.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, known)| known);
    for (name, value) in &element.attributes {
        match known.iter().find(|(other, _)| other == name) {
            Some((_, Use::Any)) => {}
            Some((_, Use::Only(values))) => {
                let plain: String = value.chars().filter(|character| !character.is_whitespace()).collect();
                if !values.contains(&plain.as_str()) {
                    return Err(format!("its attribute {name} is {value}, which has no meaning here; expected {}", values.join(" or ")));
                }
            }
            None => {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                let expected = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(format!("its attribute {name} is not understood and may change what it means; expected {expected}"));
            }
        }
    }
    Ok(())
}
