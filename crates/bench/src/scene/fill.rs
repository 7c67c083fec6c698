//! Brings a cloud to a named state.

use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::data::{self, Service};
use crate::endpoint::Endpoint;
use crate::expectation::{Expectation, Faults};
use crate::lanes::{SET_UP_LANES, drive};
use crate::operation::Needs;
use crate::request::{self, Registered};
use crate::state::State;

/// Set-up requests that are written and sent in one go.
const SET_UP_BATCH: usize = 10_000;
/// Entries of the orchestration store in one request.
const STORE_ENTRIES: usize = 500;

/// What a cloud was filled with, and the ids it gave.
#[derive(Debug)]
pub struct Filled {
    state: State,
    provider_address: String,
    registered: Vec<Registered>,
    /// In secure mode the public key of all providers.
    authentication_info: Option<String>,
    /// By service, the entry whose provider is its consumer.
    consumers: Vec<u32>,
}

impl Filled {
    /// Brings the cloud to the state, with rules and store entries where they are needed.
    ///
    /// # Errors
    /// A registration, a rule or an entry is refused.
    pub fn fill(cloud: &Cloud, state: State, needs: Needs, provider_address: &str) -> anyhow::Result<Arc<Self>> {
        let consumers = data::consumers(state.seed, state.services);
        let provider_address = provider_address.to_string();
        let authentication_info = cloud.certificates.as_ref().map(|certificates| certificates.authentication_info()).transpose()?;
        let mut filled = Self { state, provider_address, registered: Vec::new(), authentication_info, consumers };
        filled.fill_services(&cloud.service_registry)?;
        if matches!(needs, Needs::Rules | Needs::Store) {
            filled.fill_rules(cloud.authorization()?)?;
        }
        if needs == Needs::Store {
            filled.fill_store(cloud.orchestrator()?)?;
        }
        Ok(Arc::new(filled))
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The ids of the services, in their order.
    pub fn registered(&self) -> &[Registered] {
        &self.registered
    }

    /// Address of every provider.
    pub fn provider_address(&self) -> &str {
        &self.provider_address
    }

    /// How many services there are.
    pub fn services(&self) -> u32 {
        self.state.services
    }

    /// The entry whose provider may use this service.
    pub fn consumer(&self, service: u32) -> u32 {
        self.consumers[service as usize]
    }

    /// The `n`th rule as a request: for each service first its own consumer, in the next round the one after that.
    pub fn rule(&self, authorization: &Endpoint, n: u32) -> Vec<u8> {
        let services = self.services();
        let (service, round) = (n % services, n / services);
        let consumer = (u64::from(self.consumer(service)) + u64::from(round)) % u64::from(services);
        let consumer = &self.registered[usize::try_from(consumer).expect("below a 32-bit count")];
        let body = request::rule(consumer.provider_id, &self.registered[service as usize]);
        request::post(authorization, "/authorization/mgmt/intracloud", &body)
    }

    /// The registration of a service, as the provider itself asks for it.
    pub fn registration(&self, registry: &Endpoint, service: &Service) -> Vec<u8> {
        self.registering(registry, "/serviceregistry/register", service)
    }

    /// In secure mode nobody may register for others but management.
    fn set_up_registration(&self, registry: &Endpoint, service: &Service) -> Vec<u8> {
        let path = if self.authentication_info.is_some() { "/serviceregistry/mgmt" } else { "/serviceregistry/register" };
        self.registering(registry, path, service)
    }

    fn registering(&self, registry: &Endpoint, path: &str, service: &Service) -> Vec<u8> {
        request::post(registry, path, &service.registration(&self.provider_address, self.authentication_info.as_deref()))
    }

    fn service(&self, n: u32) -> Service {
        self.state.data().service(n)
    }

    fn fill_services(&mut self, registry: &Endpoint) -> anyhow::Result<()> {
        for first in (0..self.services()).step_by(SET_UP_BATCH) {
            let last = self.services().min(first + u32::try_from(SET_UP_BATCH)?);
            let services: Vec<_> = (first..last).map(|n| self.service(n)).collect();
            let mut registered = vec![None; services.len()];
            let requests: Vec<_> = services.iter().map(|service| self.set_up_registration(registry, service)).collect();
            let refused = try_set_up(registry, &requests, 201, |index, body| registered[index] = Registered::read(body))?;
            if refused.count > 0 {
                self.find_registered(registry, &services, &mut registered, &refused)?;
            }
            for service in registered {
                self.registered.push(service.context("the answer to a registration holds no ids")?);
            }
        }
        Ok(())
    }

    /// A foreign cloud may hold the same data from an earlier run: what it refused is looked for.
    fn find_registered(
        &self,
        registry: &Endpoint,
        services: &[Service],
        registered: &mut [Option<Registered>],
        refused: &Faults,
    ) -> anyhow::Result<()> {
        let missing: Vec<usize> = (0..services.len()).filter(|index| registered[*index].is_none()).collect();
        let query = |index: &usize| request::post(registry, "/serviceregistry/query", &request::query(&services[*index].definition));
        let requests: Vec<_> = missing.iter().map(query).collect();
        set_up(registry, &requests, 200, |index, body| registered[missing[index]] = Registered::read_query(body))?;
        if registered.iter().any(Option::is_none) {
            bail!("{} of {} registrations were refused: {}", refused.count, services.len(), refused.first.join("; "));
        }
        Ok(())
    }

    fn fill_rules(&self, authorization: &Endpoint) -> anyhow::Result<()> {
        for first in (0..self.services()).step_by(SET_UP_BATCH) {
            let last = self.services().min(first + u32::try_from(SET_UP_BATCH)?);
            let requests: Vec<_> = (first..last).map(|n| self.rule(authorization, n)).collect();
            set_up(authorization, &requests, 201, |_, _| {})?;
        }
        Ok(())
    }

    fn fill_store(&self, orchestrator: &Endpoint) -> anyhow::Result<()> {
        let entries: Vec<Value> = (0..self.services()).map(|n| self.store_entry(n)).collect();
        let requests: Vec<_> =
            entries.chunks(STORE_ENTRIES).map(|entries| request::post(orchestrator, "/orchestrator/mgmt/store", &json!(entries))).collect();
        let mut saved = 0;
        set_up(orchestrator, &requests, 200, |_, body| {
            // An entry that is wrong is left out without an error: only the count tells.
            let answer: Value = serde_json::from_slice(body).unwrap_or_default();
            saved += answer["count"].as_u64().unwrap_or(0);
        })?;
        if saved != entries.len() as u64 {
            bail!("the orchestration store took {saved} of {} entries", entries.len());
        }
        Ok(())
    }

    fn store_entry(&self, n: u32) -> Value {
        let service = self.service(n);
        let consumer = &self.registered[self.consumer(n) as usize];
        request::store_entry(consumer.provider_id, &service.definition, service.interface, &service.system(&self.provider_address))
    }
}

/// Sends what must succeed.
///
/// # Errors
/// Something was refused.
pub fn set_up(endpoint: &Endpoint, requests: &[Vec<u8>], status: u16, answered: impl FnMut(usize, &[u8])) -> anyhow::Result<()> {
    let faults = try_set_up(endpoint, requests, status, answered)?;
    if faults.count > 0 {
        bail!("{} of {} set-up requests failed: {}", faults.count, requests.len(), faults.first.join("; "));
    }
    Ok(())
}

fn try_set_up(endpoint: &Endpoint, requests: &[Vec<u8>], status: u16, mut answered: impl FnMut(usize, &[u8])) -> anyhow::Result<Faults> {
    let mut faults = Faults::default();
    let expectation = Expectation::status(status);
    drive(endpoint, requests, None, SET_UP_LANES, &mut |exchange| match exchange.answer {
        Err(why) => faults.add(why),
        Ok(answer) => match expectation.fault(answer.status(), answer.body()) {
            Some(fault) => faults.add(fault),
            None => answered(exchange.index, answer.body()),
        },
    })?;
    Ok(faults)
}
