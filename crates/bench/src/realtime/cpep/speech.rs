//! How events go in and results come out: over ZMTP of Bodkin's, and as bare frames of the Flink program's, which connects to both sides.
//!
//! A frame, numbers little-endian: length of what follows (4 bytes), number of the supplier or consumer (4), creation in ns of CLOCK_MONOTONIC (8), points. What a connection of Flink's sends
//! first is a frame without points: which supplier it wants, or which consumer's results follow.

use anyhow::ensure;
use bodkin_broker::wire::{EventHeader, Flags, HEADER_BYTES};
use bodkin_broker::{Epoch, Incarnation, PublisherId, Sequence};

use crate::realtime::dialect::{Dialect, Heard};
use crate::realtime::zmtp::Zmtp;

/// Longest frame, in bytes.
const FRAME_BYTES_MAX: usize = 1 << 21;
const LENGTH_BYTES: usize = 4;
const HEAD_BYTES: usize = 12;

/// A frame that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Supplier or consumer.
    pub number: u32,
    /// When its newest input was pushed.
    pub created_ns: u64,
    /// How many bytes of points there are.
    pub bytes: usize,
}

impl Frame {
    /// Appends a frame with these points.
    pub fn write(number: u32, created_ns: u64, points: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&((HEAD_BYTES + points.len()) as u32).to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&created_ns.to_le_bytes());
        out.extend_from_slice(points);
    }

    /// Reads what is behind a frame's length; none when these bytes are none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk()?;
        let (created, points) = rest.split_first_chunk()?;
        Some(Self { number: u32::from_le_bytes(*number), created_ns: u64::from_le_bytes(*created), bytes: points.len() })
    }
}

/// An event on its way in.
#[derive(Debug, Clone, Copy)]
pub struct Pushed<'p> {
    /// Place of its supplier.
    pub supplier: usize,
    /// The supplier's topic.
    pub topic: &'p str,
    /// What it carries, in the form in which it travels.
    pub points: &'p [u8],
    /// From 1 on.
    pub sequence: u64,
    /// When it is pushed, on CLOCK_MONOTONIC.
    pub created_ns: u64,
    /// UTC at the zero of that clock.
    pub utc_at_zero_ns: u64,
}

/// One end of a connection.
pub enum Tongue {
    /// A PUB or a SUB.
    Zmtp(Box<Zmtp>),
    /// Frames, which nothing is said in front of.
    Frames,
}

impl Tongue {
    /// Appends an event.
    pub fn push(&mut self, pushed: Pushed<'_>, out: &mut Vec<u8>) {
        let Pushed { supplier, topic, points, sequence, created_ns, utc_at_zero_ns } = pushed;
        match self {
            Self::Frames => Frame::write(supplier as u32, created_ns, points, out),
            Self::Zmtp(zmtp) => {
                let mut header = Vec::with_capacity(HEADER_BYTES);
                let (flags, created_utc_ns) = (Flags::default(), utc_at_zero_ns + created_ns);
                let (publisher, incarnation, sequence) = (PublisherId(0), Incarnation(1), Sequence(sequence));
                EventHeader { flags, publisher, incarnation, sequence, created_utc_ns, epoch: Epoch::NONE }.encode(&mut header);
                zmtp.message(&[topic.as_bytes(), points, &header], out);
            }
        }
    }
}

impl Dialect for Tongue {
    fn open(&mut self, out: &mut Vec<u8>) {
        if let Self::Zmtp(zmtp) = self {
            zmtp.open(out);
        }
    }

    fn subscribe(&mut self, topic: &str, out: &mut Vec<u8>) {
        if let Self::Zmtp(zmtp) = self {
            zmtp.subscribe(topic, out);
        }
    }

    fn settle(&mut self, out: &mut Vec<u8>) {
        if let Self::Zmtp(zmtp) = self {
            zmtp.settle(out);
        }
    }

    fn publish(&mut self, topic: &str, payload: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Zmtp(zmtp) => zmtp.publish(topic, payload, out),
            Self::Frames => out.extend_from_slice(payload),
        }
    }

    fn receive(&mut self, input: &mut [u8], out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) -> anyhow::Result<usize> {
        match self {
            Self::Zmtp(zmtp) => zmtp.receive(input, out, heard),
            Self::Frames => receive_frames(input, heard),
        }
    }
}

/// Tells every whole frame, without its length; gives how many bytes they were.
fn receive_frames(input: &[u8], heard: &mut dyn FnMut(Heard<'_>)) -> anyhow::Result<usize> {
    let mut taken = 0;
    while let Some((length, rest)) = input[taken..].split_first_chunk::<LENGTH_BYTES>() {
        let length = u32::from_le_bytes(*length) as usize;
        ensure!((HEAD_BYTES..=FRAME_BYTES_MAX).contains(&length), "a frame has {HEAD_BYTES} to {FRAME_BYTES_MAX} bytes, and {length} came");
        let Some(frame) = rest.get(..length) else { break };
        heard(Heard::Event(frame));
        taken += LENGTH_BYTES + length;
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_however_the_stream_is_cut() {
        let mut stream = Vec::new();
        Frame::write(7, 1 << 40, &[1, 2, 3], &mut stream);
        Frame::write(8, 5, &[], &mut stream);
        for cut in 0..stream.len() {
            let (mut found, mut kept) = (Vec::new(), Vec::new());
            for part in [&stream[..cut], &stream[cut..]] {
                kept.extend_from_slice(part);
                let taken = receive_frames(&kept, &mut |heard| match heard {
                    Heard::Event(bytes) => found.push(Frame::read(bytes).expect("it is one")),
                    other => panic!("{other:?}"),
                });
                kept.drain(..taken.expect("they are frames"));
            }
            let expected = [Frame { number: 7, created_ns: 1 << 40, bytes: 3 }, Frame { number: 8, created_ns: 5, bytes: 0 }];
            assert_eq!((&found[..], kept.len()), (&expected[..], 0), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        assert!(receive_frames(&3u32.to_le_bytes(), &mut |_| {}).is_err());
        assert_eq!(Frame::read(&[0; 11]), None);
    }
}
