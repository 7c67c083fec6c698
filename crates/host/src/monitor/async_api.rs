//! `GET /asyncapi.json`: which events can be published and heard on this node, and how.

use bodkin_arrowhead::core_service::CoreSystem;

use super::Monitor;
use crate::{
    answer::Answer,
    document::async_api::{HTTP_SERVER, Place, ZMTP_SERVER, async_api},
    host_name,
    request::Request,
};

impl Monitor {
    /// Hosts are named as whoever asks has named this one.
    pub(super) fn async_api(&self, request: &Request) -> Answer {
        let is_secure = self.security.is_some();
        let authority = request.url.split('/').nth(2).unwrap_or_default();
        let host = host_name::name_of(authority).unwrap_or(authority);
        let place = |name, protocol, port: u16| Place { name, protocol, host: format!("{host}:{port}") };
        let scheme = if is_secure { "https" } else { "http" };
        let http = place(HTTP_SERVER, scheme, self.port_of(CoreSystem::EventHandler));
        let zmtp = self.api.zmtp.address.map(|address| place(ZMTP_SERVER, "zmtp", address.port()));
        let places: Vec<Place> = [http].into_iter().chain(zmtp).collect();
        Answer::json(200, &async_api(&places, is_secure, &self.api.promised()))
    }
}
