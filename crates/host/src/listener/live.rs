//! A connection that hears what changes, until either side ends it.

use std::{
    io,
    time::{Duration, SystemTime},
};

use tokio::time::{MissedTickBehavior, interval};

use super::{PortContext, refused, send};
use crate::{
    answer::{self, DateText, Recipient},
    async_channel::AsyncChannel,
    live::{Live, Parts},
    monitor::Monitor,
    request::Request,
    security::{self, Peer},
    stopping::Serving,
};

/// Between two looks at what is due.
const SECOND: Duration = Duration::from_secs(1);
/// Bytes that a listener may send at a time; it has nothing to say, and they are dropped.
const DROPPED_BYTES: usize = 512;

/// Tells `parts` until the listener goes, is too slow (`send_timeout`), is believed no more, the cloud stops, or this node leads no more.
pub(super) async fn tell(
    channel: &mut AsyncChannel,
    context: &PortContext,
    (monitor, parts): (&Monitor, Parts),
    (request, page): (&Request, Option<&str>),
    peer: &Peer,
    serving: &mut Serving,
) -> io::Result<()> {
    let mut out = Vec::new();
    let recipient = Recipient { reader: page, is_secure: channel.is_tls(), ..Recipient::CLOSED };
    answer::push_stream_head(&mut out, DateText::default().at(SystemTime::now()), recipient);
    let mut live = Live::new(parts.iter());
    let mut seconds = interval(SECOND);
    // Who could not be told in time is not told faster afterwards.
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            error = refused(context, peer) => {
                security::tell_refused(peer, &error);
                return Ok(());
            }
            () = serving.over() => return Ok(()),
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
            _ = seconds.tick() => {}
        }
        if !context.gate.leads() {
            return Ok(());
        }
        for at in live.due() {
            let answer = monitor.answer(&live.question(at, request)).await;
            live.tell(at, &answer, &mut out);
        }
        live.end_second(&mut out);
        if !out.is_empty() {
            send(channel, &out, &context.limits).await?;
            out.clear();
        }
    }
}
