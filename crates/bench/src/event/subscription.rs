//! Publishers that others may hear, and the subscriptions of those that are pushed to.

use serde_json::{Value, json};

use crate::client::Client;
use crate::cloud::Cloud;
use crate::data::INTERFACES;
use crate::expectation::Expectation;
use crate::request::{self, Identified, Registered, RunTag};

/// Port of the first publisher, where nothing listens; each has its own of four digits.
const PUBLISHER_PORT_FIRST: u16 = 9000;

/// Registered publishers. Each provides the same service, by which a rule can let a subscriber hear it.
pub struct Publishers {
    tag: RunTag,
    address: String,
    systems: Vec<Value>,
    registered: Vec<Registered>,
}

/// Subscriptions that stand until [`Subscribed::end`].
pub struct Subscribed {
    removals: Vec<Vec<u8>>,
}

impl Publishers {
    /// Registers so many.
    ///
    /// # Errors
    /// The Service Registry refuses one.
    pub fn register(cloud: &Cloud, tag: &RunTag, publishers: u16, address: &str) -> anyhow::Result<Self> {
        let registry = &cloud.service_registry;
        // In secure mode nobody may register for others but management.
        let path = if cloud.certificates.is_some() { "/serviceregistry/mgmt" } else { "/serviceregistry/register" };
        let mut client = Client::connect(registry)?;
        let (mut systems, mut registered) = (Vec::new(), Vec::new());
        for publisher in 0..publishers {
            let system = request::system(&tag.publisher(publisher), address, PUBLISHER_PORT_FIRST + publisher);
            let registration = json!({
                "serviceDefinition": tag.event_service(), "providerSystem": system, "serviceUri": "/bench", "interfaces": [INTERFACES[0]],
            });
            registered.push(client.ask(&request::post(registry, path, &registration), 201)?);
            systems.push(system);
        }
        Ok(Self { tag: tag.clone(), address: address.to_string(), systems, registered })
    }

    /// As requests give them.
    pub fn systems(&self) -> &[Value] {
        &self.systems
    }

    /// Registers a subscriber that opens streams, and lets it hear every publisher.
    ///
    /// # Errors
    /// The system or its rule is refused.
    pub fn admit(&self, cloud: &Cloud, name: &str, port: u16) -> anyhow::Result<()> {
        let (registry, authorization) = (&cloud.service_registry, cloud.authorization()?);
        let (mut registering, mut ruling) = (Client::connect(registry)?, Client::connect(authorization)?);
        let system = request::system(name, &self.address, port);
        let consumer: Identified = registering.ask(&request::post(registry, "/serviceregistry/mgmt/systems", &system), 201)?;
        let _: Value = ruling.ask(&request::post(authorization, "/authorization/mgmt/intracloud", &self.rule(consumer.id)), 201)?;
        Ok(())
    }

    /// Registers a subscriber for each port, lets it hear every publisher, and subscribes it.
    ///
    /// # Errors
    /// A system, a rule or a subscription is refused.
    pub fn subscribe(&self, cloud: &Cloud, event_type: &str, ports: &[u16]) -> anyhow::Result<Subscribed> {
        let (registry, authorization, handler) = (&cloud.service_registry, cloud.authorization()?, cloud.event_handler()?);
        let (mut registering, mut ruling, mut subscribing) =
            (Client::connect(registry)?, Client::connect(authorization)?, Client::connect(handler)?);
        let mut removals = Vec::new();
        for (n, port) in ports.iter().enumerate() {
            let name = format!("{}-{}", self.tag.subscriber(n), port);
            let system = request::system(&name, &self.address, *port);
            let consumer: Identified = registering.ask(&request::post(registry, "/serviceregistry/register-system", &system), 201)?;
            let _: Value = ruling.ask(&request::post(authorization, "/authorization/mgmt/intracloud", &self.rule(consumer.id)), 201)?;
            let subscription = request::post(handler, "/eventhandler/subscribe", &request::subscription(event_type, &system));
            succeed(&mut subscribing, &subscription)?;
            let query = format!("event_type={event_type}&system_name={name}&address={}&port={port}", self.address);
            removals.push(request::delete(handler, &format!("/eventhandler/unsubscribe?{query}")));
        }
        Ok(Subscribed { removals })
    }

    /// Many providers of one service: one rule for each of them.
    fn rule(&self, consumer_id: i64) -> Value {
        let first = self.registered[0];
        let providers: Vec<i64> = self.registered.iter().map(|registered| registered.provider_id).collect();
        json!({
            "consumerId": consumer_id,
            "providerIds": providers,
            "serviceDefinitionIds": [first.definition_id],
            "interfaceIds": [first.interface_id],
        })
    }
}

impl Subscribed {
    /// Ends them, so that nothing is pushed into the next run.
    ///
    /// # Errors
    /// The Event Handler refuses.
    pub fn end(self, cloud: &Cloud) -> anyhow::Result<()> {
        let mut client = Client::connect(cloud.event_handler()?)?;
        self.removals.iter().try_for_each(|removal| succeed(&mut client, removal))
    }
}

/// Sends what is answered 200 with nothing in it.
fn succeed(client: &mut Client, request: &[u8]) -> anyhow::Result<()> {
    let answer = client.exchange(request)?;
    match Expectation::status(200).fault(answer.status(), answer.body()) {
        None => Ok(()),
        Some(fault) => anyhow::bail!(fault),
    }
}
