//! A connection that hears what changes, until either side ends it.

use std::{io, time::SystemTime};

use tokio::time::{Instant, sleep_until};

use super::{PortContext, refused, send};
use crate::{
    answer::{self, DateText, Recipient},
    async_channel::AsyncChannel,
    dashboard::sign_in::Session,
    live::{Live, Parts, Reader, question},
    monitor::Monitor,
    request::Request,
    security::{self, Peer},
    stopping::Serving,
};

/// Bytes that a listener may send at a time; it has nothing to say, and they are dropped.
const DROPPED_BYTES: usize = 512;
/// Parts that are shorter together go out in one write; a longer one is sent from where all listeners' is, and not copied.
const GATHERED_BYTES_MAX: usize = 16 << 10;

/// Tells `parts` until the listener goes, is too slow (`send_timeout`), is believed no more, the cloud stops, or this node leads no more.
pub(super) async fn tell(
    channel: &mut AsyncChannel,
    context: &PortContext,
    (monitor, parts, reader): (&Monitor, Parts, &Reader),
    (request, page): (&Request, Option<&str>),
    (peer, session): (&Peer, Option<&Session>),
    serving: &mut Serving,
) -> io::Result<()> {
    let mut out = Vec::new();
    let recipient = Recipient { reader: page, is_secure: channel.is_tls(), ..Recipient::CLOSED };
    answer::push_stream_head(&mut out, DateText::default().at(SystemTime::now()), recipient);
    let board = &monitor.live;
    let mut live = Live::new(parts, board.second());
    let mut look = Instant::now();
    loop {
        tokio::select! {
            biased;
            error = refused(context, peer) => {
                security::tell_refused(peer, &error);
                return Ok(());
            }
            () = serving.over() => return Ok(()),
            () = expired(session) => return Ok(()),
            readable = channel.readable() => {
                readable?;
                match channel.read(&mut [0; DROPPED_BYTES]) {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            () = sleep_until(look) => {}
        }
        let is_signed_in =
            || session.is_none_or(|session| monitor.sign_in.as_ref().is_some_and(|all| all.lasts(session, std::time::Instant::now())));
        if !context.gate.leads() || !is_signed_in() {
            return Ok(());
        }
        let second = board.second();
        for look in live.due(second) {
            let question = question(look.at, request);
            let line = board.line(reader, look, monitor.answer(&question, peer)).await;
            if !live.is_new(look.at, &line, second) {
                continue;
            }
            if out.len() + line.bytes.len() <= GATHERED_BYTES_MAX {
                out.extend_from_slice(&line.bytes);
                continue;
            }
            send(channel, &out, &context.limits).await?;
            out.clear();
            send(channel, &line.bytes, &context.limits).await?;
        }
        out.extend_from_slice(live.sign_of_life(second));
        if !out.is_empty() {
            send(channel, &out, &context.limits).await?;
            out.clear();
        }
        // Who could not be told in time is not told faster afterwards.
        look = board.begin_of(board.second() + 1);
    }
}

/// Waits until a browser's session expires; for ever where a certificate was shown.
async fn expired(session: Option<&Session>) {
    match session {
        Some(session) => session.expired().await,
        None => std::future::pending().await,
    }
}
