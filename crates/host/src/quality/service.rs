//! Asking a service itself: requests of HTTP without a body, one after the other on a kept connection, as a consumer's are. Any answer of HTTP is one:
//! how long a service takes to refuse is how long it takes.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_arrowhead::orchestrator::ServiceProbe;
use tokio::time::timeout;

use super::Measurement;
use crate::{
    async_channel::{AsyncChannel, Socket},
    channel::Channel,
    destination::{DestinationError, Destinations},
    push::response::{ResponseError, ResponseReader},
    security::{Security, SubscriberError},
};

/// Requests of a measurement, one after the other.
const ATTEMPTS: usize = 10;
/// Between two of them.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(10);
/// Bytes of answers that are read at once. How many are read of one in all the reader of answers limits.
const PIECE_BYTES: usize = 4 * 1024;

/// What services are asked with.
#[derive(Clone)]
pub struct Asking {
    /// Longest time of a connection with its handshake, and of an answer.
    pub patience: Duration,
    /// Whom no attempt is made at.
    pub destinations: Destinations,
    /// What HTTPS is spoken with, as the Orchestrator; none in insecure mode.
    pub security: Option<Arc<Security>>,
}

/// Why an attempt was lost.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("{0}")]
    Destination(#[from] DestinationError),
    #[error("{0}")]
    Handshake(#[from] SubscriberError),
    #[error("it speaks HTTPS, which insecure mode does not")]
    Insecure,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Answer(#[from] ResponseError),
    #[error("no connection within {0:?}")]
    Unreached(Duration),
    #[error("no answer within {0:?}")]
    Late(Duration),
}

/// Asks some times. Who is not reached is not tried again in the same measurement: what is left of it is lost. Our own listeners answer, and are not asked.
pub async fn measure(probe: ServiceProbe, asking: Asking) -> (ServiceProbe, Measurement) {
    let request = request(&probe);
    let mut measurement = Measurement::default();
    let mut kept: Option<Connection> = None;
    while measurement.attempts.len() < ATTEMPTS {
        if !measurement.attempts.is_empty() {
            tokio::time::sleep(ATTEMPT_PAUSE).await;
        }
        let (asked, is_kept) = match kept.take() {
            Some(connection) => (ask(connection, &request, asking.patience).await, true),
            None => match asking.connect(&probe).await {
                Ok(connection) => (ask(connection, &request, asking.patience).await, false),
                Err(Lost::Destination(DestinationError::Own(_))) => {
                    measurement.attempts = vec![Some(Duration::ZERO); ATTEMPTS];
                    break;
                }
                Err(lost) => {
                    measurement.trouble = Some(lost.to_string());
                    measurement.attempts.resize(ATTEMPTS, None);
                    break;
                }
            },
        };
        match asked {
            Ok((took, connection)) => {
                measurement.attempts.push(Some(took));
                kept = connection;
            }
            // A server may end a connection that it has said to keep; the same attempt is made on a new one.
            Err(Lost::Io(_)) if is_kept => {}
            Err(lost) => {
                measurement.trouble = Some(lost.to_string());
                measurement.attempts.push(None);
            }
        }
    }
    (probe, measurement)
}

fn request(probe: &ServiceProbe) -> Vec<u8> {
    let (method, path, address, port) = (probe.method.as_str(), &probe.path, probe.address.as_str(), probe.port);
    let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    format!("{method} {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: bodkin-qos\r\nAccept: */*\r\n\r\n").into_bytes()
}

/// A connection on which no answer is waited for.
struct Connection {
    channel: AsyncChannel,
    answers: ResponseReader,
}

impl Asking {
    async fn connect(&self, probe: &ServiceProbe) -> Result<Connection, Lost> {
        timeout(self.patience, self.connect_patiently(probe)).await.map_err(|_| Lost::Unreached(self.patience))?
    }

    async fn connect_patiently(&self, probe: &ServiceProbe) -> Result<Connection, Lost> {
        let address = probe.address.as_str();
        let stream = self.destinations.connect(address, probe.port, self.patience).await?;
        stream.set_nodelay(true)?;
        let channel = if probe.is_secure {
            let security = self.security.as_ref().ok_or(Lost::Insecure)?;
            security.ask_provider(stream, address, &probe.provider).await?
        } else {
            Channel::plain(Socket(stream))
        };
        Ok(Connection { channel, answers: ResponseReader::default() })
    }
}

/// Sends a request and reads the answer; gives how long both took, and the connection where it can be used again.
async fn ask(mut connection: Connection, request: &[u8], patience: Duration) -> Result<(Duration, Option<Connection>), Lost> {
    let begun = Instant::now();
    let asked = timeout(patience, async {
        connection.channel.write_all(request).await?;
        read_answer(&mut connection).await
    });
    let keeps_alive = asked.await.map_err(|_| Lost::Late(patience))??;
    Ok((begun.elapsed(), (keeps_alive && connection.answers.is_empty()).then_some(connection)))
}

async fn read_answer(connection: &mut Connection) -> Result<bool, Lost> {
    let Connection { channel, answers } = connection;
    loop {
        if let Some(response) = answers.take()? {
            return Ok(response.keeps_alive);
        }
        channel.readable().await?;
        let mut piece = [0; PIECE_BYTES];
        match channel.read(&mut piece) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(bytes) => answers.space().extend_from_slice(&piece[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;
