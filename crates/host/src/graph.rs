//! Event-processing graphs at work: the threads that run operators, what they share with the shard, and what is counted.
//!
//! The shard decides who runs next (`broker::graph::machine`, driven in `shard::graph`). A worker runs one round at a time of what it is handed, and wakes the shard when it is over. A
//! round's operator, events and result are behind locks for which nobody ever waits ([`plant`] says why); a panic or an endless step of an operator stops its graph and nothing
//! else ([`contain`], [`crew`]).

mod causes;
pub mod contain;
mod counts;
mod crew;
mod declared;
mod deployer;
mod deployment;
mod link;
mod moving;
mod plant;
mod table;
mod throttle;
mod workers;

pub use self::{
    causes::Made,
    counts::{GraphCounts, OperatorCounts, Suspension},
    crew::Crew,
    declared::{DeclaredGraph, DeclaredGraphs, GraphError, Lateness, parse},
    deployer::{AtWork, DeployError, Deployer},
    deployment::{Deployment, HeldEvent, Inheritance},
    link::{Acknowledged, CARRIED_MAX, CarriedEvent, Carriers, Carry, EdgeLink, LinkState, LinkTopic, ReachedEdge},
    moving::{Gone, Moves, PrepareError, Prepared, handover_of, handover_text, note_at_work},
    plant::Ended,
    table::{DeployedGraph, GraphTable},
    throttle::{Throttle, used},
    workers::Processors,
};
