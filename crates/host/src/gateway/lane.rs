//! A connection of a tunnel: its socket's bytes, both ways at once, each way with its own end.

use std::{cell::RefCell, collections::VecDeque, sync::Arc, time::Duration};

use bodkin_relay::tunnel::{Connection, Frame, PIECE_BYTES_MAX, WholeRequests};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};

use super::{ends::End, speech::Said, tunnel::Tunnel};
use crate::relay::flow::Flow;

/// Pieces that wait to be written: of a session that is numbered as many as there is credit for, the shortest there are.
pub(super) const PIECES_MAX: usize = 8_400;
/// The same without numbers: the relay's queue holds up who sends more.
pub(super) const PLAIN_PIECES_MAX: usize = 4;

thread_local! {
    /// Into which a connection is read.
    static PIECE: RefCell<Box<[u8]>> = RefCell::new(vec![0; PIECE_BYTES_MAX].into_boxed_slice());
}

/// What comes from the other gateway for a connection.
#[derive(Debug)]
pub(super) enum Inbound {
    /// To be written.
    Bytes(Vec<u8>),
    /// Nothing more is.
    End,
    /// The other end broke.
    Reset,
}

/// A connection as the session's task has it.
pub(super) struct LaneEnd {
    pub(super) inbound: mpsc::Sender<Inbound>,
    /// Rung when more may be sent, and when the other end broke.
    pub(super) bell: Arc<Notify>,
}

/// A connection as its own task has it.
pub(super) struct Lane {
    pub(super) number: Connection,
    pub(super) inbound: mpsc::Receiver<Inbound>,
    pub(super) bell: Arc<Notify>,
}

/// How a connection has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LaneOver {
    /// Both directions have ended, or the session has.
    Ended,
    /// The other end broke.
    Reset,
    /// This end did.
    Broken(String),
}

impl Lane {
    /// Carries bytes until the connection is over.
    pub(super) async fn carry(mut self, tunnel: &Tunnel, end: End) -> LaneOver {
        let End { channel, mut refused } = end;
        let mut flow = Flow::new(channel);
        let over = match self.converse(tunnel, &mut flow, &mut refused).await {
            Ok(over) => over,
            Err(error) => LaneOver::Broken(error.to_string()),
        };
        if over == LaneOver::Ended {
            flow.close().await;
        }
        over
    }

    async fn converse(
        &mut self,
        tunnel: &Tunnel,
        flow: &mut Flow,
        refused: &mut (impl Future<Output = String> + Unpin),
    ) -> std::io::Result<LaneOver> {
        let mut state = Progress { whole: tunnel.keeps_requests_whole().then(WholeRequests::default), ..Progress::default() };
        loop {
            flow.write()?;
            if flow.is_written() {
                if state.unwritten > 0 {
                    let told = tunnel.session().taken(self.number, std::mem::take(&mut state.unwritten));
                    state.outgoing.extend(told.map(Said::Frame));
                    // Thousands of connections wait for their next piece.
                    flow.keep_no_room();
                }
                if state.session_is_over {
                    return Ok(LaneOver::Ended);
                }
                if state.inbound_has_ended && !state.is_shut {
                    flow.end_writing().await?;
                    state.is_shut = true;
                }
            }
            if state.is_shut && state.has_read_all && state.outgoing.is_empty() {
                return Ok(LaneOver::Ended);
            }
            let takes = flow.is_written() && !state.inbound_has_ended;
            let credit = tunnel.session().credit(self.number);
            let reads = !state.has_read_all && state.outgoing.is_empty() && credit > 0;
            let waits_for_credit = !state.has_read_all && credit == 0;
            let stalled = flow.stalled_since().map(|since| since + tunnel.stall_max());
            tokio::select! {
                place = tunnel.say.reserve(), if !state.outgoing.is_empty() => {
                    let Ok(place) = place else { return Ok(LaneOver::Ended) };
                    place.send(state.outgoing.pop_front().expect("it was looked at above"));
                }
                inbound = self.inbound.recv(), if takes => match inbound {
                    Some(Inbound::Bytes(piece)) => {
                        state.unwritten = piece.len();
                        flow.put(piece);
                    }
                    Some(Inbound::End) => state.inbound_has_ended = true,
                    Some(Inbound::Reset) => return Ok(LaneOver::Reset),
                    None => (state.inbound_has_ended, state.session_is_over) = (true, true),
                },
                ready = flow.ready_to(reads) => {
                    ready?;
                    if reads {
                        self.read(tunnel, flow, &mut state, credit)?;
                    }
                }
                () = self.bell.notified(), if waits_for_credit => {}
                why = &mut *refused => return Ok(LaneOver::Broken(format!("its certificate does not count any more: {why}"))),
                () = sleep_until(stalled.unwrap_or_else(far)), if stalled.is_some() => {
                    return Ok(LaneOver::Broken(format!("it has taken nothing for {:?}", tunnel.stall_max())));
                }
            }
        }
    }

    /// Reads what is there, as far as it may be sent.
    fn read(&self, tunnel: &Tunnel, flow: &mut Flow, state: &mut Progress, credit: usize) -> std::io::Result<()> {
        // Most that is said is short, and thousands of connections say it: a piece is as long as what it holds.
        let piece = PIECE.with_borrow_mut(|space| {
            let (space, mut length) = (&mut space[..credit.min(PIECE_BYTES_MAX)], 0);
            while length < space.len() {
                match flow.read(&mut space[length..])? {
                    None => break,
                    Some(0) => {
                        state.has_read_all = true;
                        break;
                    }
                    Some(bytes) => length += bytes,
                }
            }
            Ok::<_, std::io::Error>(space[..length].to_vec())
        })?;
        if !piece.is_empty() {
            tunnel.session().sent(self.number, piece.len());
            match &mut state.whole {
                Some(whole) => state.outgoing.extend(whole.take(&piece).into_iter().map(Said::Plain)),
                None if tunnel.is_numbered() => state.outgoing.push_back(Said::Frame(Frame::Bytes(self.number, piece))),
                None => {
                    tunnel.session().sent_plain(self.number, &piece);
                    state.outgoing.push_back(Said::Plain(piece));
                }
            }
        }
        if state.has_read_all {
            let rest = state.whole.as_mut().map(WholeRequests::end).filter(|rest| !rest.is_empty());
            state.outgoing.extend(rest.map(Said::Plain));
            let told = tunnel.session().end(self.number, tunnel.gateway.time());
            if tunnel.is_numbered() {
                state.outgoing.extend(told.map(Said::Frame));
            } else {
                // Nothing else says it.
                state.inbound_has_ended = true;
            }
        }
        Ok(())
    }
}

/// How far a connection has come.
#[derive(Default)]
struct Progress {
    /// What is to be said of it: of one read at the most.
    outgoing: VecDeque<Said>,
    /// Bytes of the piece that is being written.
    unwritten: usize,
    inbound_has_ended: bool,
    /// Its socket knows that nothing more is written.
    is_shut: bool,
    has_read_all: bool,
    session_is_over: bool,
    whole: Option<WholeRequests>,
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}
