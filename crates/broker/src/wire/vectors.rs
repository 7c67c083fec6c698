//! Every file of `vectors/wire`: bytes and what they mean, in both directions, and bytes that are refused.

use proptest::{prelude::*, sample::Index};
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
fn check(file: &str, read: Read) {
    let file: Value = serde_json::from_str(file).expect("a file of vectors is JSON");
    let entries = |kind: &str| file[kind].as_array().cloned().unwrap_or_else(|| panic!("the file has no {kind}"));
    for entry in entries("frames") {
        let bytes = unhex(entry["hex"].as_str().expect("bytes"));
        let (meaning, again) = read(&bytes).unwrap_or_else(|error| panic!("{entry}: {error}"));
        assert_eq!(meaning, entry["means"]);
        assert_eq!(hex(&again), hex(&bytes), "{entry}");
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_err(), "{entry} cut to {cut} bytes");
        }
    }
    for entry in entries("refused") {
        let error = read(&unhex(entry["hex"].as_str().expect("bytes"))).expect_err("these bytes are refused");
        assert_eq!(error, entry["error"], "{entry}");
    }
}

fn read_header(bytes: &[u8]) -> Result<(Value, Vec<u8>), String> {
    let header = EventHeader::decode(bytes).map_err(|error| error.to_string())?;
    let mut again = Vec::new();
    header.encode(&mut again);
    let EventHeader { flags, publisher, incarnation, sequence, created_utc_ns, epoch } = header;
    let meaning = serde_json::json!({"flags": flags.json(), "publisher": publisher.0, "incarnation": incarnation.0,
        "sequence": sequence.0, "created_utc_ns": created_utc_ns, "epoch": epoch.0});
    Ok((meaning, again))
}

fn read_command(bytes: &[u8]) -> Result<(Value, Vec<u8>), String> {
    let frame = ClientFrame::decode(bytes).map_err(|error| error.to_string())?;
    let mut again = Vec::new();
    frame.encode(&mut again);
    Ok((frame.json(), again))
}

fn read_link(bytes: &[u8]) -> Result<(Value, Vec<u8>), String> {
    let (frame, rest) = link_frame(bytes).map_err(|error| error.to_string())?.ok_or("the frame is not whole")?;
    let frame = LinkFrame::decode(frame).map_err(|error| error.to_string())?;
    let mut again = Vec::new();
    frame.encode(&mut again);
    again.extend_from_slice(rest);
    let meaning = match frame {
        LinkFrame::Ballot(frame) => frame.json(),
        LinkFrame::Replication(frame) => frame.json(),
    };
    Ok((meaning, again))
}

/// The files, and what reads their bytes.
const FILES: [(&str, Read); 3] = [(HEADERS, read_header), (CLIENT, read_command), (LINK, read_link)];

/// What bytes mean, and the bytes of that meaning.
type Read = fn(&[u8]) -> Result<(Value, Vec<u8>), String>;

#[test]
fn frames_are_what_their_vectors_say() {
    for (file, read) in FILES {
        check(file, read);
    }
}

proptest! {
    /// However a peer garbles a frame: it is refused, or it has a meaning whose only form it is.
    #[test]
    fn garbled_frames_are_refused_or_mean_what_they_say(
        file in 0..FILES.len(), index: Index, changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..4),
    ) {
        let (file, read) = FILES[file];
        let file: Value = serde_json::from_str(file).expect("a file of vectors is JSON");
        let mut bytes = unhex(index.get(file["frames"].as_array().expect("frames"))["hex"].as_str().expect("bytes"));
        for (place, byte) in changes {
            *place.get_mut(&mut bytes) = byte;
        }
        if let Ok((_, again)) = read(&bytes) {
            prop_assert_eq!(again, bytes);
        }
    }
}
