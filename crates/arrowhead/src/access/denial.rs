//! A refusal, and how it is told.

use std::sync::Arc;

use super::Access;
use crate::{caller::CertifiedName, error::ArrowheadError};

/// Which rule refuses, and what it found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The certificate.
    #[error("the certificate names no system of this cloud")]
    NoSystemOfCloud,
    /// The operation.
    #[error("this is for {0} only")]
    NotAdmitted(Access),
    /// The request is in another system's name.
    #[error("the request is in the name of {0}, and a system acts for itself only")]
    Other(String),
    /// The request registers a public key that is not that of the certificate.
    #[error("authenticationInfo is another public key than that of the certificate, and a system registers its own only")]
    Key,
    /// The request is about a core system's service.
    #[error("{0} is a core system's service, which only core systems register")]
    CoreService(String),
    /// The request asks for a service that is found by orchestration.
    #[error("'{0}' is none of the services that this system may ask the registry for: the Orchestrator names providers")]
    Service(String),
    /// The request is on behalf of another cloud.
    #[error("only the Gatekeeper asks for systems of other clouds")]
    External,
}

/// What a caller may not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The name in its certificate.
    pub caller: Arc<CertifiedName>,
    /// Which rule refuses.
    pub why: Why,
}

impl Denial {
    pub(super) fn new(caller: &Arc<CertifiedName>, why: Why) -> Self {
        Self { caller: caller.clone(), why }
    }

    /// Upstream's refusal of a request with this URL: it names the origin only if the certificate itself is the reason.
    pub fn error(&self, url: &str) -> ArrowheadError {
        let error = ArrowheadError::auth(format!("{} is unauthorized to access {url}", self.caller.common_name));
        let origin = (self.why == Why::NoSystemOfCloud).then(|| url.to_owned());
        ArrowheadError { origin, ..error }
    }
}
