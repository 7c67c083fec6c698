//! What an application links to take part in a local cloud: calls to the core systems, and event streams.
//!
//! [`CoreSystems::discover`] asks the Service Registry where the other core systems are; every call is then a method of
//! [`CoreSystems`]. Requests are the forms of [`bodkin_arrowhead::form`] and [`request`], answers the structs of [`answer`];
//! [`Monitor`] is Bodkin's own port. One HTTP/1.1
//! connection is kept to each core system; every wait and every answer has a limit, see [`Limits`]. In a secure cloud a [`Security`]
//! says who calls and who is believed, and [`CoreSystems::discover_securely`] begins.
//!
//! ```no_run
//! use bodkin_arrowhead::form::{OrchestrationForm, ServiceQueryForm, SystemRequest};
//! use bodkin_client::{CallError, CoreSystems, EventForm};
//!
//! # async fn consumer() -> Result<(), CallError> {
//! let cloud = CoreSystems::discover("127.0.0.1:8443").await?;
//! let me = SystemRequest {
//!     system_name: Some("display".into()),
//!     address: Some("192.168.0.7".into()),
//!     port: Some(9000),
//!     ..SystemRequest::default()
//! };
//! cloud.register_system(&me).await?;
//!
//! let offers = cloud
//!     .orchestrate(&OrchestrationForm {
//!         requester_system: Some(me),
//!         requested_service: Some(ServiceQueryForm { service_definition_requirement: Some("temperature".into()), ..Default::default() }),
//!         orchestration_flags: Some([("overrideStore".to_owned(), Some(true))].into()),
//!         ..Default::default()
//!     })
//!     .await?;
//! for offer in offers {
//!     println!("read the temperature at http://{}{}", offer.provider.host_and_port(), offer.service_uri);
//! }
//!
//! let mut events = cloud.events("TEMPERATURE", EventForm::Payload, None).await?;
//! while let Some(event) = events.next().await {
//!     println!("{}: {}", event.event, event.data);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The provider of a service that is secured by token asks every caller for one, in the query parameter `token`, and holds it
//! against the name in the caller's certificate:
//!
//! ```no_run
//! use bodkin_arrowhead::{common_name::SystemCommonName, utc::UtcTime};
//! use bodkin_client::{CoreSystems, TokenVerifier};
//! use bodkin_trust::PrivateKey;
//!
//! # async fn provider(own_key: PrivateKey) -> Result<(), Box<dyn std::error::Error>> {
//! let cloud = CoreSystems::discover("127.0.0.1:8443").await?;
//! let verifier = TokenVerifier::new(&own_key, &cloud.authorization_key().await?)?.for_service("temperature");
//!
//! // For every call:
//! # let (token, common_name, now) = ("", "", UtcTime::from_unix_seconds(0));
//! let caller = SystemCommonName::parse(common_name)?;
//! match verifier.verify(token, &caller, now) {
//!     Ok(claims) => println!("{} reads the temperature over {}", claims.cid, claims.iid),
//!     // The caller is told that it is refused, and not why.
//!     Err(refused) => eprintln!("{caller} is refused: {}", refused.fault()),
//! }
//! # Ok(())
//! # }
//! ```

pub mod answer;
mod authorization;
mod connection;
mod core_systems;
mod error;
mod event_handler;
mod event_parser;
mod event_stream;
mod gatekeeper;
mod limits;
mod log;
mod monitor;
mod onboarding;
mod orchestrator;
mod page;
mod place;
mod query_string;
pub mod realtime;
pub mod request;
mod security;
mod service_registry;
mod stream_request;
mod tls_failure;

pub use connection::{Answer, Connection};
pub use core_systems::CoreSystems;
pub use error::{CallError, Problem, Refusal};
pub use event_parser::{Event, EventParser, EventTooLong, Part};
pub use event_stream::Events;
pub use limits::Limits;
pub use log::LogQuery;
pub use monitor::Monitor;
pub use onboarding::onboard;
pub use page::Page;
pub use security::{Security, SecurityError};
pub use service_registry::Change;
pub use stream_request::{EventForm, Start, StreamRequest};

pub use bodkin_trust::{TokenRefused, TokenVerifier};
