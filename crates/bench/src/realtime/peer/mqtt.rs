//! MQTT 3.1.1 (OASIS Standard, 2014) from the client's end, with QoS 0 and 1.

use anyhow::{Context, bail};

use crate::realtime::dialect::{Dialect, Heard};

const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH: u8 = 0x30;
const PUBACK: u8 = 0x40;
const SUBSCRIBE: u8 = 0x82;
const SUBACK: u8 = 0x90;
const PINGREQ: u8 = 0xc0;
const PINGRESP: u8 = 0xd0;
/// Return code of a subscription that was refused.
const REFUSED: u8 = 0x80;
/// Bytes of a length at most (section 2.2.3).
const LENGTH_BYTES_MAX: usize = 4;

/// One connection with a clean session and no keep-alive.
pub struct Mqtt {
    qos: u8,
    name: String,
    /// The last packet identifier; 0 is none.
    identifier: u16,
}

impl Mqtt {
    /// One that publishes and subscribes with this quality, 0 or 1.
    pub fn new(qos: u8, name: &str) -> Self {
        Self { qos, name: name.to_string(), identifier: 0 }
    }

    fn next_identifier(&mut self) -> [u8; 2] {
        self.identifier = self.identifier.checked_add(1).unwrap_or(1);
        self.identifier.to_be_bytes()
    }

    fn packet(kind: u8, body: &[u8], out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) -> anyhow::Result<()> {
        match kind & 0xf0 {
            CONNACK if body == [0, 0] => heard(Heard::Ready),
            CONNACK => bail!("the broker refuses the connection: {body:?}"),
            SUBACK if body.iter().skip(2).any(|code| *code == REFUSED) => bail!("the broker refuses a subscription"),
            SUBACK => {}
            PINGRESP => heard(Heard::Settled),
            PUBACK => heard(Heard::Acknowledged(1)),
            PUBLISH => {
                let cut = "a cut PUBLISH";
                let length = body.first_chunk().map(|length| usize::from(u16::from_be_bytes(*length))).context(cut)?;
                let mut payload_at = 2 + length;
                if kind & 0b110 != 0 {
                    let identifier = body.get(payload_at..payload_at + 2).context(cut)?;
                    out.extend_from_slice(&[PUBACK, 2, identifier[0], identifier[1]]);
                    payload_at += 2;
                }
                heard(Heard::Event(body.get(payload_at..).context(cut)?));
            }
            other => bail!("the broker sends a packet of kind {other:#x}"),
        }
        Ok(())
    }
}

impl Dialect for Mqtt {
    fn open(&mut self, out: &mut Vec<u8>) {
        let mut body = vec![0, 4, b'M', b'Q', b'T', b'T', 4, 0b10, 0, 0];
        text(&self.name, &mut body);
        packet(CONNECT, &[&body], out);
    }

    fn subscribe(&mut self, topic: &str, out: &mut Vec<u8>) {
        let mut body = self.next_identifier().to_vec();
        text(topic, &mut body);
        packet(SUBSCRIBE, &[&body, &[self.qos]], out);
    }

    fn settle(&mut self, out: &mut Vec<u8>) {
        packet(PINGREQ, &[], out);
    }

    fn publish(&mut self, topic: &str, payload: &[u8], out: &mut Vec<u8>) {
        let length = u16::try_from(topic.len()).expect("names of topics are short").to_be_bytes();
        if self.qos == 0 {
            packet(PUBLISH, &[&length, topic.as_bytes(), payload], out);
        } else {
            let identifier = self.next_identifier();
            packet(PUBLISH | self.qos << 1, &[&length, topic.as_bytes(), &identifier, payload], out);
        }
    }

    fn receive(&mut self, input: &mut [u8], out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) -> anyhow::Result<usize> {
        let mut taken = 0;
        loop {
            let rest = &input[taken..];
            let Some(kind) = rest.first() else { return Ok(taken) };
            let Some((length, head)) = length(&rest[1..])? else { return Ok(taken) };
            let Some(body) = rest.get(1 + head..1 + head + length) else { return Ok(taken) };
            Self::packet(*kind, body, out, heard)?;
            taken += 1 + head + length;
        }
    }
}

fn packet(kind: u8, parts: &[&[u8]], out: &mut Vec<u8>) {
    out.push(kind);
    let mut length: usize = parts.iter().map(|part| part.len()).sum();
    while length > 0x7f {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// The length in front of a body and the bytes that it takes; `None` while there are too few.
fn length(bytes: &[u8]) -> anyhow::Result<Option<(usize, usize)>> {
    let mut length = 0;
    for (at, byte) in bytes.iter().take(LENGTH_BYTES_MAX).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((length, at + 1)));
        }
    }
    if bytes.len() >= LENGTH_BYTES_MAX { bail!("the broker sends a length of more than {LENGTH_BYTES_MAX} bytes") } else { Ok(None) }
}

fn text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&u16::try_from(text.len()).expect("names are short").to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(bytes: &[u8]) -> (Vec<String>, Vec<u8>) {
        let (mut client, mut out, mut told) = (Mqtt::new(1, "c"), Vec::new(), Vec::new());
        let mut kept = Vec::new();
        for byte in bytes {
            kept.push(*byte);
            let taken = client.receive(&mut kept, &mut out, &mut |heard| told.push(format!("{heard:?}"))).unwrap();
            kept.drain(..taken);
        }
        assert!(kept.is_empty());
        (told, out)
    }

    #[test]
    fn packets_are_understood_byte_by_byte() {
        let (told, out) = heard(b"\x20\x02\0\0\x90\x03\0\x01\x01\xd0\0\x40\x02\0\x07\x30\x05\0\x01Axy\x32\x06\0\x01A\0\x09z");
        assert_eq!(told, ["Ready", "Settled", "Acknowledged(1)", "Event([120, 121])", "Event([122])"]);
        assert_eq!(out, [PUBACK, 2, 0, 9], "what comes with QoS 1 is acknowledged");
    }

    #[test]
    fn what_is_sent_is_what_the_standard_says() {
        let mut out = Vec::new();
        let (mut zero, mut one) = (Mqtt::new(0, "c"), Mqtt::new(1, "c"));
        zero.open(&mut out);
        assert_eq!(out, b"\x10\x0d\0\x04MQTT\x04\x02\0\0\0\x01c");
        out.clear();
        one.subscribe("A", &mut out);
        one.publish("A", b"xy", &mut out);
        zero.publish("A", b"xy", &mut out);
        assert_eq!(out, b"\x82\x06\0\x01\0\x01A\x01\x32\x07\0\x01A\0\x02xy\x30\x05\0\x01Axy");
        out.clear();
        zero.publish("A", &[b'x'; 200], &mut out);
        assert_eq!(out[..3], [PUBLISH, 203 & 0x7f | 0x80, 1]);
    }

    #[test]
    fn refusals_and_nonsense_are_told() {
        for bytes in [&b"\x20\x02\0\x05"[..], b"\x90\x03\0\x01\x80", b"\xf0\0", b"\x30\xff\xff\xff\xff\x7f", b"\x30\x01\0"] {
            assert!(Mqtt::new(0, "c").receive(&mut bytes.to_vec(), &mut Vec::new(), &mut |_| {}).is_err(), "{bytes:?}");
        }
    }
}
