//! One-time links that sign the operator's browser in to the dashboard, and the sessions that they begin.
//!
//! `bodkin dashboard` requests a link with the operator's certificate. The browser that opens the link receives a cookie, which stands for that
//! certificate until the session expires, the certificate is revoked, or this process stops. [`SignIn`] keeps links and sessions in memory only, as
//! hashes. `monitor` makes and redeems links; `listener` finds the session of each request.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand,
};
use bodkin_arrowhead::{caller::Caller, service_registry::Sender};

use crate::{
    gate::Gate,
    http::RawRequest,
    security::{Peer, Security},
};

/// Links that are pending at the same time.
pub const LINKS_MAX: usize = 8;
/// Longest time for which a link is valid.
pub const LINK_LIFETIME_MAX: Duration = Duration::from_secs(60);
/// Sessions at the same time; a further one ends the oldest.
pub const SESSIONS_MAX: usize = 16;
/// Time after which a session expires, used or not.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(8 * 60 * 60);
/// Random bytes of a token: nobody guesses 256 bits.
const TOKEN_BYTES: usize = 32;

/// The secret of a link or of a session, as the browser has it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Draws a token; `None` if the system has no random numbers.
    fn draw() -> Option<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        rand::fill(&mut bytes).ok()?;
        Some(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The text of the token.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// SHA-256 of a token. How long a comparison of hashes takes says nothing of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TokenHash([u8; 32]);

impl TokenHash {
    fn of(text: &str) -> Self {
        Self(digest(&SHA256, text.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

/// A link that nobody has opened yet.
#[derive(Debug)]
struct Link {
    hash: TokenHash,
    expires_at: Instant,
    /// The operator who requested the link.
    peer: Peer,
}

/// A browser that is signed in.
#[derive(Debug)]
pub struct Session {
    hash: TokenHash,
    expires_at: Instant,
    /// The operator whose certificate the session stands for.
    pub peer: Peer,
}

impl Session {
    /// Waits until the session expires.
    pub async fn expired(&self) {
        tokio::time::sleep_until(self.expires_at.into()).await;
    }
}

/// Why a link signs nobody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// No such link is pending.
    #[error("this link was used before, has expired, or never existed")]
    Unknown,
    /// The operator's certificate was revoked, or has expired.
    #[error("the certificate that the link stands for is no longer valid")]
    Certificate,
    /// The request came from another machine.
    #[error("a link works in a browser on the cloud's own machine only")]
    Elsewhere,
    /// No random numbers.
    #[error("the system has no random numbers")]
    NoRandomness,
}

/// Why no link is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The request came from another machine.
    #[error("a link works on the cloud's own machine only: run bodkin dashboard there, or through ssh")]
    Elsewhere,
    /// The request came by a cookie, whose time a link would extend.
    #[error("a link is made for the operator's certificate: run bodkin dashboard")]
    NoCertificate,
    /// [`LINKS_MAX`] are pending.
    #[error("{LINKS_MAX} links are pending: open one, or wait a minute")]
    TooMany,
    /// No random numbers.
    #[error("the system has no random numbers")]
    NoRandomness,
}

/// Result of looking up a request's cookie.
#[derive(Debug)]
pub enum Cookie {
    /// There is none of a session that lasts.
    None,
    /// The session that it stands for.
    Session(Arc<Session>),
    /// It stands for a session, and another page than the dashboard may have sent the request.
    Foreign,
}

#[derive(Debug, Default)]
struct State {
    links: Vec<Link>,
    sessions: Vec<Arc<Session>>,
}

/// Pending links and sessions of one process.
#[derive(Debug)]
pub struct SignIn {
    security: Arc<Security>,
    cookie_name: String,
    state: Mutex<State>,
}

impl SignIn {
    /// Without links and sessions. Browsers send a cookie to every port of a host, so its name has the port of the dashboard.
    pub fn new(security: Arc<Security>, port: u16) -> Self {
        // The prefix has browsers accept the cookie over TLS only, and send it to this host only.
        Self { security, cookie_name: format!("__Host-bodkin-{port}"), state: Mutex::default() }
    }

    /// Makes a link for an operator, which is valid for `lifetime`.
    ///
    /// # Errors
    /// Returns an error if the operator is at another machine or showed no certificate, or if [`LINKS_MAX`] links are pending.
    pub fn make_link(&self, peer: &Peer, sender: Option<&Sender>, lifetime: Duration, now: Instant) -> Result<Token, LinkError> {
        if !is_on_this_machine(sender) {
            return Err(LinkError::Elsewhere);
        }
        if !peer.has_certificate() {
            return Err(LinkError::NoCertificate);
        }
        let mut state = self.state(now);
        if state.links.len() >= LINKS_MAX {
            return Err(LinkError::TooMany);
        }
        let token = Token::draw().ok_or(LinkError::NoRandomness)?;
        let expires_at = now + lifetime.min(LINK_LIFETIME_MAX);
        state.links.push(Link { hash: TokenHash::of(token.reveal()), expires_at, peer: peer.clone() });
        Ok(token)
    }

    /// Redeems a link, once; returns the cookie to set, and who is signed in.
    ///
    /// # Errors
    /// Returns an error if no such link is pending, its operator's certificate is no longer valid, or the browser is at another machine.
    pub fn enter(&self, token: &str, sender: Option<&Sender>, now: Instant) -> Result<(String, Caller), SignInError> {
        if !is_on_this_machine(sender) {
            return Err(SignInError::Elsewhere);
        }
        let hash = TokenHash::of(token);
        let mut state = self.state(now);
        let at = state.links.iter().position(|link| link.hash == hash).ok_or(SignInError::Unknown)?;
        let Link { peer, .. } = state.links.swap_remove(at);
        self.security.check(&peer).map_err(|_| SignInError::Certificate)?;
        let token = Token::draw().ok_or(SignInError::NoRandomness)?;
        if state.sessions.len() >= SESSIONS_MAX {
            // The sessions are in the order of their begin.
            state.sessions.remove(0);
            tracing::warn!(sessions_max = SESSIONS_MAX, "oldest dashboard session ended: limit reached");
        }
        let caller = peer.caller.clone();
        state.sessions.push(Arc::new(Session { hash: TokenHash::of(token.reveal()), expires_at: now + SESSION_LIFETIME, peer }));
        let age = SESSION_LIFETIME.as_secs();
        Ok((format!("{}={}; Path=/; Max-Age={age}; Secure; HttpOnly; SameSite=Strict", self.cookie_name, token.reveal()), caller))
    }

    /// Returns the session of a request from `sender` that shows no certificate.
    pub fn session(&self, raw: &RawRequest<'_>, sender: Option<&Sender>, gate: &Gate, now: Instant) -> Cookie {
        let Some(value) = raw.cookie.and_then(|cookie| value_of(cookie, &self.cookie_name)).filter(|_| is_on_this_machine(sender)) else {
            return Cookie::None;
        };
        let hash = TokenHash::of(value);
        let session = self.state(now).sessions.iter().find(|session| session.hash == hash).cloned();
        match session {
            Some(session) if gate.is_from_own_page(raw) => Cookie::Session(session),
            Some(_) => Cookie::Foreign,
            None => Cookie::None,
        }
    }

    /// Ends every session and withdraws every pending link; returns how many sessions ended.
    pub fn end_all(&self, now: Instant) -> usize {
        let ended = std::mem::take(&mut *self.state(now));
        ended.sessions.len()
    }

    /// Returns true while a session lasts: it was not ended before its time.
    pub fn lasts(&self, session: &Session, now: Instant) -> bool {
        self.state(now).sessions.iter().any(|other| other.hash == session.hash)
    }

    /// The state without what has expired, or stands for a certificate that is no longer valid.
    fn state(&self, now: Instant) -> MutexGuard<'_, State> {
        // Every change leaves it whole.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.links.retain(|link| now < link.expires_at);
        state.sessions.retain(|session| now < session.expires_at && self.security.check(&session.peer).is_ok());
        state
    }
}

/// Returns true if a request comes from the machine of the cloud: from a loopback address, or from the address that it was sent to. A proxy that
/// forwards for others says so, and has no address of its own then.
fn is_on_this_machine(sender: Option<&Sender>) -> bool {
    sender.is_some_and(|sender| {
        let is_local = sender.peer.to_canonical().is_loopback() || sender.peer == sender.local;
        is_local && sender.forwarded.is_empty() && sender.forwarded_for.is_empty()
    })
}

/// The value of a cookie of this name in the header.
fn value_of<'c>(header: &'c str, name: &str) -> Option<&'c str> {
    header.split(';').find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests;
