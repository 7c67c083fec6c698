//! The rules and JSON forms of the Eclipse Arrowhead 4.x core systems, as pure functions.
//!
//! Bytes become forms ([`json`], [`form`]), forms become operations whose members cannot be wrong ([`name`], [`address`],
//! [`utc`]), and operations are decided against an immutable [`snapshot::Snapshot`] of the local cloud. What must be made
//! durable leaves as a value (for instance [`service_registry::Registration`]); the store's database has the last word on
//! conflicts. Nothing here knows HTTP, a clock or a database.

pub mod access;
pub mod address;
pub mod audit;
pub mod auth_update;
pub mod authorization;
pub mod base64;
pub mod caller;
pub mod cloud;
pub mod common_name;
pub mod core_service;
pub mod dialogue;
pub mod dns_sd;
pub mod error;
pub mod event_filter;
pub mod event_handler;
pub mod explanation;
pub mod form;
pub mod gatekeeper;
pub mod gateway;
pub mod hex;
pub mod json;
pub mod ledger_line;
pub mod log;
pub mod metadata;
pub mod name;
pub mod onboarding;
pub mod orchestrator;
pub mod page;
pub mod pinned;
pub mod publication;
pub mod record;
pub mod service_registry;
pub mod shared_event;
pub mod snapshot;
pub mod system;
mod table;
pub mod trace;
pub mod utc;
