//! Event streams (Server-Sent Events): opening one, and telling a slow one what it lost.

use std::{io::Write, sync::Arc, time::Duration};

use bodkin_arrowhead::{
    access::{Access, Admitted, Claim},
    error::ArrowheadError,
    record::SystemId,
    service_registry::parse_system_parameters,
    snapshot::Snapshot,
};
use bodkin_broker::{Overflow, ShardError, SubscriptionKey, timing::Wish};

use super::{Receiver, Shard};
use crate::{
    answer::{self, Answer, Recipient, Refusal},
    control,
    http::RawRequest,
    listening::{self, Listening, Since},
    replay,
    request::{Method, Request},
};

impl Shard {
    /// Opens an event stream on the connection, or answers why not.
    pub(super) fn open_stream(&mut self, slot: usize, request: &Request, access: Access, raw: &RawRequest<'_>) {
        if let Err(refusal) = self.try_stream(slot, request, access, raw) {
            self.refuse_request(slot, raw, refusal);
        }
    }

    fn try_stream(&mut self, slot: usize, request: &Request, access: Access, raw: &RawRequest<'_>) -> Result<(), Answer> {
        let admitted = access.admit(&request.caller).map_err(|denial| request.denied(&denial))?;
        if let Some(refusal) = control::check_body(request) {
            return Err(refusal);
        }
        if request.method == Method::Head {
            return Err(Answer { header: Some(("Allow", "GET".into())), ..Answer::empty(405) });
        }
        let consumer = consumer(&self.context.store.snapshot(), request, admitted)?;
        Ok(self.begin_stream(slot, request, consumer, raw)?)
    }

    fn begin_stream(&mut self, slot: usize, request: &Request, consumer: Option<SystemId>, raw: &RawRequest<'_>) -> Result<(), Refusal> {
        let mut listening = Listening::parse(request, raw.event_type, consumer)?;
        if let Some(token) = &self.nodes.token {
            listening.resume = listening::parse_token(request, raw.last_event_id, token.cloud())?;
        }
        let since = listening::parse_since(request, raw.last_event_id)?;
        let wish = listening::parse_wish(request)?;
        if wish == Wish::default() {
            return self.start_stream(slot, listening, since);
        }
        self.ask_for_stream(slot, listening, since, wish, raw.keep_alive);
        Ok(())
    }

    /// Opens a stream whose topic is as strict as it asks.
    pub(super) fn start_stream(&mut self, slot: usize, mut listening: Listening, since: Option<Since>) -> Result<(), Refusal> {
        if self.stream_count() >= self.context.limits.subscriptions_max {
            let told = format!("There are {} event streams, which is the limit.", self.context.limits.subscriptions_max);
            return Err(ArrowheadError::unavailable(told).into());
        }
        let notice = self.notice_at_begin(&listening);
        match (since, self.context.replay.clone()) {
            (Some(since), Some(context)) => {
                self.write_stream_head(slot);
                listening.has_lost = listening.resume.is_some() && self.nodes.lacks(&listening) > 0;
                self.begin_replay(slot, listening, since, context);
            }
            (since, _) => {
                self.listen(slot, Arc::new(listening))
                    .map_err(|error| ArrowheadError::unavailable(format!("The stream was not opened: {error}.")))?;
                self.write_stream_head(slot);
                if since.is_some() {
                    self.connections[slot].out().extend_from_slice(replay::LOST);
                }
            }
        }
        if let Some(notice) = notice {
            self.write_notice(slot, notice);
        }
        self.dirty.push(slot);
        self.count_subscriptions();
        Ok(())
    }

    fn write_stream_head(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        let page = connection.page.take();
        let recipient = Recipient { reader: page.as_deref(), is_secure: connection.is_secure(), ..Recipient::CLOSED };
        answer::push_stream_head(connection.out(), self.clock.date(), recipient);
    }

    /// Lets a connection hear what is published from now on.
    pub(super) fn listen(&mut self, slot: usize, listening: Arc<Listening>) -> Result<(), ShardError> {
        let topic = listening.clone();
        if self.is_new_to_links(topic.event_type.as_str()) {
            self.open_to_links(topic.event_type.as_str());
        }
        let subscription = self.broker.subscribe(topic.event_type.as_str(), Receiver::Stream { slot, listening }, Overflow::Loses)?;
        self.connections[slot].begin_stream(subscription);
        Ok(())
    }

    /// Tells a subscriber, behind what it was sent before, how many events its full queue has cost it.
    pub(super) fn tell_loss(&mut self, subscription: SubscriptionKey, events: u64, during: Duration) {
        match self.broker.receiver(subscription) {
            Some(Receiver::Stream { slot, listening }) => {
                self.note_loss_run(listening.event_type.as_str(), events);
                let lost = &mut self.connections[*slot].lost;
                *lost = lost.saturating_add(events);
                let out = self.connections[*slot].out();
                write!(out, ": lost {events} events in {} ms\nevent: bodkin-lost\ndata: {{\"lost\":{events}}}\n\n", during.as_millis())
                    .expect("a vector takes everything");
                self.dirty.push(*slot);
            }
            Some(Receiver::Push { subscription, .. }) => {
                tracing::warn!(subscription = %subscription.id, events, ?during, "a pushed subscriber was too slow and lost events");
            }
            Some(Receiver::Dealer { slot, .. }) => {
                let slot = *slot;
                self.tell_dealer_loss(slot, subscription, events);
            }
            // A link counts by itself what waits for it, and its subscriber has no word for losses.
            Some(Receiver::Link { .. } | Receiver::Graph) | None => {}
        }
    }
}

/// The system that listens, which hears the publishers that the authorization rules let it hear, as a pushed subscription does:
/// the parameters `system_name`, `address` and `port` name it, or the certificate. `None` is nobody, who hears everybody, in
/// insecure mode only.
fn consumer(snapshot: &Snapshot, request: &Request, admitted: Admitted<'_>) -> Result<Option<SystemId>, Refusal> {
    let name = request.parameter("system_name");
    admitted.permit(Claim::of_system(name)).map_err(|denial| request.denied(&denial))?;
    let Some(name) = name else {
        return request.caller.system().map(|own| only_system_named(snapshot, own.as_str())).transpose();
    };
    let address = request.parameter("address").ok_or_else(|| control::missing("address"))?;
    let port = request.parameter("port").ok_or_else(|| control::missing("port"))?;
    let port = port.trim().parse().map_err(|_| control::not_a_number("port"))?;
    let key = parse_system_parameters(name, address, port, &request.path)?;
    let found = snapshot.system_by_key(key.as_str()).map(|system| system.id);
    let missing =
        || ArrowheadError::invalid_parameter(format!("System with name: {name}, address: {address}, port: {port} is not registered."));
    found.map(Some).ok_or_else(|| missing().into())
}

fn only_system_named(snapshot: &Snapshot, name: &str) -> Result<SystemId, Refusal> {
    let mut named = snapshot.systems_named(name).map(|system| system.id);
    let refused = |told: String| Refusal::from(ArrowheadError::invalid_parameter(told));
    match (named.next(), named.next()) {
        (Some(id), None) => Ok(id),
        (None, _) => Err(refused(format!(
            "System with name: {name} is not registered, so that no rule lets it hear anybody: register it and make rules for it, \
            or listen as a system that has them."
        ))),
        _ => Err(refused(format!("Several systems are named {name}: say which one listens by system_name, address and port."))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use bodkin_arrowhead::{
        address::Address,
        caller::Caller,
        common_name::CloudCommonName,
        name::{NamingRules, SystemName},
        record::{System, Timestamps},
        snapshot::Change,
        utc::UtcTime,
    };

    use super::*;

    /// A local cloud of these systems.
    pub fn snapshot(systems: &[(i64, &str)]) -> Snapshot {
        let now = UtcTime::from_unix_seconds(0);
        let mut snapshot = Snapshot::default();
        for (id, name) in systems {
            let system = System {
                id: SystemId(*id),
                system_name: SystemName::parse(name).unwrap(),
                address: Address::parse("10.0.0.1", &NamingRules::default()).unwrap(),
                port: u16::try_from(*id).unwrap(),
                authentication_info: None,
                metadata: None,
                timestamps: Timestamps { created_at: now, updated_at: now },
            };
            snapshot.apply(Change::System(Arc::new(system)));
        }
        snapshot
    }

    /// Who listens, or the status of the refusal.
    fn check(snapshot: &Snapshot, caller: &Caller, parameters: &[(&str, &str)], expected: Result<Option<i64>, u16>) {
        let request = Request {
            caller: caller.clone(),
            sender: None,
            method: Method::Get,
            path: "/eventhandler/events".into(),
            query: parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            url: String::new(),
            content_type: String::new(),
            bearer: None,
            if_none_match: None,
            accepts_html: false,
            is_forged: false,
            trace: None,
            says_empty: false,
            body: Vec::new(),
        };
        let admitted = Access::Own.admit(caller).unwrap();
        let found = consumer(snapshot, &request, admitted).map(|id| id.map(|id| id.0)).map_err(|refusal| Answer::from(refusal).status);
        assert_eq!(found, expected, "{caller:?} {parameters:?}");
    }

    #[test]
    fn a_certified_listener_hears_as_its_own_system() {
        let cloud = CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap();
        let display = Caller::certified("Display.cloud.operator.arrowhead.eu", &cloud);
        let named = |name: &'static str, port: &'static str| [("system_name", name), ("address", "10.0.0.1"), ("port", port)];
        let one = snapshot(&[(1, "display"), (2, "other")]);
        check(&one, &display, &[], Ok(Some(1)));
        check(&one, &display, &named("DISPLAY", "1"), Ok(Some(1)));
        check(&one, &display, &named("display", "9"), Err(400));
        check(&one, &display, &named("other", "2"), Err(401));
        check(&one, &Caller::Anonymous, &[], Ok(None));
        check(&one, &Caller::Anonymous, &named("other", "2"), Ok(Some(2)));
        check(&snapshot(&[(2, "other")]), &display, &[], Err(400));
        let two = snapshot(&[(1, "display"), (3, "display")]);
        check(&two, &display, &[], Err(400));
        check(&two, &display, &named("display", "3"), Ok(Some(3)));
    }
}
