//! A cloud with services of [`Data`] in it, and the requests that fit them.

mod compared;
mod fill;

pub use compared::Askers;
pub use fill::{Filled, set_up};

use std::sync::Arc;

use anyhow::bail;

use crate::cloud::Cloud;
use crate::data::{Data, Service};
use crate::endpoint::Endpoint;
use crate::expectation::Expectation;
use crate::operation::Operation;
use crate::request::{self, RunTag};
use crate::wire::Caller;

/// Rows of a page under load.
pub const PAGE_ROWS: u32 = 100;

/// Requests ready to be sent.
pub struct Batch {
    /// To which system.
    pub endpoint: Endpoint,
    /// Whole requests.
    pub requests: Vec<Vec<u8>>,
    /// As whom each of them is sent; where empty, all are as the endpoint says.
    pub callers: Vec<Caller>,
    /// What a good answer has.
    pub expectation: Expectation,
}

/// A cloud, what is in it, and what a load adds to it next.
pub struct Scene {
    /// The cloud.
    pub cloud: Cloud,
    filled: Arc<Filled>,
    tag: RunTag,
    /// Entry of the data that the next registration takes.
    next_service: u32,
    /// Number of the next rule; see [`Scene::rules`].
    next_rule: u32,
    /// Number of the next subscription; see [`Scene::subscriptions`].
    next_subscription: u32,
}

impl Scene {
    /// A cloud that holds just what `filled` says.
    pub fn new(cloud: Cloud, filled: Arc<Filled>) -> Self {
        let next_service = filled.services();
        Self { cloud, filled, tag: RunTag::now(), next_service, next_rule: 0, next_subscription: 0 }
    }

    fn data(&self) -> Data {
        self.filled.state().data()
    }

    fn address(&self) -> &str {
        self.filled.provider_address()
    }

    /// So many requests of this kind: what is added is fresh, lookups go over all services in a scattered order.
    ///
    /// # Errors
    /// The system is not there, the cloud holds nothing to ask for, or what the requests need is refused.
    pub fn requests(&mut self, operation: Operation, count: u32) -> anyhow::Result<Batch> {
        use Operation::*;
        if self.filled.services() == 0 && !matches!(operation, Register | Unregister) {
            bail!("the state `empty` has nothing for {}: take --services N or --state data:SEED:N", operation.name());
        }
        let expectation = operation.expectation();
        let (endpoint, requests) = match operation {
            Register => self.registrations(count),
            Unregister => self.removals(count)?,
            Query => self.lookups(count, self.cloud.service_registry.clone(), |endpoint, asked| {
                request::post(endpoint, "/serviceregistry/query", &request::query(&asked.service.definition))
            }),
            Authorize => (self.cloud.authorization()?.clone(), self.rules(count)?),
            Orchestrate => self.lookups(count, self.cloud.orchestrator()?.clone(), |endpoint, asked| {
                let body = request::orchestration(&asked.consumer(), &asked.service.definition);
                request::post(endpoint, "/orchestrator/orchestration", &body)
            }),
            OrchestrateStore => self.lookups(count, self.cloud.orchestrator()?.clone(), |endpoint, asked| {
                let body = request::store_orchestration(&asked.consumer(), &asked.service.definition, asked.service.interface);
                request::post(endpoint, "/orchestrator/orchestration", &body)
            }),
            Token => self.lookups(count, self.cloud.authorization()?.clone(), |endpoint, asked| {
                let provider = asked.service.system(asked.address);
                let body = request::token(&asked.consumer(), &asked.service.definition, asked.service.interface, &provider);
                request::post(endpoint, "/authorization/token", &body)
            }),
            List => self.pages(count),
            Subscribe => self.subscriptions(count)?,
            Unsubscribe => self.unsubscriptions(count)?,
        };
        Ok(Batch { endpoint, requests, callers: Vec::new(), expectation })
    }

    /// Services that come after those in the cloud.
    fn fresh_services(&mut self, count: u32) -> Vec<Service> {
        let first = self.next_service;
        self.next_service += count;
        (first..first + count).map(|n| self.data().service(n)).collect()
    }

    fn registrations(&mut self, count: u32) -> (Endpoint, Vec<Vec<u8>>) {
        let registry = self.cloud.service_registry.clone();
        let services = self.fresh_services(count);
        let requests = services.iter().map(|service| self.filled.registration(&registry, service)).collect();
        (registry, requests)
    }

    fn removals(&mut self, count: u32) -> anyhow::Result<(Endpoint, Vec<Vec<u8>>)> {
        let services = self.fresh_services(count);
        let registry = self.cloud.service_registry.clone();
        let registrations: Vec<_> = services.iter().map(|service| self.filled.registration(&registry, service)).collect();
        set_up(&registry, &registrations, 201, |_, _| {})?;
        let removal = |service: &Service| {
            let Service { definition, provider, port, uri, .. } = service;
            let query = format!("service_definition={definition}&system_name={provider}&port={port}&service_uri={uri}");
            request::delete(&registry, &format!("/serviceregistry/unregister?{query}&address={}", self.address()))
        };
        let requests = services.iter().map(removal).collect();
        Ok((registry, requests))
    }

    fn lookups(&self, count: u32, endpoint: Endpoint, ask: impl Fn(&Endpoint, &Asked<'_>) -> Vec<u8>) -> (Endpoint, Vec<Vec<u8>>) {
        let asked = |n| {
            let entry = self.scattered(n);
            let consumer = self.data().service(self.filled.consumer(entry));
            Asked { service: self.data().service(entry), consumer, address: self.address() }
        };
        let requests = (0..count).map(|n| ask(&endpoint, &asked(n))).collect();
        (endpoint, requests)
    }

    /// Rules that are not there yet. The first so many are those of the data; then each service gets a further consumer.
    fn rules(&mut self, count: u32) -> anyhow::Result<Vec<Vec<u8>>> {
        let authorization = self.cloud.authorization()?;
        let first = self.next_rule;
        self.next_rule += count;
        if u64::from(self.next_rule) > u64::from(self.filled.services()).pow(2) {
            bail!("{} services have no room for {} rules: take more --services", self.filled.services(), self.next_rule);
        }
        Ok((first..first + count).map(|n| self.filled.rule(authorization, n)).collect())
    }

    fn pages(&self, count: u32) -> (Endpoint, Vec<Vec<u8>>) {
        let registry = self.cloud.service_registry.clone();
        let pages = self.filled.services().div_ceil(PAGE_ROWS);
        let page = |n| request::get(&registry, &page_path("/serviceregistry/mgmt", scatter(n, pages), PAGE_ROWS), "application/json");
        let requests = (0..count).map(page).collect();
        (registry, requests)
    }

    /// Subscription `n` is that of the `n`th provider; those beyond the last provider are to a further event type.
    fn subscriptions(&mut self, count: u32) -> anyhow::Result<(Endpoint, Vec<Vec<u8>>)> {
        let handler = self.cloud.event_handler()?.clone();
        let requests = self.fresh_subscriptions(count)?.into_iter().map(|(event_type, subscriber)| {
            let body = request::subscription(&event_type, &subscriber.system(self.address()));
            request::post(&handler, "/eventhandler/subscribe", &body)
        });
        let requests = requests.collect();
        Ok((handler, requests))
    }

    fn unsubscriptions(&mut self, count: u32) -> anyhow::Result<(Endpoint, Vec<Vec<u8>>)> {
        let first = self.next_subscription;
        let (handler, subscriptions) = self.subscriptions(count)?;
        set_up(&handler, &subscriptions, 200, |_, _| {})?;
        self.next_subscription = first;
        let removed = self.fresh_subscriptions(count)?;
        let removal = |(event_type, subscriber): (String, Service)| {
            let Service { provider, port, .. } = subscriber;
            let query = format!("event_type={event_type}&system_name={provider}&address={}&port={port}", self.filled.provider_address());
            request::delete(&handler, &format!("/eventhandler/unsubscribe?{query}"))
        };
        let requests = removed.into_iter().map(removal).collect();
        Ok((handler, requests))
    }

    fn fresh_subscriptions(&mut self, count: u32) -> anyhow::Result<Vec<(String, Service)>> {
        let first = self.next_subscription;
        self.next_subscription += count;
        let services = self.filled.services();
        let subscription = |n: u32| anyhow::Ok((self.tag.event_type(u16::try_from(n / services)?), self.data().service(n % services)));
        (first..first + count).map(subscription).collect()
    }

    fn scattered(&self, n: u32) -> u32 {
        scatter(n, self.filled.services())
    }
}

/// A service and the consumer that may use it.
struct Asked<'a> {
    service: Service,
    consumer: Service,
    address: &'a str,
}

impl Asked<'_> {
    fn consumer(&self) -> serde_json::Value {
        self.consumer.system(self.address)
    }
}

/// Multiplication by a large prime spreads neighbours over all `count`, the same in every run.
fn scatter(n: u32, count: u32) -> u32 {
    u32::try_from(u64::from(n) * 2_654_435_761 % u64::from(count)).expect("below a 32-bit count")
}

/// Path of one page of a management list.
pub fn page_path(list: &str, page: u32, rows: u32) -> String {
    format!("{list}?page={page}&item_per_page={rows}")
}
