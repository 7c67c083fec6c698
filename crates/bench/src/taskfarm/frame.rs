//! What the channel reads of a frame of IEEE 802.15.4: whom it is for, and what of TCP is in it.
//!
//! Stations write frames of one form: data, short addresses, one network (PAN), and in them IPv6 by RFC 6282 or fragments of it by RFC 4944.

/// Octets of the header: frame control 2, sequence 1, network 2, to 2, from 2.
const HEAD: usize = 9;
/// The check sequence at a frame's end.
const CHECK: usize = 2;
/// Frame control: an acknowledgement is wanted.
const ACK_WANTED: u8 = 0x20;
/// Frame control, second octet: a destination with a short address.
const SHORT_TO: u8 = 0x08;
const TO_MODE: u8 = 0x0c;
const EVERYBODY: u16 = 0xffff;
/// Octets of the header of a first fragment.
const FIRST_FRAGMENT: usize = 4;

/// Whom a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// The station with this short address, which acknowledges it.
    One(u16),
    /// All who hear it.
    All,
}

/// Whom this frame is for; `None`: it is none that the channel knows.
pub fn to(frame: &[u8]) -> Option<To> {
    if frame.len() < HEAD + CHECK || frame[1] & TO_MODE != SHORT_TO {
        return None;
    }
    match (u16::from_le_bytes([frame[5], frame[6]]), frame[0] & ACK_WANTED != 0) {
        (EVERYBODY, _) | (_, false) => Some(To::All),
        (address, true) => Some(To::One(address)),
    }
}

/// A TCP segment that begins in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Whether it carries data.
    pub has_data: bool,
}

/// The segment that begins in this frame; `None`: it goes on with one, or has none.
pub fn segment(frame: &[u8]) -> Option<Segment> {
    let packet = frame.get(HEAD..frame.len().checked_sub(CHECK)?)?;
    match packet.first()? >> 5 {
        0b011 => Some(Segment { has_data: packet.len() > headers(packet)? }),
        // Only what does not fit into one frame is cut, and a header alone does.
        0b110 if packet.len() > FIRST_FRAGMENT => Some(Segment { has_data: true }),
        _ => None,
    }
}

/// Octets of the compressed header of IPv6 (RFC 6282, 3.1.1) with unicast addresses, and of TCP's behind it.
fn headers(packet: &[u8]) -> Option<usize> {
    const TRAFFIC_CLASS: [usize; 4] = [4, 3, 1, 0];
    const ADDRESS: [usize; 4] = [16, 8, 2, 0];
    let (first, second) = (*packet.first()?, *packet.get(1)?);
    let is_inline = |bits: u8, of: u8| usize::from(of & bits == 0);
    let place = |of: u8, shift: u8| usize::from(of >> shift & 0b11);
    let compressed = 2
        + usize::from(second >> 7)
        + TRAFFIC_CLASS[place(first, 3)]
        + is_inline(0b100, first)
        + is_inline(0b011, first)
        + ADDRESS[place(second, 4)]
        + ADDRESS[place(second, 0)];
    Some(compressed + usize::from(packet.get(compressed + 12)? >> 4) * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 2 to 1, IPv6 compressed as far as it goes with short addresses, TCP without options, and this behind it.
    fn frame(data: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x61, 0x88, 7, 0xcd, 0xab, 1, 0, 2, 0];
        frame.extend([0b0111_1010, 0b0011_0011, 6]);
        let mut tcp = [0; 20];
        tcp[12] = 5 << 4;
        frame.extend(tcp);
        frame.extend(data);
        frame.extend([0, 0]);
        frame
    }

    #[test]
    fn a_frame_tells_whom_it_is_for() {
        assert_eq!(to(&frame(b"")), Some(To::One(1)));
        let mut unacknowledged = frame(b"");
        unacknowledged[0] = 0x41;
        assert_eq!(to(&unacknowledged), Some(To::All));
        let mut broadcast = frame(b"");
        broadcast[5..7].fill(0xff);
        assert_eq!(to(&broadcast), Some(To::All));
        assert_eq!((to(&frame(b"")[..10]), to(&[0; 20])), (None, None));
    }

    #[test]
    fn data_is_told_from_headers() {
        assert_eq!(segment(&frame(b"")), Some(Segment { has_data: false }));
        assert_eq!(segment(&frame(b"1")), Some(Segment { has_data: true }));
        let mut first = frame(b"0123456789");
        first.splice(HEAD..HEAD, [0b1100_0100, 0xc8, 0, 1]);
        assert_eq!(segment(&first), Some(Segment { has_data: true }));
        first[HEAD] = 0b1110_0100;
        assert_eq!(segment(&first), None);
        for cut in 0..frame(b"").len() {
            let _ = segment(&frame(b"")[..cut]);
        }
    }
}
