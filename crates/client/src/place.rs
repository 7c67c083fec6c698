//! Where a server is: at an address, at one of the two of a reliable pair, or where the pair's Service Registry says.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bodkin_arrowhead::{core_service::CoreSystem, form::ServiceQueryForm};

use crate::{connection::Connection, error::CallError, service_registry};

/// Between two rounds through the addresses of a pair.
const ROUND_PAUSE: Duration = Duration::from_millis(50);

/// How a core system is found in the Service Registry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreService {
    /// Whose certificate it shows.
    pub system: CoreSystem,
    /// What people call it.
    pub told: &'static str,
    /// A service of it that every system may look up in secure mode (reference section 11).
    pub definition: &'static str,
}

/// Where a server is at present, and how that is found out anew.
pub(crate) struct Place {
    /// `host:port` of the next call.
    current: Mutex<Arc<str>>,
    among: Among,
}

/// Where else it may be.
#[derive(Clone)]
enum Among {
    /// Nowhere.
    One,
    /// At one of these.
    Pair([Arc<str>; 2]),
    /// At the provider of a core service, whichever node of the pair leads.
    Registered { registry: Arc<Connection>, service: CoreService },
}

impl Place {
    /// `host:port`, or `host:port,host:port` of the two nodes of a pair.
    pub fn of(addresses: &str) -> Self {
        match addresses.split_once(',') {
            Some((first, second)) => {
                let pair: [Arc<str>; 2] = [first, second].map(|address| Arc::from(address.trim()));
                Self { current: Mutex::new(pair[0].clone()), among: Among::Pair(pair) }
            }
            None => Self { current: Mutex::new(addresses.into()), among: Among::One },
        }
    }

    /// At `address`, where `registry` has named the provider of a core service. If the registry is a pair's, it is asked again when the
    /// provider is gone: the other node's core systems have addresses of their own.
    pub fn registered(address: &str, registry: &Arc<Connection>, service: CoreService) -> Self {
        let among = if registry.place().is_pair() { Among::Registered { registry: registry.clone(), service } } else { Among::One };
        Self { current: Mutex::new(address.into()), among }
    }

    /// `host:port` of the next call.
    pub fn current(&self) -> Arc<str> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it may be elsewhere.
    pub fn is_pair(&self) -> bool {
        !matches!(self.among, Among::One)
    }

    /// Looks for it elsewhere than at `missed`, unless somebody has done so already.
    ///
    /// Named as a boxed future, for the registry is asked by a call that may have to look elsewhere itself.
    pub fn leave<'p>(&'p self, missed: &'p Arc<str>) -> Pin<Box<dyn Future<Output = Result<(), CallError>> + Send + 'p>> {
        Box::pin(async move {
            let next = match &self.among {
                Among::One => return Ok(()),
                Among::Pair([first, second]) => if *missed == *first { second } else { first }.clone(),
                Among::Registered { registry, service } => provider(registry, *service).await?.as_str().into(),
            };
            let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            if *current == *missed {
                *current = next;
            }
            Ok(())
        })
    }
}

impl Clone for Place {
    fn clone(&self) -> Self {
        Self { current: Mutex::new(self.current()), among: self.among.clone() }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.among {
            Among::Pair([first, second]) => write!(f, "{first} and {second}"),
            Among::One | Among::Registered { .. } => f.write_str(&self.current()),
        }
    }
}

/// `host:port` of the provider of a core service. Of several the last counts, as among Arrowhead's own core systems.
pub(crate) async fn provider(registry: &Connection, CoreService { told, definition, .. }: CoreService) -> Result<String, CallError> {
    let form = ServiceQueryForm { service_definition_requirement: Some(definition.into()), ..ServiceQueryForm::default() };
    let found = service_registry::query(registry, &form).await.map_err(|error| registry.perhaps_secure(error))?;
    let last = found.service_query_data.last().map(|service| service.provider.host_and_port());
    last.ok_or_else(|| CallError::NotOffered { registry: registry.place().to_string(), system: told, definition })
}

/// The attempts of one call.
pub(crate) struct Search<'p> {
    place: &'p Place,
    /// Where the present attempt goes.
    at: Arc<str>,
    begun: Instant,
    limit: Duration,
    attempts: u32,
}

impl<'p> Search<'p> {
    /// The first attempt; others follow for `limit` at the longest.
    pub fn begin(place: &'p Place, limit: Duration) -> Self {
        Self { place, at: place.current(), begun: Instant::now(), limit, attempts: 1 }
    }

    /// Whether another attempt may be made after one that failed so; the error where none may.
    ///
    /// What was surely not carried out is asked of the other node. What may have been is repeated only if it is harmless, for the node that
    /// died may have carried it out, and the other one has it then.
    pub async fn go_on(&mut self, error: CallError, is_harmless: bool) -> Result<(), CallError> {
        let is_open = match &error {
            CallError::Unreachable { .. } | CallError::DoesNotLead { .. } => true,
            CallError::Interrupted { .. } => is_harmless,
            _ => false,
        };
        if !is_open || !self.place.is_pair() {
            return Err(error);
        }
        if self.begun.elapsed() >= self.limit {
            return Err(CallError::NobodyLeads { addresses: self.place.to_string(), limit: self.limit, why: error.to_string() });
        }
        match self.place.leave(&self.at).await {
            // The node that leads now is about to name its core systems.
            Ok(()) | Err(CallError::NotOffered { .. }) => {}
            Err(error) => return Err(error),
        }
        if self.attempts.is_multiple_of(2) {
            tokio::time::sleep(ROUND_PAUSE).await;
        }
        self.attempts += 1;
        self.at = self.place.current();
        Ok(())
    }
}
