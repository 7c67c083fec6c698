//! Event-processing graphs: events are processed on their way from topic to topic.
//!
//! A [`Graph`] says which operators run on which events, how urgent each of them is (levels flow upstream from the outputs) and how long what comes out is valid.
//! [`machine`] runs it: which operator is next on which events, and what becomes of the results. [`response`] says beforehand how long every output takes at the worst.
//! What an operator computes is behind the trait [`Operator`]; the functions are in the crate `operators`.
//!
//! Source: Wang, *Real-Time Reliable Middleware for Industrial IoT*, 2019, chapter 2 (CPEP).

mod carried;
pub mod checkpoint;
mod cover;
pub mod handover;
pub mod machine;
mod operator;
mod order;
pub mod placement;
pub mod response;
mod shape;
mod spec;
#[cfg(test)]
mod testing;
mod unshared;

pub use self::{
    carried::{Arrival, Carried},
    cover::{Cover, RUNS_MAX, Taken},
    operator::{Emission, Event, Fault, Inputs, Operator, StateError},
    order::{Cycle, order},
    shape::{Count, Element, Shape, ShapeError},
    spec::{
        EVENTS_MAX, Edge, Graph, GraphFault, INPUTS_MAX, LEADS_MAX, OPERATORS_MAX, OUTPUTS_MAX, OnInvalid, OperatorId, OperatorSpec,
        Output, RelativeValidity, SUPPLIERS_MAX, Source, Supplier, SupplierId, Trigger, Use,
    },
};
