//! Orchestrator: what a consumer should use (reference section 5).
//!
//! Whatever the source, the registry or one of the two stores, an orchestration is a list of [`candidates`] in the order
//! they are to be tried, of which [`orchestrate`] keeps what is permitted, free and preferred. Between the two calls
//! candidates may have to be pinged, or to be as good as is required ([`with_quality`]); connecting and measuring are the host's part.

mod account;
mod decision;
mod elsewhere;
pub mod flexible_store;
mod measured;
mod probe;
mod quality;
mod request;
pub mod reservation;
mod result;
pub mod store;
mod token;
mod tried;

pub use self::{
    account::*,
    decision::*,
    elsewhere::{Elsewhere, StoredProvider, When},
    measured::{Found, Measured, MeasuredBy, times_ms},
    probe::{ProbeMethod, ServiceProbe},
    quality::{limits_among, with_quality},
    request::*,
    result::*,
    tried::Tried,
};
