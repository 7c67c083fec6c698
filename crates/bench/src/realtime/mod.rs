//! Workloads of topics with periods, over any broker: the experiments with the real-time broker, their floors, and the same load for its peers.
//!
//! A [`workload`] says everything in advance: who publishes what when, and who hears it. The [`publisher`] side and the [`listener`] side are processes of
//! their own, one thread each; a [`run`] starts both, gives them a [`window`], and has the crash happen in it. What is spoken is a [`dialect`].

pub mod acknowledging;
pub mod arrec;
mod cloud_latency;
pub mod connection;
pub mod cover;
pub mod cpep;
pub mod cpu;
pub mod detour;
pub mod dialect;
pub mod durable;
mod echo;
mod figures;
pub mod fleet;
pub mod frame;
pub mod listener;
pub mod payload;
pub mod peer;
mod plain;
pub mod publisher;
pub mod relay;
mod retaining;
mod row;
pub mod run;
pub mod scenario;
mod session;
mod stand;
mod system;
pub mod tally;
#[cfg(test)]
mod tests;
mod timer;
mod topic_file;
mod traffic;
mod trial;
pub mod window;
pub mod workload;
mod zmtp;
