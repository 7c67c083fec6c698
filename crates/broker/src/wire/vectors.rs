//! Every file of `vectors/wire`: bytes and what they mean, in both directions, and bytes that are refused.

use serde_json::Value;

use super::{ClientFrame, EventHeader, LinkFrame, codec::Field, link_frame};

const HEADERS: &str = include_str!("../../../../vectors/wire/event-header.json");
const LINK: &str = include_str!("../../../../vectors/wire/link.json");
const CLIENT: &str = include_str!("../../../../vectors/wire/client.json");

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter(|c| *c != ' ').map(|c| c.to_digit(16).expect("a hexadecimal digit") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Holds every entry of a file against `read`, which gives the meaning of bytes and the bytes of that meaning.
fn check(file: &str, read: impl Fn(&[u8]) -> Result<(Value, Vec<u8>), String>) {
    let file: Value = serde_json::from_str(file).expect("a file of vectors is JSON");
    let entries = |kind: &str| file[kind].as_array().cloned().unwrap_or_else(|| panic!("the file has no {kind}"));
    for entry in entries("frames") {
        let bytes = unhex(entry["hex"].as_str().expect("bytes"));
        let (meaning, again) = read(&bytes).unwrap_or_else(|error| panic!("{entry}: {error}"));
        assert_eq!(meaning, entry["means"]);
        assert_eq!(hex(&again), hex(&bytes), "{entry}");
        for cut in 0..bytes.len() {
            // Where the last field goes to the frame's end, a shorter frame means something else.
            let cut_is_same = read(&bytes[..cut]).is_ok_and(|(_, again)| again == bytes);
            assert!(!cut_is_same, "{entry} cut to {cut} bytes");
        }
    }
    for entry in entries("refused") {
        let error = read(&unhex(entry["hex"].as_str().expect("bytes"))).expect_err("these bytes are refused");
        assert_eq!(error, entry["error"], "{entry}");
    }
}

#[test]
fn headers_are_what_their_vectors_say() {
    check(HEADERS, |bytes| {
        let header = EventHeader::decode(bytes).map_err(|error| error.to_string())?;
        let mut again = Vec::new();
        header.encode(&mut again);
        let EventHeader { flags, publisher, incarnation, sequence, created_utc_ns, epoch } = header;
        let meaning = serde_json::json!({"flags": flags.json(), "publisher": publisher.0, "incarnation": incarnation.0,
            "sequence": sequence.0, "created_utc_ns": created_utc_ns, "epoch": epoch.0});
        Ok((meaning, again))
    });
}

#[test]
fn commands_are_what_their_vectors_say() {
    check(CLIENT, |bytes| {
        let frame = ClientFrame::decode(bytes).map_err(|error| error.to_string())?;
        let mut again = Vec::new();
        frame.encode(&mut again);
        Ok((frame.json(), again))
    });
}

#[test]
fn frames_of_the_link_are_what_their_vectors_say() {
    check(LINK, |bytes| {
        let (frame, rest) = link_frame(bytes).map_err(|error| error.to_string())?.ok_or("the frame is not whole")?;
        assert!(rest.is_empty(), "one frame an entry");
        let frame = LinkFrame::decode(frame).map_err(|error| error.to_string())?;
        let mut again = Vec::new();
        frame.encode(&mut again);
        let meaning = match frame {
            LinkFrame::Ballot(frame) => frame.json(),
            LinkFrame::Replication(frame) => frame.json(),
        };
        Ok((meaning, again))
    });
}
