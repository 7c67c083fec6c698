//! Ports for a cloud that has to come back where it was.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// The standard ports.
const STANDARD: [u16; 6] = [5570, 8440, 8441, 8443, 8445, 8455];
/// Offsets that keep every port below those the kernel chooses from (32768 on).
const OFFSETS: std::ops::Range<u16> = 12_000..24_000;
/// Farther apart than the standard ports are.
const STEP: u16 = 20;

/// An offset at which every standard port was free just now, another one at each call; runs of the tests at the same time begin at
/// different places.
pub fn free_offset() -> u16 {
    static CALLS: AtomicU16 = AtomicU16::new(0);
    let places = (OFFSETS.end - OFFSETS.start) / STEP;
    let begin = (std::process::id() % u32::from(places)) as u16;
    for _ in 0..places {
        let place = (begin + CALLS.fetch_add(1, Relaxed)) % places;
        let offset = OFFSETS.start + place * STEP;
        if STANDARD.iter().all(|port| TcpListener::bind(("127.0.0.1", port + offset)).is_ok()) {
            return offset;
        }
    }
    panic!("no offset of {OFFSETS:?} has all standard ports free");
}
