//! Endpoints of the Service Registry (reference section 3).

mod definitions;
mod entries;
mod interfaces;
mod lookups;
mod systems;

use bodkin_arrowhead::{
    access::{Admitted, Claim},
    core_service::CoreSystem,
    service_registry,
    system::SystemKey,
};

use super::{Control, Result, not_a_number, required};
use crate::request::Request;

const SYSTEM: CoreSystem = CoreSystem::ServiceRegistry;

impl Control {
    /// The address of a system that acts for itself: as given or, with the detector on, where its request came from.
    fn located(&self, given: Option<&str>, request: &Request, origin: &str) -> Result<Option<String>> {
        match (&self.address_detection, &request.sender) {
            (Some(detection), Some(sender)) => Ok(Some(detection.locate(given, sender, &self.naming, origin)?)),
            _ => Ok(given.map(str::to_owned)),
        }
    }

    /// The system that query parameters name, and that acts for itself.
    fn own_system(&self, request: &Request, admitted: Admitted<'_>, origin: &str) -> Result<SystemKey> {
        admitted.permit(Claim::of_system(request.parameter("system_name"))).map_err(|denial| request.denied(&denial))?;
        let (name, port) = (required(request, "system_name")?, port(request)?);
        let address = self.located(request.parameter("address"), request, origin)?.unwrap_or_default();
        Ok(service_registry::parse_system_parameters(name, &address, port, origin)?)
    }
}

/// The parameters that name a system; all of them must be there, and the port must be a number.
pub(super) fn system_parameters(request: &Request) -> Result<(&str, &str, i64)> {
    Ok((required(request, "system_name")?, required(request, "address")?, port(request)?))
}

fn port(request: &Request) -> Result<i64> {
    required(request, "port")?.trim().parse().map_err(|_| not_a_number("port"))
}
