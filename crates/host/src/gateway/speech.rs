//! What a session says to the other gateway: one task, so that messages have their order and their numbers.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bodkin_relay::tunnel::{Frame, Reason};
use bodkin_trust::RelayMessage;
use tokio::sync::mpsc;

use super::{
    secrecy::{Mouth, seal},
    tunnel::Tunnel,
};
use crate::relay::{Message, RelayError};

/// Pieces that wait to be said, of all connections of a session; more wait where they come from.
pub(super) const SAID_MAX: usize = 4;
/// Words of the session itself that wait; a peer that causes more without reading them is given up.
pub(super) const WORDS_MAX: usize = 256;
/// A session that nobody uses is made known to the other gateway behind so long: whoever asks for many at once is answered before that work is done.
const UNUSED_OPENING: Duration = Duration::from_secs(5);
/// Pause before a message is sent again that has not gone: the connection to the relay is being made meanwhile.
const AGAIN: Duration = Duration::from_millis(200);

/// What is to be said.
#[derive(Debug)]
pub(super) enum Said {
    /// By number.
    Frame(Frame),
    /// As it is.
    Plain(Vec<u8>),
    /// Nothing behind it.
    Last(Option<Frame>),
}

/// Where it comes from.
pub(super) struct Speech {
    pub(super) said: mpsc::Receiver<Said>,
    pub(super) words: mpsc::Receiver<Frame>,
}

impl Speech {
    /// Says everything, until the last word. `first` goes before it as it is.
    pub(super) async fn speak(mut self, tunnel: Arc<Tunnel>, mut mouth: Mouth, first: Option<RelayMessage>) {
        let spoken = async {
            let mut held = None;
            if let Some(first) = first {
                held = self.first_use(&tunnel).await;
                if matches!(held, Some(Said::Last(None))) {
                    return Ok(());
                }
                tunnel.asks();
                let sealed = seal(&tunnel.gateway, &tunnel.peer_keys, first).await?;
                send(&tunnel, || Message::Text(sealed.clone())).await?;
            }
            loop {
                let said = match held.take() {
                    Some(said) => said,
                    None => self.next().await,
                };
                match said {
                    Said::Frame(frame) => say(&tunnel, &mut mouth, frame).await?,
                    Said::Plain(bytes) => {
                        let count = bytes.len();
                        let sealed = seal(&tunnel.gateway, &tunnel.peer_keys, RelayMessage::Raw(bytes)).await?;
                        send(&tunnel, || Message::Text(sealed.clone())).await?;
                        tunnel.count_to_peer(count);
                    }
                    Said::Last(frame) => {
                        if let Some(frame) = frame {
                            say(&tunnel, &mut mouth, frame).await?;
                        }
                        return Ok(());
                    }
                }
            }
        };
        let spoken: Result<(), Reason> = spoken.await;
        if let Err(reason) = spoken {
            tunnel.close(reason);
        }
    }

    /// What is to be said next: words of the session itself first.
    async fn next(&mut self) -> Said {
        tokio::select! {
            biased;
            Some(frame) = self.words.recv() => Said::Frame(frame),
            said = self.said.recv() => said.unwrap_or(Said::Last(None)),
        }
    }

    /// Waits until the session is used, or [`UNUSED_OPENING`]; gives what is to be said, if that is its first use.
    async fn first_use(&mut self, tunnel: &Tunnel) -> Option<Said> {
        tokio::select! {
            biased;
            said = self.next() => Some(said),
            () = tunnel.used.notified() => None,
            () = tokio::time::sleep(UNUSED_OPENING) => None,
        }
    }
}

/// Says a frame, if the session has any.
async fn say(tunnel: &Tunnel, mouth: &mut Mouth, frame: Frame) -> Result<(), Reason> {
    let Mouth::Numbered { key, next } = mouth else { return Ok(()) };
    // The same number gives the same message, in either form: whoever hears it twice passes the second one over.
    let sealed = || {
        if tunnel.speaks_in_bytes() {
            Message::Bytes(key.seal_bytes(*next, frame.bytes_max(), |out| frame.write_into(out)))
        } else {
            Message::Text(key.seal(*next, &frame.write()))
        }
    };
    send(tunnel, sealed).await?;
    *next += 1;
    if let Frame::Bytes(_, piece) = frame {
        tunnel.count_to_peer(piece.len());
    }
    Ok(())
}

/// Sends a message; again, as long as it cannot go because there is no connection to the relay. Whoever closes the session ends that.
async fn send(tunnel: &Tunnel, message: impl Fn() -> Message) -> Result<(), Reason> {
    loop {
        let sent = match message() {
            Message::Text(text) => tunnel.relay.send(&tunnel.queues.out, text).await,
            Message::Bytes(bytes) => tunnel.relay.send_bytes(&tunnel.queues.out, bytes).await,
        };
        match sent {
            Ok(()) => {
                tunnel.session().said(tunnel.gateway.time());
                return Ok(());
            }
            Err(RelayError::Down { .. } | RelayError::Lost { .. }) if tunnel.is_numbered() => {
                tunnel.sent_again.fetch_add(1, Relaxed);
                tokio::time::sleep(AGAIN).await;
            }
            Err(error) => return Err(Reason::Relay(error.to_string())),
        }
    }
}
