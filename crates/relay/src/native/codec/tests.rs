//! Golden bytes (`vectors/relay/frames.json`), what is refused, and that a frame has one form only.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

const VECTORS: &str = include_str!("../../../../../vectors/relay/frames.json");

fn bytes_of(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u32> = hexadecimal.chars().filter(|digit| *digit != ' ').map(|digit| digit.to_digit(16).expect("a digit")).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// What the cases of a list say in `member`, and their bytes.
fn cases(name: &str, member: &str) -> Vec<(String, Vec<u8>)> {
    let vectors: Value = serde_json::from_str(VECTORS).expect("the vectors are JSON");
    let cases = vectors[name].as_array().expect("a list").clone();
    let text = |case: &Value, member: &str| case[member].as_str().expect("a text").to_owned();
    cases.iter().map(|case| (text(case, member), bytes_of(&text(case, "hex")))).collect()
}

#[test]
fn golden_frames_are_read_and_written() {
    for (means, bytes) in cases("frames", "means") {
        let (frame, length) = read(&bytes).unwrap().expect("it is whole");
        assert_eq!((format!("{frame:?}"), length), (means, bytes.len()));
        let mut written = Vec::new();
        write(&frame, &mut written);
        assert_eq!(written, bytes, "{frame:?}");
    }
}

#[test]
fn bytes_that_are_no_frame_are_refused_with_the_reason() {
    for (error, bytes) in cases("refused", "error") {
        assert_eq!(read(&bytes).map_err(|found| found.to_string()), Err(error), "{bytes:x?}");
    }
}

#[test]
fn a_message_may_be_as_long_as_the_limit() {
    let message = Frame::Message { channel: Channel(1), bytes: &vec![7; MESSAGE_BYTES_MAX] };
    let mut bytes = Vec::new();
    write(&message, &mut bytes);
    assert_eq!(bytes.len(), HEAD_BYTES + FRAME_BYTES_MAX);
    assert_eq!(read(&bytes), Ok(Some((message, bytes.len()))));
}

fn destination() -> impl Strategy<Value = Destination> {
    ("[A-Za-z0-9._-]{1,40}", any::<bool>()).prop_map(|(name, is_topic)| {
        let destination = if is_topic { Destination::topic(&name) } else { Destination::queue(&name) };
        destination.expect("a good name")
    })
}

fn check(frame: Frame<'_>) -> Result<(), TestCaseError> {
    let mut bytes = Vec::new();
    write(&frame, &mut bytes);
    for cut in 0..bytes.len() {
        prop_assert_eq!(read(&bytes[..cut]), Ok(None), "cut at {}", cut);
    }
    let length = bytes.len();
    bytes.extend_from_slice(b"next");
    prop_assert_eq!(read(&bytes), Ok(Some((frame, length))));
    Ok(())
}

proptest! {
    #[test]
    fn frames_come_back_when_they_are_whole(
        channel in (1..=u32::MAX).prop_map(Channel), destination in destination(), message in proptest::collection::vec(any::<u8>(), 0..40),
        credit in 1..=u32::MAX, words in "\\PC{0,20}", token in any::<u64>(), role in 0..2_usize, reason in 0..8_usize, versions in any::<(u16, u16)>(),
    ) {
        check(Frame::Greeting { newest: versions.0, oldest: versions.1 })?;
        check(Frame::Open { channel, role: ROLES[role].0, destination: destination.clone() })?;
        check(Frame::Close { channel })?;
        check(Frame::Message { channel, bytes: &message })?;
        check(Frame::Credit { channel, bytes: credit })?;
        check(Frame::Remove { destination })?;
        check(Frame::Refused { channel, reason: REASONS[reason].0, words: &words })?;
        check(Frame::Refused { channel: Channel::CONNECTION, reason: REASONS[reason].0, words: &words })?;
        check(Frame::Ping { token })?;
        check(Frame::Pong { token })?;
    }

    #[test]
    fn what_is_read_has_one_form_only(length in 0..24_u32, rest in proptest::collection::vec(prop_oneof![0..10_u8, any::<u8>()], 0..30)) {
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend(rest);
        if let Ok(Some((frame, taken))) = read(&bytes) {
            let mut written = Vec::new();
            write(&frame, &mut written);
            prop_assert_eq!(&written[..], &bytes[..taken]);
        }
    }
}
