//! Service Registry: who offers what (reference section 3).

mod address_detection;
mod grouped;
mod liveness;
mod query;
mod registration;
mod unregistration;

pub(crate) use self::query::offered_step;
pub use self::{
    address_detection::{AddressDetection, Sender},
    grouped::GroupedServices,
    liveness::{Deregistration, Probe, ServiceLife, ServiceState},
    query::{Query, QueryResult, QueryResults, parse_queries, query, query_each},
    registration::{EntryPatch, Registration, parse_new_definition, parse_new_interface},
    unregistration::{Unregistration, parse_system_parameters},
};
