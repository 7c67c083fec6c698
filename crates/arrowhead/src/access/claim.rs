//! What a request says that the rules look at.

use std::{borrow::Cow, fmt};

use crate::form::{OrchestrationForm, ServiceQueryForm, ServiceRegistryRequest, SubscriptionRequest, SystemRequest};

/// The flag of a request on behalf of another cloud.
pub const EXTERNAL_SERVICE_REQUEST: &str = "externalServiceRequest";

/// In whose name a request is, and about what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim<'f> {
    /// Name of the system that the request acts for.
    pub system: Option<Cow<'f, str>>,
    /// The service definition it is about.
    pub service: Option<Cow<'f, str>>,
    /// Whether it says that it is on behalf of another cloud.
    pub is_external: bool,
    /// The public key that it says to be its sender's, where that is kept.
    pub authentication_info: Option<Cow<'f, str>>,
}

impl<'f> Claim<'f> {
    /// To act for the system of this name, where one is given.
    pub fn of_system(name: Option<&'f str>) -> Self {
        Self { system: name.map(Cow::from), ..Self::default() }
    }

    fn of_sender(system: Option<&'f SystemRequest>) -> Self {
        Self::of_system(system.and_then(|system| system.system_name.as_deref()))
    }

    /// To register this system.
    fn of_registered(system: Option<&'f SystemRequest>) -> Self {
        let key = system.and_then(|system| system.authentication_info.as_deref());
        Self { authentication_info: key.map(Cow::from), ..Self::of_sender(system) }
    }
}

impl fmt::Display for Claim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = self.system.as_deref().unwrap_or("no system");
        let service = self.service.as_deref().map_or(Cow::from("no service"), |service| format!("service {service}").into());
        write!(f, "{system}, {service}{}", if self.is_external { ", for another cloud" } else { "" })
    }
}

/// A request that says something which the rules look at.
pub trait Claims {
    /// What it says.
    fn claim(&self) -> Claim<'_>;
}

impl Claims for Claim<'_> {
    fn claim(&self) -> Claim<'_> {
        self.clone()
    }
}

impl Claims for ServiceRegistryRequest {
    fn claim(&self) -> Claim<'_> {
        Claim { service: self.service_definition.as_deref().map(Cow::from), ..Claim::of_registered(self.provider_system.as_ref()) }
    }
}

impl Claims for SystemRequest {
    fn claim(&self) -> Claim<'_> {
        Claim::of_registered(Some(self))
    }
}

impl Claims for ServiceQueryForm {
    fn claim(&self) -> Claim<'_> {
        Claim { service: self.service_definition_requirement.as_deref().map(Cow::from), ..Claim::default() }
    }
}

impl Claims for OrchestrationForm {
    fn claim(&self) -> Claim<'_> {
        let flags = self.orchestration_flags.as_ref();
        let is_external = flags.and_then(|flags| *flags.get(EXTERNAL_SERVICE_REQUEST)?) == Some(true);
        Claim { is_external, ..Claim::of_sender(self.requester_system.as_ref()) }
    }
}

impl Claims for SubscriptionRequest {
    fn claim(&self) -> Claim<'_> {
        Claim::of_sender(self.subscriber_system.as_ref())
    }
}
