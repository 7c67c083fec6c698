//! As much of XML as the formats of nets need: elements, attributes, text. No document type, so that no entity can grow.

use std::fmt::Write;

/// Deepest nesting that is read.
const DEPTH_MAX: usize = 64;

/// A text that is not well-formed XML, or uses what is not read here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct XmlError {
    /// Line of the text, from 1.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

/// An element; names come without their namespace's prefix. Declarations of namespaces and `xml:` and `xsi:` attributes are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Element>,
    /// The text directly inside, without the children's.
    pub text: String,
    pub line: usize,
}

impl Element {
    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The first child of that name.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// All elements of that name inside, at any depth, in their order.
    #[cfg(test)]
    pub fn all<'a>(&'a self, name: &'a str) -> Vec<&'a Element> {
        let inside = self.children.iter().flat_map(|child| child.all(name));
        (self.name == name).then_some(self).into_iter().chain(inside).collect()
    }
}

/// Reads a document; gives its root.
pub fn read(text: &str) -> Result<Element, XmlError> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_between()?;
    let root = reader.element(0)?;
    reader.skip_between()?;
    if reader.at < text.len() { Err(reader.refused("something stands behind the root element")) } else { Ok(root) }
}

/// A text with the characters replaced that mean something in XML.
pub fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, character| {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            character => {
                let _ = write!(escaped, "{character}");
            }
        }
        escaped
    })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn line(&self) -> usize {
        1 + self.text[..self.at].matches('\n').count()
    }

    fn refused(&self, reason: impl Into<String>) -> XmlError {
        XmlError { line: self.line(), reason: reason.into() }
    }

    fn takes(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    /// The text up to `end`, which is taken too.
    fn until(&mut self, end: &str) -> Result<&'a str, XmlError> {
        let length = self.rest().find(end).ok_or_else(|| self.refused(format!("{end} is missing")))?;
        let found = &self.rest()[..length];
        self.at += length + end.len();
        Ok(found)
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Skips what may stand around the root: space, comments, processing instructions.
    fn skip_between(&mut self) -> Result<(), XmlError> {
        self.takes("\u{feff}");
        loop {
            self.skip_space();
            if self.takes("<?") {
                self.until("?>")?;
            } else if self.takes("<!--") {
                self.until("-->")?;
            } else if self.rest().starts_with("<!") {
                return Err(self.refused("document types are not read"));
            } else {
                return Ok(());
            }
        }
    }

    fn name(&mut self) -> Result<String, XmlError> {
        let is_name = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | ':');
        let length = self.rest().find(|character| !is_name(character)).unwrap_or(self.rest().len());
        let name = &self.rest()[..length];
        if name.is_empty() {
            return Err(self.refused("a name is expected"));
        }
        self.at += length;
        Ok(name.rsplit(':').next().unwrap_or(name).to_owned())
    }

    fn element(&mut self, depth: usize) -> Result<Element, XmlError> {
        if depth == DEPTH_MAX {
            return Err(self.refused(format!("elements are nested deeper than {DEPTH_MAX}")));
        }
        if !self.takes("<") {
            return Err(self.refused("an element is expected"));
        }
        let line = self.line();
        let mut element = Element { name: self.name()?, line, ..Element::default() };
        loop {
            self.skip_space();
            if self.takes("/>") {
                return Ok(element);
            }
            if self.takes(">") {
                break;
            }
            let Some(attribute) = self.attribute()? else { continue };
            if element.attribute(&attribute.0).is_some() {
                return Err(self.refused(format!("{} has two attributes {}", element.name, attribute.0)));
            }
            element.attributes.push(attribute);
        }
        self.content(&mut element, depth)?;
        Ok(element)
    }

    /// An attribute. None for what says how the document itself is to be read: namespaces, schemas, language, blanks.
    fn attribute(&mut self) -> Result<Option<(String, String)>, XmlError> {
        let start = self.at;
        let name = self.name()?;
        let qualified = &self.text[start..self.at];
        let is_of_document = qualified == "xmlns" || ["xmlns:", "xml:", "xsi:"].iter().any(|prefix| qualified.starts_with(prefix));
        self.skip_space();
        if !self.takes("=") {
            return Err(self.refused(format!("= is expected behind {name}")));
        }
        self.skip_space();
        let value = match (self.takes("\""), self.takes("'")) {
            (true, _) => self.until("\"")?,
            (_, true) => self.until("'")?,
            _ => return Err(self.refused(format!("the value of {name} has no quotation marks"))),
        };
        let value = self.unescaped(value)?;
        Ok((!is_of_document).then_some((name, value)))
    }

    fn content(&mut self, element: &mut Element, depth: usize) -> Result<(), XmlError> {
        loop {
            let length = self.rest().find('<').ok_or_else(|| self.refused(format!("{} is not closed", element.name)))?;
            let text = &self.rest()[..length];
            element.text.push_str(&self.unescaped(text)?);
            self.at += length;
            if self.takes("<!--") {
                self.until("-->")?;
            } else if self.takes("<![CDATA[") {
                element.text.push_str(self.until("]]>")?);
            } else if self.takes("</") {
                let name = self.name()?;
                self.skip_space();
                if name != element.name || !self.takes(">") {
                    return Err(self.refused(format!("{} is closed as {name}", element.name)));
                }
                return Ok(());
            } else {
                let child = self.element(depth + 1)?;
                element.children.push(child);
            }
        }
    }

    fn unescaped(&self, text: &str) -> Result<String, XmlError> {
        let mut parts = text.split('&');
        let mut unescaped = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (entity, rest) = part.split_once(';').ok_or_else(|| self.refused("& has no ; behind it"))?;
            let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
            let character = match entity {
                "amp" => Some('&'),
                "lt" => Some('<'),
                "gt" => Some('>'),
                "quot" => Some('"'),
                "apos" => Some('\''),
                entity => entity
                    .strip_prefix("#x")
                    .map_or_else(|| entity.strip_prefix('#').and_then(|digits| number(digits, 10)), |digits| number(digits, 16)),
            };
            unescaped.push(character.ok_or_else(|| self.refused(format!("&{entity}; is not known")))?);
            unescaped.push_str(rest);
        }
        Ok(unescaped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_attributes_and_text_are_read() {
        let root = read("<?xml version=\"1.0\"?>\n<!-- a --><n:a x='1 &lt; 2' y=\"&#65;\">t<b/>u<![CDATA[<&]]><b z=\"\"></b></n:a>\n")
            .expect("it is right");
        assert_eq!(
            (root.name.as_str(), root.attribute("x"), root.attribute("y"), root.text.as_str()),
            ("a", Some("1 < 2"), Some("A"), "tu<&")
        );
        assert_eq!((root.all("b").len(), root.line, root.child("b").map(|child| child.line)), (2, 2, Some(2)));
    }

    #[test]
    fn what_is_escaped_is_read_back() {
        let text = "a < b && \"c\" > 'd'";
        assert_eq!(read(&format!("<a x=\"{0}\">{0}</a>", escaped(text))).expect("it is right").text, text);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, reason) in [
            ("", "line 1: an element is expected"),
            ("<a>\n<b></a>", "line 2: b is closed as a"),
            ("<a>\n", "line 1: a is not closed"),
            ("<a x=1/>", "line 1: the value of x has no quotation marks"),
            ("<a x='1'\n x='2'/>", "line 2: a has two attributes x"),
            ("<a>&b;</a>", "line 1: &b; is not known"),
            ("<!DOCTYPE a><a/>", "line 1: document types are not read"),
            ("<a/><b/>", "line 1: something stands behind the root element"),
        ] {
            assert_eq!(read(text).expect_err(text).to_string(), reason);
        }
        assert!(read(&"<a>".repeat(100)).expect_err("too deep").reason.contains("nested deeper"));
    }
}
