//! Tests against software that was not written here and is not always installed; `./x test --all` runs them.

// The support is the other target's; what this one does not call is called there.
#[allow(dead_code)]
#[path = "../cloud/support/mod.rs"]
mod support;

mod activemq;
mod arrowhead_client;
mod balanced;
mod between;
mod browser;
mod c_sockets;
mod clouds;
mod core_systems;
mod crash;
mod fleet;
mod floating;
mod from_fleet;
mod full_disk;
mod gatekeeper;
mod gateway;
mod java_client;
mod jersey;
mod jetstream;
mod jms;
mod jose;
mod keytool;
mod mariadb;
mod maven;
mod nats_certificates;
mod nats_monitoring;
mod network;
mod node_events;
mod node_identity;
mod node_log;
mod node_resume;
#[allow(dead_code)]
#[path = "../cloud/pair/nodes.rs"]
mod nodes;
mod nss;
mod only_taking;
mod openssl;
mod outage;
mod page;
mod pair_clients;
mod postgres;
mod program;
mod proxied;
mod relay_test;
mod rolling;
mod schemathesis;
mod several;
mod several_announced;
mod shared;
mod shared_audit;
mod shared_certificates;
mod shared_tls;
mod slow;
mod taskfarm;
mod tls;
mod zmtp;
mod zmtp_port;
