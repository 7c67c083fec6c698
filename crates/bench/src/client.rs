//! One kept connection that blocks: set-up, single questions, and the sequential experiments.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;

use crate::answer::AnswerReader;
use crate::endpoint::Endpoint;
use crate::wire::Wire;

/// Longest wait for a connection or an answer of a single request.
pub const ANSWER_WAIT_MAX: Duration = Duration::from_secs(60);
/// Size of one read.
pub const READ_BYTES: usize = 64 * 1024;

/// A connection that is opened again when the peer closed it after an answer.
pub struct Client {
    endpoint: Endpoint,
    stream: Option<Wire<TcpStream>>,
    answer: AnswerReader,
    piece: Box<[u8]>,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// The endpoint does not accept.
    pub fn connect(endpoint: &Endpoint) -> anyhow::Result<Self> {
        let mut client = Self {
            endpoint: endpoint.clone(),
            stream: None,
            answer: AnswerReader::default(),
            piece: vec![0; READ_BYTES].into_boxed_slice(),
        };
        client.open()?;
        Ok(client)
    }

    fn open(&mut self) -> anyhow::Result<()> {
        let stream = TcpStream::connect_timeout(&self.endpoint.address, ANSWER_WAIT_MAX)
            .with_context(|| format!("no connection to {}", self.endpoint.authority))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
        stream.set_write_timeout(Some(ANSWER_WAIT_MAX))?;
        self.stream = Some(Wire::new(stream, &self.endpoint.caller, self.endpoint.address.ip()));
        Ok(())
    }

    /// Sends one whole request and waits for its whole answer.
    ///
    /// # Errors
    /// The connection broke, the answer is no HTTP, or none came within [`ANSWER_WAIT_MAX`].
    pub fn exchange(&mut self, request: &[u8]) -> anyhow::Result<&AnswerReader> {
        self.answer.reset();
        if self.stream.is_none() {
            self.open()?;
        }
        let stream = self.stream.as_mut().expect("just opened");
        stream.write_all(request).with_context(|| format!("{} took no request", self.endpoint.authority))?;
        while !self.answer.is_complete() {
            let length = stream.read(&mut self.piece).with_context(|| format!("no answer from {}", self.endpoint.authority))?;
            if length == 0 && !self.answer.close() {
                self.stream = None;
                bail!("{} closed the connection before its answer", self.endpoint.authority);
            }
            self.answer.take(&self.piece[..length])?;
        }
        if self.answer.closes() {
            self.stream = None;
        }
        Ok(&self.answer)
    }

    /// Sends one request and reads the JSON of its answer, which must have the status `expected`.
    ///
    /// # Errors
    /// As [`Client::exchange`]; another status; another JSON.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &[u8], expected: u16) -> anyhow::Result<T> {
        let authority = self.endpoint.authority.clone();
        let answer = self.exchange(request)?;
        if answer.status() != expected {
            bail!("{authority} answered {} instead of {expected}: {}", answer.status(), String::from_utf8_lossy(answer.body()));
        }
        serde_json::from_slice(answer.body()).with_context(|| format!("{authority} answered an unknown JSON form"))
    }
}
