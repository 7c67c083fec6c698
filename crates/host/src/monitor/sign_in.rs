//! How the operator's browser signs in: makes a link, redeems it, and ends sessions.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::{Monitor, refuse_stranger};
use crate::{
    answer::Answer,
    audit::Act,
    dashboard::{
        sign_in::{LINK_LIFETIME_MAX, LinkError, SignInError},
        stranger,
    },
    request::{Method, Request},
    security::Peer,
    server::Port,
};

/// Where a link leads.
pub(super) const ENTER: &str = "/dashboard/enter";
/// Where links are made.
const LINKS: &str = "/api/v1/dashboard/links";
/// Where sessions are ended.
const SESSIONS: &str = "/api/v1/dashboard/sessions";

/// What is requested of a link.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LinkForm {
    /// Seconds for which the link is valid.
    #[serde(default)]
    expires_in_seconds: Option<u64>,
}

impl Monitor {
    /// Returns the answer to a request that its sender may not make. A browser gets a page that says how to sign in.
    pub(super) fn refuse(&self, request: &Request) -> Option<Answer> {
        if request.is_forged {
            let told = "A request with the cookie of the dashboard comes from the dashboard's own page only.";
            return Some(Answer::problem(403, told).because("a page of another origin, or none, used the operator's session"));
        }
        let answer = refuse_stranger(request)?;
        let is_for_page = request.accepts_html && answer.status == 401 && matches!(request.method, Method::Get | Method::Head);
        let page = is_for_page.then(|| self.stranger_page(401, &stranger::reason(request))).flatten();
        Some(match page {
            Some(page) => Answer { account: answer.account, ..page },
            None => answer,
        })
    }

    /// `None` in insecure mode, which refuses nobody.
    fn stranger_page(&self, status: u16, why: &str) -> Option<Answer> {
        let security = self.security.as_ref()?;
        Some(Answer { status, ..stranger::page(&security.trust().cloud, why, self.addresses[Port::MONITOR].port()) })
    }

    /// Answers what has to do with signing in; `None` of any other path.
    pub(super) async fn sign_in(&self, request: &Request, peer: &Peer) -> Option<Answer> {
        let answer = match (request.path.as_str(), request.method) {
            (ENTER, Method::Get) => self.enter(request).await,
            (LINKS, Method::Post) => self.carry_out(request, || self.make_link(request, peer)).await,
            (SESSIONS, Method::Delete) => self.carry_out(request, || self.end_sessions()).await,
            _ => return None,
        };
        Some(answer)
    }

    /// Carries out and puts into the audit log.
    async fn carry_out(&self, request: &Request, work: impl FnOnce() -> Answer) -> Answer {
        let unavailable = |why: String| Answer::problem(503, &why);
        self.api.audit.carry_out(Act::Change, request, unavailable, async { work() }).await
    }

    fn make_link(&self, request: &Request, peer: &Peer) -> Answer {
        let Some(sign_in) = &self.sign_in else { return insecure() };
        let form = if request.body.is_empty() { Ok(LinkForm::default()) } else { serde_json::from_slice(&request.body) };
        let lifetime = match form.map(|form: LinkForm| form.expires_in_seconds.map_or(LINK_LIFETIME_MAX, Duration::from_secs)) {
            Ok(lifetime) if !lifetime.is_zero() && lifetime <= LINK_LIFETIME_MAX => lifetime,
            Ok(_) => return Answer::problem(400, &format!("expiresInSeconds is from 1 to {}.", LINK_LIFETIME_MAX.as_secs())),
            Err(error) => return Answer::problem(400, &format!("expected {{\"expiresInSeconds\": N}}: {error}.")),
        };
        match sign_in.make_link(peer, request.sender.as_ref(), lifetime, Instant::now()) {
            Ok(token) => {
                let path = format!("{ENTER}?token={}", token.reveal());
                Answer::json(201, &json!({"path": path, "expiresInSeconds": lifetime.as_secs()}))
            }
            Err(error @ (LinkError::Elsewhere | LinkError::NoCertificate)) => {
                Answer::problem(403, &sentence(&error)).because(&error.to_string())
            }
            Err(error @ (LinkError::TooMany | LinkError::NoRandomness)) => Answer::problem(503, &sentence(&error)),
        }
    }

    /// Redeems a link. The audit log names the operator, whom the link stands for.
    async fn enter(&self, request: &Request) -> Answer {
        let Some(sign_in) = &self.sign_in else { return insecure() };
        if let Err(why) = self.api.audit.log().check() {
            // The link stays valid.
            return Answer::problem(503, &format!("Nobody was signed in, for {why}. Make room on the disk, then try again."));
        }
        match sign_in.enter(request.parameter("token").unwrap_or_default(), request.sender.as_ref(), Instant::now()) {
            Ok((cookie, caller)) => {
                let known = Request { caller, ..request.clone() };
                let name = known.caller.system().map_or_else(String::new, ToString::to_string);
                self.carry_out(&known, || stranger::signed_in(&name, cookie)).await
            }
            Err(error) => {
                let told = sentence(&error);
                let status = if error == SignInError::Elsewhere { 403 } else { 401 };
                let page = request.accepts_html.then(|| self.stranger_page(status, &told)).flatten();
                let answer = page.unwrap_or_else(|| Answer::problem(status, &told)).because(&error.to_string());
                self.api.audit.denied(request, answer).await
            }
        }
    }

    fn end_sessions(&self) -> Answer {
        match &self.sign_in {
            Some(sign_in) => Answer::json(200, &json!({"ended": sign_in.end_all(Instant::now())})),
            None => insecure(),
        }
    }
}

fn insecure() -> Answer {
    Answer::problem(409, "The local cloud runs in insecure mode: the dashboard needs no sign-in.")
}

/// An error as a sentence of its own.
fn sentence(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let (first, rest) = text.split_at(1);
    format!("{}{rest}.", first.to_uppercase())
}
