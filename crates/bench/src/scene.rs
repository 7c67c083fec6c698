//! A cloud with services, rules and a consumer in it, and the requests that fit them.

use anyhow::{Context, bail};
use serde_json::Value;

use crate::client::Client;
use crate::cloud::Cloud;
use crate::endpoint::Endpoint;
use crate::expectation::{Expectation, Faults};
use crate::lanes::{SET_UP_LANES, drive};
use crate::request::{self, Identified, Registered, RunTag};

/// Port of the consumers that the bench registers; nothing listens there.
const CONSUMER_PORT: u16 = 9_999;
/// Set-up requests that are written and sent in one go.
const SET_UP_BATCH: usize = 10_000;

/// The kinds of request under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Registration of a service.
    Register,
    /// Service Registry query.
    Query,
    /// Insert of an authorization rule.
    Authorize,
    /// Dynamic orchestration.
    Orchestrate,
}

impl Operation {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Query => "query",
            Self::Authorize => "authorize",
            Self::Orchestrate => "orchestrate",
        }
    }

    /// Whether a request leaves something behind.
    pub fn writes(self) -> bool {
        matches!(self, Self::Register | Self::Authorize)
    }

    /// What a good answer has.
    pub fn expectation(self) -> Expectation {
        match self {
            Self::Register | Self::Authorize => Expectation { status: 201, filled_list: None },
            Self::Query => Expectation { status: 200, filled_list: Some("serviceQueryData") },
            Self::Orchestrate => Expectation { status: 200, filled_list: Some("response") },
        }
    }
}

/// Requests ready to be sent.
pub struct Batch {
    /// To which system.
    pub endpoint: Endpoint,
    /// Whole requests.
    pub requests: Vec<Vec<u8>>,
    /// What a good answer has.
    pub expectation: Expectation,
}

/// What the bench put into a cloud under one tag.
pub struct Scene {
    /// The cloud.
    pub cloud: Cloud,
    tag: RunTag,
    provider_address: String,
    /// Services that were filled in; names below this number are taken by them.
    services: Vec<Registered>,
    /// Next number of a service that a load registers.
    next_service: u32,
    next_consumer: u32,
    /// The consumer that may use every service, once there is one.
    consumer: Option<Consumer>,
}

struct Consumer {
    id: i64,
    system: Value,
    /// The first so many services are allowed to it.
    allowed: usize,
}

/// Numbers from here on are those of services that a load registers.
const LOAD_SERVICES_FROM: u32 = 1_000_000_000;

impl Scene {
    /// A cloud with nothing of this run in it.
    pub fn new(cloud: Cloud, tag: RunTag, provider_address: &str) -> Self {
        let provider_address = provider_address.to_string();
        Self { cloud, tag, provider_address, services: Vec::new(), next_service: LOAD_SERVICES_FROM, next_consumer: 0, consumer: None }
    }

    /// Fills in what the operation needs until there are so many services, and the rules for them.
    ///
    /// # Errors
    /// A registration or a rule is refused.
    pub fn fill(&mut self, operation: Operation, services: u32) -> anyhow::Result<()> {
        if operation == Operation::Register {
            return Ok(());
        }
        self.fill_services(services as usize)?;
        if operation == Operation::Orchestrate {
            self.fill_rules()?;
        }
        Ok(())
    }

    /// Registers services until there are so many.
    ///
    /// # Errors
    /// A registration is refused.
    pub fn fill_services(&mut self, services: usize) -> anyhow::Result<()> {
        let registry = self.cloud.service_registry.clone();
        while self.services.len() < services {
            let first = self.services.len();
            let last = services.min(first + SET_UP_BATCH);
            let requests: Vec<_> =
                (first..last).map(|n| self.registration(&registry, u32::try_from(n).expect("an option of 32 bits"))).collect();
            let mut registered = vec![None; requests.len()];
            set_up(&registry, &requests, 201, |index, body| registered[index] = Registered::read(body))?;
            for service in registered {
                self.services.push(service.context("the answer to a registration holds no ids")?);
            }
        }
        Ok(())
    }

    fn fill_rules(&mut self) -> anyhow::Result<()> {
        let authorization = self.cloud.authorization()?.clone();
        let consumer = match self.consumer.take() {
            Some(consumer) => consumer,
            None => self.new_consumer()?,
        };
        for services in self.services[consumer.allowed..].chunks(SET_UP_BATCH) {
            let requests: Vec<_> = services.iter().map(|service| rule(&authorization, consumer.id, service)).collect();
            set_up(&authorization, &requests, 201, |_, _| {})?;
        }
        self.consumer = Some(Consumer { allowed: self.services.len(), ..consumer });
        Ok(())
    }

    fn new_consumer(&mut self) -> anyhow::Result<Consumer> {
        let name = self.tag.consumer(self.next_consumer);
        self.next_consumer += 1;
        let system = request::system(&name, &self.provider_address, CONSUMER_PORT);
        let registry = &self.cloud.service_registry;
        let answer: Identified =
            Client::connect(registry)?.ask(&request::post(registry, "/serviceregistry/register-system", &system), 201)?;
        Ok(Consumer { id: answer.id, system, allowed: 0 })
    }

    fn registration(&self, registry: &Endpoint, n: u32) -> Vec<u8> {
        request::post(registry, "/serviceregistry/register", &request::registration(&self.tag, n, &self.provider_address))
    }

    /// So many requests of this kind: names and rules are fresh, lookups go over all services in a scattered order.
    ///
    /// # Errors
    /// The system is not there, or a consumer is refused.
    pub fn requests(&mut self, operation: Operation, count: u32) -> anyhow::Result<Batch> {
        let registry = self.cloud.service_registry.clone();
        let expectation = operation.expectation();
        if operation != Operation::Register && self.services.is_empty() {
            bail!("the cloud was not filled");
        }
        let (endpoint, requests) = match operation {
            Operation::Register => {
                let first = self.next_service;
                self.next_service += count;
                let requests = (first..first + count).map(|n| self.registration(&registry, n)).collect();
                (registry, requests)
            }
            Operation::Query => {
                let body = |n| request::query(&self.tag.service(self.scattered(n)));
                let requests = (0..count).map(|n| request::post(&registry, "/serviceregistry/query", &body(n))).collect();
                (registry, requests)
            }
            Operation::Authorize => (self.cloud.authorization()?.clone(), self.rules(count)?),
            Operation::Orchestrate => {
                let endpoint = self.cloud.orchestrator()?.clone();
                let requester = &self.consumer.as_ref().context("the cloud has no rules")?.system;
                let body = |n| request::orchestration(requester, &self.tag.service(self.scattered(n)));
                let requests = (0..count).map(|n| request::post(&endpoint, "/orchestrator/orchestration", &body(n))).collect();
                (endpoint, requests)
            }
        };
        Ok(Batch { endpoint, requests, expectation })
    }

    /// Rules that are not there yet: each new consumer may use each service once.
    fn rules(&mut self, count: u32) -> anyhow::Result<Vec<Vec<u8>>> {
        let authorization = self.cloud.authorization()?.clone();
        let count = count as usize;
        let mut requests = Vec::with_capacity(count);
        while requests.len() < count {
            let consumer = self.new_consumer()?;
            let left = count - requests.len();
            requests.extend(self.services.iter().take(left).map(|service| rule(&authorization, consumer.id, service)));
        }
        Ok(requests)
    }

    /// Multiplication by a large prime spreads neighbours over the whole registry, the same in every run.
    fn scattered(&self, n: u32) -> u32 {
        let services = self.services.len() as u64;
        u32::try_from(u64::from(n) * 2_654_435_761 % services).expect("below a 32-bit count")
    }
}

fn rule(authorization: &Endpoint, consumer_id: i64, service: &Registered) -> Vec<u8> {
    request::post(authorization, "/authorization/mgmt/intracloud", &request::rule(consumer_id, service))
}

/// Sends what must succeed.
fn set_up(endpoint: &Endpoint, requests: &[Vec<u8>], status: u16, mut answered: impl FnMut(usize, &[u8])) -> anyhow::Result<()> {
    let mut faults = Faults::default();
    let expectation = Expectation { status, filled_list: None };
    drive(endpoint, requests, None, SET_UP_LANES, &mut |exchange| match exchange.answer {
        Err(why) => faults.add(why),
        Ok(answer) => match expectation.fault(answer.status(), answer.body()) {
            Some(fault) => faults.add(fault),
            None => answered(exchange.index, answer.body()),
        },
    })?;
    if faults.count > 0 {
        bail!("{} of {} set-up requests failed: {}", faults.count, requests.len(), faults.first.join("; "));
    }
    Ok(())
}
