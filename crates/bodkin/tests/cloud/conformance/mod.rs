//! The wire, row by row: what is sent, and what must come back.

mod authorization;
mod authorization_check;
mod coverage;
pub mod endpoint;
mod event_delivery;
mod event_handler;
mod event_updates;
mod every_endpoint;
mod framework;
mod framework_everywhere;
mod logs;
mod management_tool;
mod orchestrator;
mod orchestrator_store;
mod paging;
mod recorded;
mod registry_lists;
mod registry_management;
mod registry_query;
mod registry_register;
mod registry_unregister;
mod self_registration;
mod shape;
mod table;
mod tour;
