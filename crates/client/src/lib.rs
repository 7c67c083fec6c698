//! What an application links to take part in a local cloud: calls to the core systems, and event streams.
//!
//! [`CoreSystems::discover`] asks the Service Registry where the other core systems are; every call is then a method of
//! [`CoreSystems`]. Requests are the forms of [`bodkin_arrowhead::form`] and [`request`], answers the structs of [`answer`];
//! [`Monitor`] is Bodkin's own port. One HTTP/1.1
//! connection is kept to each core system; every wait and every answer has a limit, see [`Limits`].
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

pub mod answer;
mod authorization;
mod connection;
mod core_systems;
mod error;
mod event_handler;
mod event_parser;
mod event_stream;
mod limits;
mod log;
mod monitor;
mod orchestrator;
mod page;
mod query_string;
pub mod request;
mod service_registry;
mod stream_request;

pub use connection::{Answer, Connection};
pub use core_systems::CoreSystems;
pub use error::{CallError, Problem, Refusal};
pub use event_parser::{Event, EventParser, EventTooLong, Part};
pub use event_stream::Events;
pub use limits::Limits;
pub use log::LogQuery;
pub use monitor::Monitor;
pub use page::Page;
pub use service_registry::Change;
pub use stream_request::{EventForm, Start, StreamRequest};
