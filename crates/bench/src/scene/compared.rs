//! Requests that are the same in insecure and in secure mode, and as whom they are sent.

use anyhow::bail;
use serde_json::Value;

use super::{Batch, Scene};
use crate::data::Service;
use crate::endpoint::Endpoint;
use crate::operation::Operation;
use crate::request;

/// What any system may look up, in secure mode as well.
const PUBLIC_SERVICE: &str = "orchestration-service";

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Askers {
    /// Nobody looks: insecure mode alone.
    Anyone,
    /// Each request comes from the system that it is for.
    Each,
    /// All come from one system, over kept connections.
    One,
}

impl Askers {
    /// Which of two for request `n`.
    fn choose(self, n: u32) -> u32 {
        if self == Self::One { 0 } else { n }
    }
}

/// A request and the system that sends it.
type Sent = (String, Vec<u8>);

impl Scene {
    /// So many requests of this kind.
    ///
    /// # Errors
    /// The system is not there, the state has nothing to ask for, or this kind is not compared.
    pub fn asked(&mut self, operation: Operation, count: u32, askers: Askers) -> anyhow::Result<Batch> {
        match askers {
            Askers::Anyone => self.requests(operation, count),
            Askers::Each | Askers::One => self.compared(operation, count, askers),
        }
    }

    /// So many requests of this kind; in secure mode each is sent as the system that asks, which gets its certificate here.
    ///
    /// # Errors
    /// This kind is not compared, or what it needs is not there.
    fn compared(&mut self, operation: Operation, count: u32, askers: Askers) -> anyhow::Result<Batch> {
        let (endpoint, sent) = match operation {
            Operation::Register => self.compared_registrations(count, askers),
            Operation::Query => self.compared_lookups(count, askers, self.cloud.service_registry.clone(), |endpoint, _, _| {
                request::post(endpoint, "/serviceregistry/query", &request::query(PUBLIC_SERVICE))
            }),
            Operation::Orchestrate => {
                self.compared_lookups(count, askers, self.cloud.orchestrator()?.clone(), |endpoint, service, consumer| {
                    request::post(endpoint, "/orchestrator/orchestration", &request::orchestration(consumer, &service.definition))
                })
            }
            // Management: the operator on every connection.
            Operation::Authorize => return self.requests(operation, count),
            other => bail!("{} is not measured with --secure: register, query, authorize and orchestrate are", other.name()),
        };
        self.as_senders(endpoint, sent, operation, askers)
    }

    fn compared_registrations(&mut self, count: u32, askers: Askers) -> (Endpoint, Vec<Sent>) {
        let registry = self.cloud.service_registry.clone();
        // One provider for all of them is that of the first service of the data, whichever those are that are registered.
        let first = self.data().service(0);
        let services = self.fresh_services(count).into_iter().map(|service| match askers {
            Askers::One => Service { provider: first.provider.clone(), port: first.port, ..service },
            Askers::Each | Askers::Anyone => service,
        });
        let sent = services.map(|service| (service.provider.clone(), self.filled.registration(&registry, &service))).collect();
        (registry, sent)
    }

    fn compared_lookups(
        &self,
        count: u32,
        askers: Askers,
        endpoint: Endpoint,
        ask: impl Fn(&Endpoint, &Service, &Value) -> Vec<u8>,
    ) -> (Endpoint, Vec<Sent>) {
        let sent = (0..count).map(|n| {
            let entry = self.scattered(askers.choose(n));
            let consumer = self.data().service(self.filled.consumer(entry));
            let request = ask(&endpoint, &self.data().service(entry), &consumer.system(self.address()));
            (consumer.provider, request)
        });
        let sent = sent.collect();
        (endpoint, sent)
    }

    fn as_senders(&self, endpoint: Endpoint, sent: Vec<Sent>, operation: Operation, askers: Askers) -> anyhow::Result<Batch> {
        let (senders, requests): (Vec<String>, Vec<Vec<u8>>) = sent.into_iter().unzip();
        let mut batch = Batch { endpoint, requests, callers: Vec::new(), expectation: operation.expectation() };
        if let Some(certificates) = &self.cloud.certificates {
            certificates.issue(senders.iter().map(String::as_str))?;
            match (askers, senders.first()) {
                (Askers::One, Some(sender)) => batch.endpoint = batch.endpoint.called_as(&certificates.caller(sender)?),
                _ => batch.callers = certificates.callers(senders.iter().map(String::as_str))?,
            }
        }
        Ok(batch)
    }
}
