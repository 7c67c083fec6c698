//! A station of a cell: a process of the C library's use cases, built for an emulated radio (`zmtp-c/examples/radio/station_radio.c`, which has the messages).
//!
//! It runs only between two messages, so that a cell's time is the channel's and not the machine's.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::radio::FRAME_OCTETS_MAX;

/// Kind, microseconds, size.
const HEAD: usize = 11;
/// How long a station may run between two messages, of real time.
const RUN_MAX: Duration = Duration::from_secs(60);

/// What a station does until it is told more.
#[derive(Debug, PartialEq, Eq)]
pub enum Does {
    /// It waits for a frame, or until then.
    Wait { until_us: u64 },
    /// It sends a frame, and waits until its radio is free.
    Send { frame: Vec<u8> },
    /// It computes for so long, and hears nothing.
    Compute { us: u64 },
    /// It has ended.
    End,
}

/// What a station says at its end.
#[derive(Debug, Clone, Deserialize)]
pub struct Said {
    /// Until all connections were ready.
    pub connect_us: u64,
    /// Until all results were there.
    pub work_us: u64,
    /// Until all connections were over.
    pub close_us: u64,
    /// Primes, or words, that were counted.
    #[serde(alias = "primes", alias = "words")]
    pub counted: u64,
    /// Messages heard.
    pub messages: u64,
}

/// The process; killed when dropped.
pub struct Station {
    child: Child,
    channel: UnixStream,
}

impl Station {
    /// Starts one with this short address.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(program: &Path, arguments: &[String], address: u16, seed: u64) -> anyhow::Result<Self> {
        let (channel, theirs) = UnixStream::pair()?;
        channel.set_read_timeout(Some(RUN_MAX))?;
        let mut command = Command::new(program);
        command.args(arguments).env("STATION_NUMBER", address.to_string()).env("STATION_SEED", (seed as u32).to_string());
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, channel })
    }

    /// Waits until the station says what it does.
    ///
    /// # Errors
    /// It runs for too long, or says something else.
    pub fn does(&mut self) -> anyhow::Result<Does> {
        let mut head = [0; HEAD];
        match self.channel.read_exact(&mut head) {
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => return Ok(Does::End),
            read => read.context("a station does not say what it does")?,
        }
        let us = u64::from_be_bytes(std::array::from_fn(|at| head[1 + at]));
        let size = usize::from(u16::from_be_bytes([head[9], head[10]]));
        match (head[0], size) {
            (b'w', 0) => Ok(Does::Wait { until_us: us }),
            (b'c', 0) => Ok(Does::Compute { us }),
            (b's', 1..=FRAME_OCTETS_MAX) => {
                let mut frame = vec![0; size];
                self.channel.read_exact(&mut frame).context("a station sends half a frame")?;
                Ok(Does::Send { frame })
            }
            (kind, size) => bail!("a station says `{}` with {size} octets", char::from(kind)),
        }
    }

    /// Lets it go on, with a frame that has come or without.
    ///
    /// # Errors
    /// It has ended.
    pub fn go_on(&mut self, now_us: u64, frame: Option<&[u8]>) -> anyhow::Result<()> {
        let octets = frame.unwrap_or_default();
        let mut message = Vec::with_capacity(HEAD + FRAME_OCTETS_MAX);
        message.push(if frame.is_some() { b'f' } else { b'g' });
        message.extend(now_us.to_be_bytes());
        message.extend(u16::try_from(octets.len())?.to_be_bytes());
        message.extend(octets);
        self.channel.write_all(&message).context("a station has ended amid a run")
    }

    /// What an ended station has said.
    ///
    /// # Errors
    /// It has failed, or said something else.
    pub fn said(&mut self) -> anyhow::Result<Said> {
        let status = self.child.wait()?;
        let mut text = String::new();
        self.child.stdout.take().context("a station is asked once")?.read_to_string(&mut text)?;
        if !status.success() {
            bail!("a station failed ({status}) and said: {text}");
        }
        serde_json::from_str(&text).with_context(|| format!("a station said: {text}"))
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
