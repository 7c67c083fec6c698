//! Connections of the Flink program, which says first what each is for.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::speech::{Frame, Tongue};
use crate::realtime::connection::Connection;

/// Longest wait for a connection: a job of several hundred tasks begins meanwhile.
const ACCEPT_WAIT_MAX: Duration = Duration::from_secs(120);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Length of the frame that comes first.
const FIRST_BYTES: usize = 16;

/// Waits for the next one; gives it with the number that it has said.
///
/// # Errors
/// None comes in time, or one that says something else.
pub fn accept(listener: &TcpListener) -> anyhow::Result<(Connection<Tongue>, u32)> {
    listener.set_nonblocking(true)?;
    let deadline = Instant::now() + ACCEPT_WAIT_MAX;
    let stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        if Instant::now() > deadline {
            bail!("nobody has connected for {} s", ACCEPT_WAIT_MAX.as_secs());
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let number = first(&stream)?;
    Ok((Connection::over(stream, Tongue::Frames)?, number))
}

fn first(mut stream: &TcpStream) -> anyhow::Result<u32> {
    use std::io::Read;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(ACCEPT_WAIT_MAX))?;
    let mut bytes = [0; FIRST_BYTES];
    stream.read_exact(&mut bytes).context("a connection has not said what it is for")?;
    let (length, frame) = bytes.split_at(size_of::<u32>());
    match Frame::read(frame) {
        Some(frame) if length == ((FIRST_BYTES - size_of::<u32>()) as u32).to_le_bytes() => Ok(frame.number),
        _ => bail!("a connection begins with something else than a frame without points"),
    }
}
