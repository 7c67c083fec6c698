//! What subscriptions ask of a topic beyond what was declared: the topic is as strict as the strictest of all that is asked and admitted.

use std::{
    num::NonZeroU64,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use bodkin_arrowhead::record::{SubscriptionBounds, SystemId};
use bodkin_broker::{
    Terms,
    timing::{AdmissionError, Nanos, Wish},
    topic::LossTolerance,
};

use super::{Admitted, RealTimeTopic, RealTimeTopics, TopicError};

/// Names who asks something of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asker(NonZeroU64);

impl Asker {
    /// Systems have names of their own beside those that are given to sessions.
    const SYSTEM: NonZeroU64 = NonZeroU64::new(1 << 63).unwrap();

    /// Who is subscribed by push: once at most to each event type.
    pub fn pushed(subscriber: SystemId) -> Self {
        Self(Self::SYSTEM | subscriber.0.unsigned_abs())
    }
}

/// What a pushed subscription asks.
pub fn wish_of(bounds: SubscriptionBounds) -> Wish {
    Wish { loss_tolerance: bounds.loss_tolerance.map(LossTolerance::AtMost), deadline: bounds.deadline_us.map(Nanos::from_micros) }
}

impl RealTimeTopics {
    /// A name that nobody else has, for a session.
    pub fn asker(&self) -> Asker {
        Asker(NonZeroU64::MIN.saturating_add(self.askers.fetch_add(1, Relaxed)))
    }

    /// Takes what a subscription asks, in place of what it asked before, if the topic with all that is asked of it still fits; else all stays as it is. `tell` is told
    /// what holds now while nothing else can change, so that the shard hears of changes in their order; it must not wait.
    pub fn ask(&self, event_type: &str, asker: Asker, wish: Wish, tell: impl FnOnce(Result<(Arc<RealTimeTopic>, Terms), TopicError>)) {
        let mut admitted = self.lock();
        let asked = admitted.admission.ask(event_type, asker.0.get(), wish);
        tell(match asked {
            Ok(_) => Ok(self.take_over(&mut admitted, event_type).expect("what is asked is asked of a topic that is there")),
            Err(error) => Err(refused(event_type, error)),
        });
    }

    /// Forgets what a subscription asked: the topic is as strict as the others ask. `tell` as in [`Self::ask`]; it is told nothing if nothing was asked of a topic that
    /// is there.
    pub fn forget(&self, event_type: &str, asker: Asker, tell: impl FnOnce((Arc<RealTimeTopic>, Terms))) {
        let mut admitted = self.lock();
        admitted.admission.withdraw(event_type, asker.0.get());
        if let Some(topic) = self.take_over(&mut admitted, event_type) {
            tell(topic);
        }
    }

    /// Makes what was admitted what is shown, and gives what the shard is to be told.
    fn take_over(&self, admitted: &mut Admitted, event_type: &str) -> Option<(Arc<RealTimeTopic>, Terms)> {
        let spec = admitted.admission.get(event_type)?.spec;
        let former = admitted.topics.get(event_type)?;
        let asked = admitted.admission.asked(event_type);
        let topic = Arc::new(RealTimeTopic { spec: Arc::new(spec), asked, ..RealTimeTopic::clone(former) });
        admitted.topics.insert(topic.event_type.clone(), topic.clone());
        Some((topic, Terms::of(&spec, &self.platform)))
    }
}

fn refused(event_type: &str, error: AdmissionError) -> TopicError {
    TopicError::Refused { event_type: event_type.to_owned(), error: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::name::EventType;
    use bodkin_broker::{
        timing::{Nanos, Span},
        topic::{LossTolerance, Period, Platform, TopicSpec},
    };

    use super::*;
    use crate::topics::{DeclaredTopic, Declarer, PublisherList};

    #[test]
    fn a_topic_is_as_strict_as_the_strictest_that_is_asked_of_it() {
        let topics = RealTimeTopics::new(Platform::default(), Default::default()).unwrap();
        let spec = TopicSpec {
            deadline: Nanos::from_millis(50).into(),
            broker_subscriber_max: Nanos::from_millis(1),
            ..TopicSpec::best_effort(Period::Every(Nanos::from_millis(100)))
        };
        let (event_type, permitted) = (EventType::parse("hot").unwrap(), PublisherList::default());
        topics.admit(&DeclaredTopic { event_type, spec: spec.into(), permitted }, Declarer::Operator).unwrap();
        let within = |millis| Wish { loss_tolerance: None, deadline: Some(Nanos::from_millis(millis)) };
        let deadline = || match topics.get("HOT").unwrap().spec.deadline {
            Span::Finite(deadline) => deadline,
            Span::Infinite => panic!("a deadline was declared"),
        };
        let (first, second) = (topics.asker(), topics.asker());
        for (asker, millis, holds) in [(first, 40, 40), (second, 30, 30), (second, 60, 40)] {
            topics.ask("HOT", asker, within(millis), |told| {
                assert_eq!(told.unwrap().0.spec.deadline, Span::Finite(Nanos::from_millis(holds)))
            });
            assert_eq!(deadline(), Nanos::from_millis(holds));
        }
        let mut why = String::new();
        topics.ask("HOT", second, within(0), |told| why = told.unwrap_err().to_string());
        assert!(why.contains("HOT"), "{why}");
        assert_eq!(deadline(), Nanos::from_millis(40), "a refusal changes nothing");
        topics.ask("COLD", first, within(1), |told| why = told.unwrap_err().to_string());
        assert!(why.contains("declare its period"), "{why}");
        topics.forget("HOT", first, |(topic, _)| assert_eq!(topic.spec.deadline, Span::Finite(Nanos::from_millis(50))));
        topics.forget("COLD", first, |_| panic!("it was not declared"));
        let topic = topics.get("HOT").unwrap();
        assert_eq!((topic.spec.loss_tolerance, topic.declarer), (LossTolerance::Any, Declarer::Operator));
    }
}
