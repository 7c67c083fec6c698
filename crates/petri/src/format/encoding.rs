//! The encoding of an XML file: by its first bytes, or as its declaration says (XML 1.0, appendix F).

use super::xml::XmlError;

/// Bytes at the beginning of a file in which its declaration has to end.
const DECLARATION_MAX: usize = 1_024;

/// What a file may be encoded as.
const EXPECTED: &str = "expected UTF-8, UTF-16, ISO-8859-1 or US-ASCII: save the file as UTF-8";

fn refused(line: usize, reason: String) -> XmlError {
    XmlError { line, reason }
}

/// The text of an XML file.
///
/// # Errors
/// [`XmlError`] if the encoding is another one than UTF-8, UTF-16, ISO-8859-1 or US-ASCII, or if the bytes are not what it says.
pub fn decoded(bytes: &[u8]) -> Result<String, XmlError> {
    match bytes {
        [0, 0, 0xfe, 0xff, ..] | [0xff, 0xfe, 0, 0, ..] => Err(refused(1, format!("its encoding is UTF-32; {EXPECTED}"))),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0, b'<', ..] => utf16(bytes, u16::from_be_bytes),
        [b'<', 0, ..] => utf16(bytes, u16::from_le_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest),
        _ => {
            let declared = declared(bytes);
            match declared.as_deref().map(str::to_ascii_uppercase).as_deref() {
                None | Some("UTF-8" | "UTF8") => utf8(bytes),
                Some("US-ASCII" | "ASCII") if bytes.is_ascii() => utf8(bytes),
                Some("US-ASCII" | "ASCII") => {
                    Err(refused(line(bytes, |byte| !byte.is_ascii()), "a byte is not US-ASCII, as the file declares".to_owned()))
                }
                Some("ISO-8859-1" | "LATIN1" | "ISO-LATIN-1") => Ok(bytes.iter().map(|byte| char::from(*byte)).collect()),
                Some("UTF-16") => Err(refused(1, format!("it declares UTF-16 and is in another encoding; {EXPECTED}"))),
                Some(_) => Err(refused(1, format!("its encoding is {}; {EXPECTED}", declared.unwrap_or_default()))),
            }
        }
    }
}

/// The encoding that an XML declaration names.
fn declared(bytes: &[u8]) -> Option<String> {
    let start = bytes.strip_prefix(b"<?xml")?;
    let start = &start[..start.len().min(DECLARATION_MAX)];
    let declaration = &start[..start.windows(2).position(|pair| pair == b"?>")?];
    let text: String = declaration.iter().map(|byte| char::from(*byte)).collect();
    let value = text.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    Some(value[1..].split_once(quote)?.0.trim().to_owned())
}

fn utf8(bytes: &[u8]) -> Result<String, XmlError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        let byte = bytes[error.valid_up_to()];
        refused(
            line,
            format!("byte {byte:#04x} is not UTF-8, and the file declares no other encoding; declare it, or save the file as UTF-8"),
        )
    })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, XmlError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    let text = String::from_utf16(&units).ok().filter(|_| rest.is_empty());
    text.ok_or_else(|| refused(1, "it begins as UTF-16 and is not; save the file as UTF-8".to_owned()))
}

/// The line of the first byte that is wrong.
fn line(bytes: &[u8], is_wrong: impl Fn(&u8) -> bool) -> usize {
    1 + bytes.iter().take_while(|byte| !is_wrong(byte)).filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_encodings_are_read() {
        let text = |encoding: &str| format!("<?xml version='1.0' encoding=\"{encoding}\"?>\n<a>K\u{e4}hler</a>");
        assert_eq!(decoded(text("UTF-8").as_bytes()).as_deref(), Ok(text("UTF-8").as_str()));
        let latin: Vec<u8> = text("ISO-8859-1").chars().map(|character| u8::try_from(u32::from(character)).expect("Latin")).collect();
        assert_eq!(decoded(&latin).as_deref(), Ok(text("ISO-8859-1").as_str()));
        for is_marked in [true, false] {
            let units = || text("UTF-16").encode_utf16().collect::<Vec<u16>>();
            let mark: &[u16] = if is_marked { &[0xfeff] } else { &[] };
            let big: Vec<u8> = mark.iter().copied().chain(units()).flat_map(u16::to_be_bytes).collect();
            let little: Vec<u8> = mark.iter().copied().chain(units()).flat_map(u16::to_le_bytes).collect();
            assert_eq!((decoded(&big), decoded(&little)), (Ok(text("UTF-16")), Ok(text("UTF-16"))));
        }
        assert_eq!(decoded(b"\xef\xbb\xbf<a/>").as_deref(), Ok("<a/>"));
    }

    #[test]
    fn other_encodings_are_refused_by_name_and_line() {
        for (bytes, reason) in [
            (&b"<?xml version=\"1.0\" encoding='Shift_JIS'?><a/>"[..], "line 1: its encoding is Shift_JIS; expected UTF-8, UTF-16"),
            (b"<?xml version=\"1.0\" encoding=\"UTF-16\"?><a/>", "line 1: it declares UTF-16 and is in another encoding"),
            (b"<a>\n\n\xe4</a>", "line 3: byte 0xe4 is not UTF-8, and the file declares no other encoding"),
            (b"<?xml encoding=\"US-ASCII\"?>\n<a>\xe4</a>", "line 2: a byte is not US-ASCII"),
            (b"\xfe\xff\x00", "line 1: it begins as UTF-16 and is not"),
            (b"\xff\xfe\x00\x00", "line 1: its encoding is UTF-32"),
        ] {
            let error = decoded(bytes).expect_err(reason).to_string();
            assert!(error.starts_with(reason), "{error}");
        }
    }
}
