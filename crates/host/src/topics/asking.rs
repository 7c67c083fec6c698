//! Asking the admission test on behalf of the shard, which must not wait for it: among many topics, to find what would have to change takes its time.

use std::sync::{Arc, mpsc};

use bodkin_arrowhead::record::SubscriptionId;
use bodkin_broker::{Terms, timing::Wish};

use super::{RealTimeTopic, RealTimeTopics, TopicError, wish::Asker};
use crate::{
    inbox::{ConnectionKey, Inbox, Message},
    shard::LinkKey,
};

/// Who waits for the answer to what it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// A DEALER.
    Dealer(LinkKey),
    /// An event stream that is to be opened.
    Stream(ConnectionKey),
    /// Nobody waits for it: a subscription by push that was made before.
    Pushed(SubscriptionId),
}

/// What a subscriber of the shard asks of a topic.
#[derive(Debug)]
struct Question {
    event_type: Box<str>,
    asker: Asker,
    asked: Asked,
}

#[derive(Debug)]
enum Asked {
    Wish { wish: Wish, waiter: Waiter },
    Nothing,
}

/// What became of a question.
#[derive(Debug)]
pub struct Answered {
    /// Of which event type.
    pub event_type: Box<str>,
    /// Who has asked; nobody waits if what was asked before is forgotten.
    pub waiter: Option<Waiter>,
    /// The topic as it is now, or why it stays as it was.
    pub result: Result<(Arc<RealTimeTopic>, Terms), TopicError>,
}

/// The shard's end. Questions are answered in their order, by [`Message::Asked`]; who asks bounds how many of its own wait.
pub struct Asking {
    topics: Arc<RealTimeTopics>,
    questions: mpsc::Sender<Question>,
}

impl Asking {
    /// Starts the thread that answers; it ends with what this gives.
    pub fn start(topics: Arc<RealTimeTopics>, inbox: Arc<Inbox>) -> std::io::Result<Self> {
        let (questions, asked) = mpsc::channel();
        let answering = topics.clone();
        std::thread::Builder::new().name("admission".into()).spawn(move || {
            for question in asked {
                answer(&answering, &inbox, question);
            }
        })?;
        Ok(Self { topics, questions })
    }

    /// What is asked of.
    pub fn topics(&self) -> &Arc<RealTimeTopics> {
        &self.topics
    }

    /// A name for who asks.
    pub fn asker(&self) -> Asker {
        self.topics.asker()
    }

    /// Asks for a wish.
    pub fn ask(&self, event_type: &str, asker: Asker, wish: Wish, waiter: Waiter) {
        self.send(Question { event_type: event_type.into(), asker, asked: Asked::Wish { wish, waiter } });
    }

    /// Takes back what was asked.
    pub fn forget(&self, event_type: &str, asker: Asker) {
        self.send(Question { event_type: event_type.into(), asker, asked: Asked::Nothing });
    }

    fn send(&self, question: Question) {
        self.questions.send(question).expect("the thread ends behind the last question");
    }
}

fn answer(topics: &RealTimeTopics, inbox: &Inbox, question: Question) {
    let Question { event_type, asker, asked } = question;
    let post = |event_type, waiter, result| inbox.post(Message::Asked(Box::new(Answered { event_type, waiter, result })));
    match asked {
        Asked::Wish { wish, waiter } => topics.ask(&event_type.clone(), asker, wish, |result| post(event_type, Some(waiter), result)),
        Asked::Nothing => topics.forget(&event_type.clone(), asker, |topic| post(event_type, None, Ok(topic))),
    }
}
