//! Tells the collector of spans that have ended: now and then, some at a time.

use std::{io, sync::Arc, sync::atomic::Ordering::Relaxed, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{mpsc, oneshot},
    task::JoinHandle as Task,
    time::{sleep, timeout},
};

use super::{Collector, Ended, Traces, otlp};
use crate::{
    push::response::{ResponseError, ResponseReader},
    seldom::Seldom,
};

/// Spans told in one request.
const BATCH_MAX: usize = 512;
/// Between two looks for ended spans.
const PERIOD: Duration = Duration::from_millis(500);
/// For the collector to be reached, and to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Attempts to tell of the same spans; behind them they are given up.
const ATTEMPTS_MAX: u32 = 4;
/// Behind the first failure; doubled with each further one.
const RETRY_MIN: Duration = Duration::from_secs(1);
/// How long a cloud that stops waits until the last spans are told.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// Why spans were not taken.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Response(#[from] ResponseError),
    #[error("no answer within {PATIENCE:?}")]
    Late,
    #[error("it answered {0}")]
    Status(u16),
}

impl ExportError {
    /// The protocol names the answers behind which the same may be told again; what a broken connection means is not known.
    fn is_passing(&self) -> bool {
        !matches!(self, Self::Status(status) if !matches!(status, 429 | 502..=504))
    }
}

/// The task that tells.
#[derive(Debug)]
pub struct Exporter {
    task: Task<()>,
    stop: oneshot::Sender<()>,
}

impl Exporter {
    /// Begins to tell `collector` of what ends; `instance` is the cloud's name.
    pub fn start(traces: Arc<Traces>, ended: mpsc::Receiver<Ended>, collector: Collector, instance: String) -> Self {
        let (stop, stopped) = oneshot::channel();
        let telling = Telling { traces, ended, collector, instance, failures: Seldom::default() };
        Self { task: tokio::spawn(telling.run(stopped)), stop }
    }

    /// Tells of what has ended until now, as far as there is time.
    pub async fn stop(mut self) {
        // One that has ended hears nothing.
        let _ = self.stop.send(());
        if timeout(FLUSH_MAX, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

struct Telling {
    traces: Arc<Traces>,
    ended: mpsc::Receiver<Ended>,
    collector: Collector,
    instance: String,
    failures: Seldom,
}

impl Telling {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            let is_last = tokio::select! {
                () = sleep(PERIOD) => false,
                _ = &mut stopped => true,
            };
            loop {
                let batch: Vec<Ended> = std::iter::from_fn(|| self.ended.try_recv().ok()).take(BATCH_MAX).collect();
                if batch.is_empty() {
                    break;
                }
                self.tell(&batch, if is_last { 1 } else { ATTEMPTS_MAX }).await;
            }
            if is_last {
                return;
            }
        }
    }

    async fn tell(&self, batch: &[Ended], attempts_max: u32) {
        let body = otlp::body(&self.instance, batch);
        let (spans, counts) = (batch.len() as u64, &self.traces.counts);
        for attempt in 1..=attempts_max {
            let error = match timeout(PATIENCE, self.post(&body)).await.unwrap_or(Err(ExportError::Late)) {
                Ok(()) => {
                    counts.told.fetch_add(spans, Relaxed);
                    return;
                }
                Err(error) => error,
            };
            if let Some(times) = self.failures.due() {
                tracing::warn!(collector = %self.collector, %error, times, "the collector of traces has not taken spans");
            }
            if attempt == attempts_max || !error.is_passing() {
                break;
            }
            sleep(RETRY_MIN * 2u32.pow(attempt - 1)).await;
        }
        counts.failed.fetch_add(spans, Relaxed);
    }

    /// Posts a body on a connection of its own: there is one every now and then.
    async fn post(&self, body: &[u8]) -> Result<(), ExportError> {
        let Collector { host, port, path } = &self.collector;
        let mut stream = TcpStream::connect((host.as_str(), *port)).await?;
        let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {open}{host}{close}:{port}\r\nContent-Type: application/json\r\nUser-Agent: bodkin/{}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            env!("CARGO_PKG_VERSION"),
            body.len(),
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut reader = ResponseReader::default();
        loop {
            if let Some(response) = reader.take()? {
                return if matches!(response.status, 200..300) { Ok(()) } else { Err(ExportError::Status(response.status)) };
            }
            if stream.read_buf(reader.space()).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_collector_refuses_for_good_is_not_told_again() {
        for (status, is_passing) in
            [(400, false), (401, false), (404, false), (429, true), (500, false), (502, true), (503, true), (504, true)]
        {
            assert_eq!(ExportError::Status(status).is_passing(), is_passing, "{status}");
        }
        assert!(ExportError::Late.is_passing() && ExportError::Io(io::ErrorKind::ConnectionRefused.into()).is_passing());
    }
}
