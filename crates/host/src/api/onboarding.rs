//! `/api/v1/onboarding`: a new system comes to its certificate; `/api/v1/onboarding/grants`: who may.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Instant,
};

use bodkin_arrowhead::{
    caller::Caller,
    name::SystemName,
    onboarding::{Grant, GrantRequest, NewGrant, NotGranted},
    utc::UtcTime,
};
use bodkin_store::{
    Store, StoreError,
    onboarding::{Credential, SecretHash, Spent},
};
use bodkin_trust::{
    Certificate,
    onboarding::{OnboardingSecret, SecretValue},
    request::SigningRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{BASE, list, not_stored};
use crate::{
    answer::Answer,
    control::now,
    onboarding::{IssueError, Onboarding},
    request::{Method, Request},
};

/// What a refused newcomer may show (RFC 6750).
const CHALLENGE: &str = "Bearer realm=\"onboarding\"";

/// What a new system asks for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OnboardingForm {
    /// Where it comes with one and does not show it as a bearer; a device shows its certificate instead.
    #[serde(default)]
    secret: Option<String>,
    /// Which of the systems that the grant is for it is.
    #[serde(default)]
    system_name: Option<String>,
    /// A certificate signing request in PEM.
    csr: String,
}

/// A grant as it is told: never with its secret.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GrantView {
    id: i64,
    system_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    uses_left: u32,
    expires_at: UtcTime,
    alternative_names: Vec<String>,
    created_at: UtcTime,
    /// Once, to who has made the grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl GrantView {
    fn new(grant: Grant) -> Self {
        let Grant { id, systems, device, uses_left, expires_at, alternative_names, created_at } = grant;
        Self { id, system_name: systems.to_string(), device, uses_left, expires_at, alternative_names, created_at, secret: None }
    }
}

/// The interface for new systems, and for who grants them their certificates.
pub struct OnboardingApi {
    /// Keeps the grants.
    pub store: Store,
    /// Issues; `None` in insecure mode, which has no authority.
    pub onboarding: Option<Arc<Onboarding>>,
}

impl OnboardingApi {
    /// Answers a request at or below `onboarding`; that method and path fit was seen before.
    pub async fn answer(&self, request: &Request) -> Answer {
        let Some(onboarding) = &self.onboarding else {
            return Answer::problem(409, "The local cloud runs in insecure mode: it has no authority, and issues nothing.");
        };
        let mut parts = request.path.strip_prefix(BASE).unwrap_or_default().split('/').skip(1);
        match (parts.next(), parts.next(), request.method) {
            (None, ..) => self.onboard(onboarding, request).await,
            (Some(_), None, Method::Post) => self.add_grant(onboarding, request).await,
            (Some(_), None, _) => self.list_grants().await,
            (Some(_), Some(id), _) => self.remove_grant(id).await,
        }
    }

    async fn onboard(&self, onboarding: &Arc<Onboarding>, request: &Request) -> Answer {
        let from = request.sender.as_ref().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |sender| sender.peer);
        // Those that wait for a place are not under way: many devices behind one address may come at once.
        let _place = onboarding.places.acquire().await.expect("the semaphore is never closed");
        let attempt = match onboarding.attempts.begin(from, Instant::now()) {
            Ok(attempt) => attempt,
            Err(wait) => {
                let seconds = wait.as_secs() + 1;
                let answer = Answer::problem(429, &format!("Too many from {from} were refused. Try again in {seconds} s."));
                return Answer { header: Some(("Retry-After", seconds.to_string())), ..answer }.because("too many attempts");
            }
        };
        match self.grant(onboarding, request).await {
            Ok(answer) => {
                attempt.forgive();
                answer
            }
            Err(why) => refused(why),
        }
    }

    /// Answers a request for a certificate; an error is the reason why what it shows gives it none.
    async fn grant(&self, onboarding: &Arc<Onboarding>, request: &Request) -> Result<Answer, NotGranted> {
        let form: OnboardingForm = match serde_json::from_slice(&request.body) {
            Ok(form) => form,
            Err(error) => return Ok(Answer::problem(400, &format!("Expected secret, systemName and csr: {error}."))),
        };
        let secret = match (&form.secret, &request.bearer) {
            (Some(_), Some(_)) => {
                return Ok(Answer::problem(400, "Show the secret in the body or as Authorization: Bearer, once."));
            }
            (secret, bearer) => secret.as_ref().or(bearer.as_ref()),
        };
        let credential = credential(secret, &request.caller)?;
        let asked = match form.system_name.as_deref().map(SystemName::parse).transpose() {
            Ok(asked) => asked,
            Err(error) => return Ok(Answer::problem(400, &format!("systemName {error}"))),
        };
        let signing = match blocking(move || SigningRequest::read(form.csr.as_bytes())).await {
            Some(Ok(signing)) => signing,
            Some(Err(error)) => return Ok(Answer::problem(400, &format!("csr: {error}."))),
            None => return Ok(shutting_down()),
        };
        match self.store.write(move |draft| draft.spend_grant(&credential, asked.as_ref()), |_, spent| spent).await {
            Ok(spent) => Ok(self.issue(onboarding, spent?, signing).await),
            Err(error) => Ok(not_stored(&error)),
        }
    }

    async fn issue(&self, onboarding: &Arc<Onboarding>, spent: Spent, signing: SigningRequest) -> Answer {
        let (id, issuer) = (spent.grant.id, onboarding.clone());
        let (system, granted) = (spent.system.clone(), spent.grant.systems.to_string());
        let issued = blocking(move || issuer.issue(&spent, &signing, now())).await;
        let refusal = match issued {
            Some(Ok(chain)) => return certified(&system, id, &granted, &chain),
            Some(Err(error @ IssueError::Taken(_))) => Answer::problem(409, &format!("{error}.")),
            Some(Err(error @ (IssueError::NoKey(_) | IssueError::Account(_)))) => Answer::problem(503, &format!("{error}.")),
            Some(Err(error)) => {
                tracing::error!(%error, "a new system was granted a certificate that could not be issued");
                Answer::problem(503, "The authority could not issue; its operator finds the reason in the log.")
            }
            None => shutting_down(),
        };
        // What was spent for nothing is given back.
        match self.store.write(move |draft| draft.return_grant(id), |_, ()| ()).await {
            Ok(()) => refusal,
            Err(error) => not_stored(&error),
        }
    }

    async fn add_grant(&self, onboarding: &Arc<Onboarding>, request: &Request) -> Answer {
        let new = match serde_json::from_slice::<GrantRequest>(&request.body) {
            Ok(asked) => NewGrant::parse(asked, now()).map_err(|error| error.to_string()),
            Err(error) => Err(format!("Expected a grant: {error}.")),
        };
        let new = match new {
            Ok(new) => new,
            Err(why) => return Answer::problem(400, &why),
        };
        let issuer = onboarding.clone();
        let anchor = match blocking(move || issuer.anchor()).await {
            Some(Ok(anchor)) => anchor,
            Some(Err(error)) => return Answer::problem(503, &error.to_string()),
            None => return shutting_down(),
        };
        let value = match new.device.is_none().then(SecretValue::generate).transpose() {
            Ok(value) => value,
            Err(error) => return Answer::problem(503, &error.to_string()),
        };
        let hash = value.as_ref().map(|value| SecretHash(value.hash()));
        match self.store.write(move |draft| draft.add_grant(&new, hash), |_, grant| grant).await {
            Ok(grant) => {
                let text = value.map(|value| OnboardingSecret { grant: grant.id, value, anchor }.reveal().to_string());
                Answer::json(201, &GrantView { secret: text, ..GrantView::new(grant) })
            }
            Err(StoreError::Refused(error)) => Answer::problem(409, &error.error_message),
            Err(error) => not_stored(&error),
        }
    }

    async fn list_grants(&self) -> Answer {
        match self.store.write(|draft| draft.grants(), |_, grants| grants).await {
            Ok(grants) => {
                let views: Vec<GrantView> = grants.into_iter().map(GrantView::new).collect();
                list(&views, views.len() as u64)
            }
            Err(error) => not_stored(&error),
        }
    }

    async fn remove_grant(&self, id: &str) -> Answer {
        let Ok(id) = id.parse::<i64>() else {
            return Answer::problem(400, &format!("Expected the number of a grant, and got '{id}'."));
        };
        match self.store.write(move |draft| draft.remove_grant(id), |_, found| found).await {
            Ok(true) => Answer::empty(200),
            Ok(false) => Answer::problem(404, &format!("Grant {id} does not exist.")),
            Err(error) => not_stored(&error),
        }
    }
}

/// What the caller comes with: a secret, else the certificate of its device.
fn credential(secret: Option<&String>, caller: &Caller) -> Result<Credential, NotGranted> {
    match (secret, caller) {
        (Some(text), _) => {
            let secret = OnboardingSecret::parse(text).map_err(|_| NotGranted::Unknown)?;
            Ok(Credential::Secret { id: secret.grant, hash: SecretHash(secret.value.hash()) })
        }
        (None, Caller::Certified(name)) if name.is_device => Ok(Credential::Device(name.common_name.to_string())),
        (None, _) => Err(NotGranted::Unknown),
    }
}

/// Who does not know the secret learns nothing of the grant; the audit log learns the reason.
fn refused(why: NotGranted) -> Answer {
    let answer = match &why {
        NotGranted::Name { .. } => Answer::problem(403, &why.to_string()),
        _ => {
            let asked =
                "Show a secret that counts, or the certificate of a device that was granted one. The cloud's audit log says what is wrong.";
            let answer = Answer::problem(401, asked);
            Answer { header: Some(("WWW-Authenticate", CHALLENGE.to_owned())), ..answer }
        }
    };
    answer.because(&why.to_string())
}

fn certified(system: &SystemName, grant: i64, granted: &str, chain: &[Certificate]) -> Answer {
    let own = &chain[0];
    let pem: String = chain.iter().map(Certificate::to_pem).collect();
    let answer = Answer::json(201, &json!({"systemName": system, "certificate": pem, "notAfter": own.not_after()}));
    let account = json!({"system": system, "serial": own.serial_text(), "notAfter": own.not_after(), "grant": grant, "granted": granted});
    let serde_json::Value::Object(account) = account else { unreachable!("it is one") };
    Answer { account: Some(Box::new(account)), ..answer }
}

/// Carries out what takes time; `None` if the runtime is gone.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

fn shutting_down() -> Answer {
    Answer::problem(503, "The local cloud is shutting down.")
}
