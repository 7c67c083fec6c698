//! Who may use what in secure mode (reference section 11).
//!
//! Three rules, in this order and before any other check of an operation: the certificate names a system of this cloud; the
//! operation is for that system ([`Access::admit`]); what the request says is its to say ([`Admitted::permit`]). Insecure mode
//! asks none of them. [`explain`] tells what each of them finds.

mod claim;
mod denial;

use std::fmt;

pub use self::{
    claim::{Claim, Claims, EXTERNAL_SERVICE_REQUEST},
    denial::{Denial, Why},
};
use crate::{
    caller::{Authorized, Caller, CertifiedName, OPERATOR},
    core_service::{is_core_service, is_core_system, is_service_of},
    explanation::{Criterion, Step},
    name::SystemName,
};

/// Core systems that may ask the Service Registry for any service.
pub const PRIVILEGED: &[&str] = &[
    "orchestrator",
    "gatekeeper",
    "certificateauthority",
    "eventhandler",
    "authorization",
    "qosmonitor",
    "onboardingcontroller",
    "deviceregistry",
    "systemregistry",
    "plantdescriptionengine",
    "choreographer",
    "hawkbitconfigurationmanager",
    "mscv",
];

/// Core services that every system of the cloud may ask the Service Registry for.
const PUBLIC_SERVICES: &[&str] = &[
    "orchestration-service",
    "auth-public-key",
    "event-publish",
    "event-subscribe",
    "event-unsubscribe",
    "proxy",
    "historian",
    "choreographer-service",
    "executor-register",
    "executor-unregister",
    "translation-service",
    "conf",
    "confraw",
    "time",
];

/// Core systems that register and unregister systems, each itself.
const SELF_REGISTERING: &[&str] = &["choreographer", "plantdescriptionengine"];

/// Registers services for systems that cannot, and may ask for any.
const TRANSLATOR: &str = "translator";

/// Asks on behalf of other clouds.
const GATEKEEPER: &str = "gatekeeper";

/// Whom an operation is for: a column of the table of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody who reaches the port, with a certificate or without.
    Anyone,
    /// Every system of the cloud.
    Cloud,
    /// The operator.
    Operator,
    /// The operator and these core systems.
    OperatorAnd(&'static [&'static str]),
    /// These core systems.
    Only(&'static [&'static str]),
    /// Every core system.
    CoreSystems,
    /// Every system, for itself.
    Own,
    /// Every system, for itself; the operator for any.
    OwnOrOperator,
    /// Every system, for itself; of the core systems only those that register themselves.
    OwnSystem,
    /// Every system, for its own services; core services for core systems only.
    OwnServices,
    /// Every system, for itself; the Gatekeeper for those of other clouds.
    OwnNeeds,
    /// Core systems; every other system for public core services only.
    Query,
}

/// A caller whom an operation is for.
#[derive(Clone, Copy, Debug)]
pub struct Admitted<'c> {
    access: Access,
    caller: &'c Caller,
}

impl Access {
    /// Asks the rules that need no more than the caller and the operation.
    pub fn admit(self, caller: &Caller) -> Result<Admitted<'_>, Denial> {
        if let Caller::Certified(name) = caller
            && self != Self::Anyone
        {
            let admits = system_of(name).and_then(|system| self.admits(system));
            admits.map_err(|why| Denial::new(name, why))?;
        }
        Ok(Admitted { access: self, caller })
    }

    /// Whether the operation is for a system of the cloud.
    fn admits(self, system: &SystemName) -> Result<(), Why> {
        let system = system.as_str();
        let admits = match self {
            Self::Anyone | Self::Cloud | Self::Own | Self::OwnOrOperator | Self::OwnServices | Self::OwnNeeds | Self::Query => true,
            Self::Operator => system == OPERATOR,
            Self::OperatorAnd(core_systems) => system == OPERATOR || core_systems.contains(&system),
            Self::Only(core_systems) => core_systems.contains(&system),
            Self::CoreSystems => is_core_system(system),
            Self::OwnSystem => !is_core_system(system) || SELF_REGISTERING.contains(&system),
        };
        if admits { Ok(()) } else { Err(Why::NotAdmitted(self)) }
    }

    /// Whether what a request says is its sender's to say. What it leaves out is refused by the operation itself. `key` is that of the
    /// sender's certificate, where it is known.
    fn permits(self, system: &SystemName, key: Option<&str>, claim: &Claim<'_>) -> Result<(), Why> {
        match self {
            Self::OwnOrOperator if system.as_str() == OPERATOR => Ok(()),
            Self::Own | Self::OwnOrOperator | Self::OwnSystem => is_itself(system, key, claim),
            Self::OwnServices => {
                if system.as_str() != TRANSLATOR {
                    is_itself(system, key, claim)?;
                }
                may_register(system.as_str(), claim)
            }
            Self::OwnNeeds if claim.is_external => {
                if system.as_str() == GATEKEEPER {
                    Ok(())
                } else {
                    Err(Why::External)
                }
            }
            Self::OwnNeeds => is_itself(system, key, claim),
            Self::Query => may_query(system.as_str(), claim),
            Self::Anyone | Self::Cloud | Self::Operator | Self::OperatorAnd(_) | Self::Only(_) | Self::CoreSystems => Ok(()),
        }
    }
}

impl<'c> Admitted<'c> {
    /// Asks the rule about what the request says.
    pub fn permit<F: Claims>(self, form: F) -> Result<Authorized<F>, Denial> {
        if let Caller::Certified(name) = self.caller
            && let Some(system) = &name.system
        {
            let permits = self.access.permits(system, name.authentication_info.as_deref(), &form.claim());
            permits.map_err(|why| Denial::new(name, why))?;
        }
        Ok(Authorized::new(form))
    }

    /// Who was admitted.
    pub fn caller(self) -> &'c Caller {
        self.caller
    }
}

/// What each rule finds, up to the first that refuses.
pub fn explain(access: Access, caller: &Caller, claim: &Claim<'_>) -> Vec<Step> {
    let Caller::Certified(name) = caller else {
        return vec![Step::new(Criterion::Certificate, true, "nothing", "insecure mode asks for no certificate")];
    };
    if access == Access::Anyone {
        return vec![Step::new(Criterion::Certificate, true, "nothing", "this needs no certificate")];
    }
    let mut steps = Vec::with_capacity(3);
    let mut note = |criterion, asked: String, found: Result<String, &Why>| {
        steps.push(Step::new(criterion, found.is_ok(), asked, found.unwrap_or_else(Why::to_string)));
    };
    let system = system_of(name);
    note(Criterion::Certificate, "the name of a system of this cloud".into(), system.as_ref().map(|_| name.common_name.to_string()));
    let Ok(system) = system else { return steps };
    let admitted = access.admits(system);
    note(Criterion::Operation, access.to_string(), admitted.as_ref().map(|()| system.to_string()));
    if admitted.is_ok() {
        let permitted = access.permits(system, name.authentication_info.as_deref(), claim);
        note(Criterion::Request, "what this system may say".into(), permitted.as_ref().map(|()| claim.to_string()));
    }
    steps
}

fn system_of(name: &CertifiedName) -> Result<&SystemName, Why> {
    name.system.as_ref().ok_or(Why::NoSystemOfCloud)
}

fn is_itself(system: &SystemName, key: Option<&str>, claim: &Claim<'_>) -> Result<(), Why> {
    match claim.system.as_deref().map(str::trim) {
        Some(claimed) if !claimed.is_empty() && !claimed.eq_ignore_ascii_case(system.as_str()) => Err(Why::Other(claimed.to_owned())),
        _ => has_its_key(key, claim),
    }
}

/// Tokens for a provider are sealed to the key that it has registered, and name it nowhere else: with the key of another provider it
/// would have tokens made that are good there.
fn has_its_key(key: Option<&str>, claim: &Claim<'_>) -> Result<(), Why> {
    match (key, claim.authentication_info.as_deref()) {
        (Some(key), Some(claimed)) if !digits(claimed).eq(digits(key)) && digits(claimed).next().is_some() => Err(Why::Key),
        _ => Ok(()),
    }
}

/// Base64 without what may stand around and in it.
fn digits(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|character| !character.is_whitespace() && *character != '=')
}

fn may_register(system: &str, claim: &Claim<'_>) -> Result<(), Why> {
    match claim.service.as_deref() {
        Some(service) if is_core_service(service) && !is_core_system(system) => Err(Why::CoreService(service.trim().to_owned())),
        _ => Ok(()),
    }
}

fn may_query(system: &str, claim: &Claim<'_>) -> Result<(), Why> {
    if PRIVILEGED.contains(&system) || system == TRANSLATOR {
        return Ok(());
    }
    let service = claim.service.as_deref().map_or("", str::trim);
    let may = if is_core_system(system) {
        is_service_of(system, service)
    } else {
        PUBLIC_SERVICES.iter().any(|public| public.eq_ignore_ascii_case(service))
    };
    if may { Ok(()) } else { Err(Why::Service(service.to_owned())) }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anyone => f.write_str("everybody"),
            Self::Cloud | Self::Own | Self::OwnOrOperator | Self::OwnServices | Self::OwnNeeds | Self::Query => {
                f.write_str("every system of the cloud")
            }
            Self::Operator => f.write_str(OPERATOR),
            Self::OperatorAnd(core_systems) => write!(f, "{OPERATOR}, {}", core_systems.join(", ")),
            Self::Only(core_systems) => f.write_str(&core_systems.join(", ")),
            Self::CoreSystems => f.write_str("every core system"),
            Self::OwnSystem => write!(f, "every system of the cloud, of the core systems {} only", SELF_REGISTERING.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests;
