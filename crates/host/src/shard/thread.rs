//! The shard's thread, which begins in front of its shard: in a pair the first commits of the local cloud have to be answered before there are ports to
//! serve. So it owns the leader's end of the pair as long as the database is open.

use std::{io, sync::Arc, thread::JoinHandle};

use bodkin_broker::Terms;
use bodkin_store::{event_log::EventLog, replication::Committed};
use mio::{Events, Poll};
use tokio::{sync::oneshot, task::JoinHandle as Task};

use super::{EndpointConfig, Shard, ShardContext, TURN_EVENTS_MAX};
use crate::{
    inbox::{Inbox, Message},
    pair::{
        News, Promoted,
        primary::{Primary, TooFar},
    },
    topics::{RealTimeTopic, RealTimeTopics, TopicError},
};

/// What a shard is made of.
pub struct ShardParts {
    /// What it shares with others.
    pub context: ShardContext,
    /// The bound sockets of the port; without any, connections come by the inbox, behind their handshake.
    pub listeners: Vec<std::net::TcpListener>,
    /// The ZMTP port.
    pub endpoint: EndpointConfig,
    /// Where accepted events are kept.
    pub log: Option<EventLog>,
    /// The real-time topics, and what is served in real time of them.
    pub topics: Arc<RealTimeTopics>,
    /// Those that were admitted, with their terms.
    pub admitted: Vec<(Arc<RealTimeTopic>, Terms)>,
    /// Whether it could be made.
    pub begun: oneshot::Sender<Result<(), BeginError>>,
}

impl std::fmt::Debug for ShardParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardParts").finish_non_exhaustive()
    }
}

/// Why a shard could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The system refuses a poll or a socket.
    #[error(transparent)]
    System(#[from] io::Error),
    /// There is no room for a topic.
    #[error(transparent)]
    Topic(#[from] TopicError),
}

/// The thread, as its owner sees it. It ends when this is dropped.
pub struct ShardThread {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl ShardThread {
    /// Starts it. `primary` is the leader's end of a pair.
    pub fn start(primary: Option<Primary>) -> io::Result<Self> {
        let (poll, inbox) = Shard::inbox()?;
        let early = Early { poll, inbox: inbox.clone(), primary, promoted: None };
        let thread = std::thread::Builder::new().name("shard-0".into()).spawn(|| early.run())?;
        Ok(Self { inbox, thread: Some(thread) })
    }

    /// How it is spoken to.
    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// Stops serving, and writes out what is queued; gives the push tasks, which end with what they are posting. What a pair needs goes on.
    pub async fn drain(&self) -> Option<Vec<Task<()>>> {
        let (drained, told) = oneshot::channel();
        self.inbox.post(Message::Stop { drained });
        told.await.ok()
    }

    /// Ends it.
    pub fn end(mut self) -> std::thread::Result<io::Result<()>> {
        self.inbox.post(Message::End);
        self.thread.take().expect("it is joined once").join()
    }
}

impl Drop for ShardThread {
    fn drop(&mut self) {
        self.inbox.post(Message::End);
    }
}

/// The thread in front of its shard.
struct Early {
    poll: Poll,
    inbox: Arc<Inbox>,
    primary: Option<Primary>,
    promoted: Option<Box<Promoted>>,
}

impl Early {
    fn run(mut self) -> io::Result<()> {
        let Some(parts) = self.wait()? else { return Ok(()) };
        match self.begin(parts) {
            Some(shard) => shard.run(),
            None => Ok(()),
        }
    }

    /// Makes the shard, and tells who waits for it; `None` if it cannot be made.
    fn begin(self, parts: ShardParts) -> Option<Shard> {
        let ShardParts { context, listeners, endpoint, log, topics, admitted, begun } = parts;
        let made = Shard::new(context, self.poll, self.inbox, listeners, endpoint, log, self.primary);
        let made = made.map_err(BeginError::from).and_then(|mut shard| {
            let required = self.promoted.map(|promoted| shard.go_on_with(*promoted));
            admitted.into_iter().try_for_each(|(topic, terms)| shard.admit(topic, terms)).map_err(TopicError::from)?;
            shard.admit_undeclared(&topics)?;
            shard.await_all(required.unwrap_or_default());
            shard.begin_with_pair();
            Ok(shard)
        });
        let (shard, told) = match made {
            Ok(shard) => (Some(shard), Ok(())),
            Err(error) => (None, Err(error)),
        };
        // Who does not listen any more will end it.
        let _ = begun.send(told);
        shard
    }

    /// Answers commits until there is a shard; `None`: there will be none.
    fn wait(&mut self) -> io::Result<Option<ShardParts>> {
        let mut events = Events::with_capacity(TURN_EVENTS_MAX);
        let (mut messages, mut later) = (Vec::new(), Vec::new());
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            let mut found = None;
            self.inbox.take(&mut messages);
            for message in messages.drain(..) {
                match message {
                    Message::Pair(news) => self.pair_tells(news),
                    Message::Begin(parts) => found = Some(*parts),
                    Message::End => {
                        self.primary.iter_mut().for_each(Primary::end);
                        return Ok(None);
                    }
                    other => later.push(other),
                }
            }
            if found.is_some() {
                later.drain(..).for_each(|message| self.inbox.post(message));
                return Ok(found);
            }
        }
    }

    /// As [`Shard::pair_tells`], as long as no Backup is given anything.
    fn pair_tells(&mut self, news: News) {
        let primary = self.primary.as_mut().expect("a cloud by itself has no pair");
        primary.authority();
        match news {
            News::Leads { epoch, promoted } => {
                self.promoted = promoted.or(self.promoted.take());
                primary.begin(epoch);
            }
            News::Fenced => primary.fenced(),
            News::Protection(protection) => drop(primary.protected(protection)),
            News::Channel { link, serial } => drop(primary.connected(*link, serial)),
            News::BackupGone => drop(primary.lose_session("the Backup is not connected any more")),
            News::Committed(Committed::Group(group)) => match primary.committed(group) {
                Ok(changes) => assert!(changes.is_empty(), "nobody is given anything yet"),
                Err(TooFar(why)) => unreachable!("nobody is given anything yet: {why}"),
            },
            News::Committed(Committed::Copy(_)) => unreachable!("no copy was asked for yet"),
        }
    }
}
