//! Ports that are known before anybody listens on them, and after: held as `bodkin bench` holds them.

pub use bodkin_bench::ports::HeldOffset;

/// An offset at which every standard port is held until it is dropped.
#[track_caller]
pub fn held_offset() -> HeldOffset {
    HeldOffset::find().expect("an offset is free")
}

/// A port of 127.0.0.1 on which nobody listens, and nobody else will.
#[track_caller]
pub fn held_port() -> u16 {
    bodkin_bench::ports::held_port().expect("a port is free")
}
