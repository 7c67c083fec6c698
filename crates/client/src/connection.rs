//! One kept HTTP/1.1 connection to a server, plain or over TLS.

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Mutex,
    time::timeout,
};

use crate::{
    error::{CallError, Problem, Refusal},
    limits::Limits,
    place::{self, CoreService, Place, Search},
    security::{Expected, Security, Towards},
};

type Sender = SendRequest<Full<Bytes>>;

/// Why a plain call is not understood, may not be answered, or is refused.
const NOT_HTTP: &str = "what comes back is no HTTP. It may be a cloud in secure mode";
const BROKEN_OFF: &str = "it closes the connection without an answer. It may be a cloud in secure mode";
const SPEAKS_TLS: &str = "it speaks TLS, as a cloud in secure mode does";

/// What to do then.
const WITH_CERTIFICATE: &str =
    "leave out --insecure (BODKIN_INSECURE), and where no certificate is found name one: --data, --trust or --cert";

/// Longest time to connect to one node of a pair, before the other one is tried.
const PAIR_CONNECT_MAX: Duration = Duration::from_secs(1);

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: StatusCode,
    /// The body; may be empty.
    pub body: Bytes,
}

/// Calls one server, one request at a time, over a connection that is kept between calls and made again when the server
/// has closed it. Nothing is connected before the first call.
#[derive(Debug)]
pub struct Connection {
    place: Place,
    limits: Limits,
    tls: Option<Towards>,
    /// The kept connection. A call takes it out and puts it back after a whole answer, so that a cancelled or failed call
    /// leaves no half-read connection behind.
    kept: Mutex<Option<Sender>>,
}

/// How an exchange over one connection failed.
enum ExchangeError {
    /// The request was not sent: another connection may be tried.
    NotSent(CallError),
    /// It may have been sent.
    Failed(CallError),
}

impl Connection {
    /// A connection to `address` (`host:port`) to be made at the first call; with two addresses (`host:port,host:port`), to that node of a
    /// reliable pair that leads.
    pub fn new(address: impl ToString, limits: Limits) -> Self {
        Self { place: Place::of(&address.to_string()), limits, tls: None, kept: Mutex::new(None) }
    }

    /// As [`Self::new`] over TLS; the server has to show the certificate of this system, of the own cloud.
    pub fn secure(address: impl ToString, limits: Limits, security: &Security, system: &str) -> Self {
        Self { tls: Some(security.towards(Expected::System(system.to_owned()))), ..Self::new(address, limits) }
    }

    /// As [`Self::secure`] with some core system of the own cloud.
    pub(crate) fn to_core_system(address: impl ToString, limits: Limits, security: &Security) -> Self {
        Self { tls: Some(security.towards(Expected::CoreSystem)), ..Self::new(address, limits) }
    }

    /// A connection to where this one, a Service Registry's, names the provider of a core service; over TLS if this one is.
    pub(crate) async fn to_registered(self: &Arc<Self>, service: CoreService) -> Result<Self, CallError> {
        let place = Place::registered(&place::provider(self, service).await?, self, service);
        let tls = self.security().map(|security| security.towards(Expected::System(service.system.name().to_owned())));
        Ok(Self { place, limits: self.limits, tls, kept: Mutex::new(None) })
    }

    /// A second connection to the same server.
    pub(crate) fn twin(&self) -> Self {
        Self { place: self.place.clone(), limits: self.limits, tls: self.tls.clone(), kept: Mutex::new(None) }
    }

    /// Host and port of the server: of a pair's, of the node that is called next.
    pub fn address(&self) -> String {
        self.place.current().to_string()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// What URLs of the server begin with.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn security(&self) -> Option<&Security> {
        self.tls.as_ref().map(|tls| &tls.security)
    }

    /// Sends a request and waits for the whole answer, whatever its status.
    ///
    /// A request that a kept connection did not take, and a GET that it did not answer, is sent once more on a new one.
    /// After that, and for other requests that may have been carried out, [`CallError::Unreachable`], [`CallError::Interrupted`] or [`CallError::TooSlow`] is returned.
    ///
    /// Of a pair, a node that is not reached, or answers that it does not lead, has not carried the request out: it is sent to the other one,
    /// in turns for [`Limits::failover_timeout`], then [`CallError::NobodyLeads`] is returned. So is a GET that was interrupted. Any other
    /// request that was is not: the node that died may have carried it out, and the one that leads has what was answered and perhaps this.
    pub async fn send(&self, method: Method, path: &str, body: Option<Bytes>) -> Result<Answer, CallError> {
        let mut search = self.search();
        loop {
            match self.send_once(&method, path, body.as_ref()).await {
                Err(error) => search.go_on(error, method == Method::GET).await?,
                answer => return answer,
            }
        }
    }

    /// The attempts of a call.
    pub(crate) fn search(&self) -> Search<'_> {
        Search::begin(&self.place, self.limits.failover_timeout)
    }

    async fn send_once(&self, method: &Method, path: &str, body: Option<&Bytes>) -> Result<Answer, CallError> {
        let mut kept = self.kept.lock().await;
        let request = || self.request(method, path, body.cloned());
        if let Some(mut sender) = kept.take()
            && sender.ready().await.is_ok()
        {
            match self.exchange(&mut sender, request()?).await {
                Ok(answer) => {
                    *kept = Some(sender);
                    return Ok(answer);
                }
                Err(ExchangeError::NotSent(_)) => {}
                // The server closed the connection in the same moment; a GET does no harm twice.
                Err(ExchangeError::Failed(CallError::Interrupted { .. })) if *method == Method::GET => {}
                Err(ExchangeError::Failed(error)) => return Err(error),
            }
        }
        let mut sender = self.connect().await?;
        match self.exchange(&mut sender, request()?).await {
            Ok(answer) => {
                *kept = Some(sender);
                Ok(answer)
            }
            Err(ExchangeError::Failed(error @ CallError::Interrupted { .. })) if *method == Method::GET => Err(self.perhaps_secure(error)),
            Err(ExchangeError::Failed(error) | ExchangeError::NotSent(error)) => Err(error),
        }
    }

    /// A question without consequences that was not answered: a cloud in secure mode breaks connections off that are not TLS.
    pub(crate) fn perhaps_secure(&self, error: CallError) -> CallError {
        match (&self.tls, error) {
            (None, CallError::Interrupted { .. }) if !self.place.is_pair() => self.not_agreed_plain(BROKEN_OFF),
            (_, error) => error,
        }
    }

    /// As [`Self::send`] with a JSON body and no body in a 2xx answer that anybody would read.
    pub(crate) async fn tell(&self, method: Method, path: &str, form: Option<&impl Serialize>) -> Result<(), CallError> {
        self.accepted(method, path, form).await.map(|_| ())
    }

    /// As [`Self::send`] with a JSON body in the request and in the 2xx answer.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, method: Method, path: &str, form: Option<&impl Serialize>) -> Result<T, CallError> {
        let answer = self.accepted(method, path, form).await?;
        serde_json::from_slice(&answer.body)
            .map_err(|error| self.unexpected(answer.status, format!("{} ({error})", String::from_utf8_lossy(&answer.body))))
    }

    /// As [`Self::ask`] without a body in the request.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CallError> {
        self.ask(Method::GET, path, None::<&()>).await
    }

    /// As [`Self::tell`] for removals.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), CallError> {
        self.tell(Method::DELETE, path, None::<&()>).await
    }

    async fn accepted(&self, method: Method, path: &str, form: Option<&impl Serialize>) -> Result<Answer, CallError> {
        let body = form.map(|form| Bytes::from(serde_json::to_vec(form).expect("forms are texts, numbers and maps of texts")));
        let answer = self.send(method, path, body).await?;
        if answer.status.is_success() { Ok(answer) } else { Err(self.refusal(&answer)) }
    }

    pub(crate) fn refusal(&self, answer: &Answer) -> CallError {
        if let Ok(refusal) = serde_json::from_slice::<Refusal>(&answer.body) {
            return CallError::Refused(refusal);
        }
        match serde_json::from_slice::<Problem>(&answer.body) {
            Ok(problem) => CallError::Problem(problem),
            Err(_) => self.unexpected(answer.status, String::from_utf8_lossy(&answer.body).into_owned()),
        }
    }

    /// A standby answers with a text; its own interface with a problem, which has the text too.
    fn refusal_of_standby(&self, answer: &Answer) -> CallError {
        match self.refusal(answer) {
            CallError::Unexpected { address, body, .. } => CallError::Standby { address, said: body.trim().to_owned() },
            refusal => refusal,
        }
    }

    fn unexpected(&self, status: StatusCode, body: String) -> CallError {
        CallError::Unexpected { address: self.address(), status, body }
    }

    pub(crate) fn unreachable(&self, why: impl ToString) -> CallError {
        CallError::Unreachable { address: self.address(), why: why.to_string() }
    }

    /// TLS, or its absence, is the reason.
    fn not_agreed(&self, why: String) -> CallError {
        CallError::Tls { address: self.address(), why }
    }

    /// The same, where we speak no TLS.
    fn not_agreed_plain(&self, what: &str) -> CallError {
        self.not_agreed(format!("{what}: {WITH_CERTIFICATE}"))
    }

    pub(crate) fn request(&self, method: &Method, path: &str, body: Option<Bytes>) -> Result<Request<Full<Bytes>>, CallError> {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, self.address());
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request
            .body(Full::new(body.unwrap_or_default()))
            .map_err(|error| self.unreachable(format!("{path} at this address is no URL ({error})")))
    }

    /// Makes a connection; its task ends with the sender.
    pub(crate) async fn connect(&self) -> Result<Sender, CallError> {
        let address = self.place.current();
        // A host that is gone says nothing, and its partner leads already.
        let limit = self.limits.connect_timeout.min(if self.place.is_pair() { PAIR_CONNECT_MAX } else { Duration::MAX });
        let connected = async {
            let stream = TcpStream::connect(&*address).await.map_err(|error| self.unreachable(error))?;
            // Requests are written whole; waiting for more only delays them.
            stream.set_nodelay(true).map_err(|error| self.unreachable(error))?;
            match &self.tls {
                None => self.speak(stream).await,
                Some(tls) => self.speak(tls.handshake(&address, stream).await.map_err(|why| self.not_agreed(why))?).await,
            }
        };
        let connected = timeout(limit, connected).await;
        connected.unwrap_or_else(|_| Err(self.unreachable(format!("no connection within {} ms", limit.as_millis()))))
    }

    async fn speak(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Sender, CallError> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.unreachable(innermost(&error)))?;
        // Its failures reach the caller through the sender.
        tokio::spawn(connection);
        Ok(sender)
    }

    /// Sends and waits for the answer's head.
    pub(crate) async fn head(&self, sender: &mut Sender, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, CallError> {
        self.try_head(sender, request).await.map_err(|(ExchangeError::Failed(error) | ExchangeError::NotSent(error))| error)
    }

    async fn try_head(&self, sender: &mut Sender, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, ExchangeError> {
        let name = format!("{} {}", request.method(), request.uri());
        let limit = self.limits.answer_timeout;
        match timeout(limit, sender.try_send_request(request)).await {
            Ok(Ok(response)) if self.tls.is_none() && response.status() == StatusCode::UPGRADE_REQUIRED => {
                Err(ExchangeError::Failed(self.not_agreed_plain(SPEAKS_TLS)))
            }
            Ok(Ok(response)) => Ok(response),
            Ok(Err(mut error)) => Err(match (error.take_message(), self.tls_failure(error.error())) {
                (Some(_), Some(failure)) => ExchangeError::NotSent(failure),
                (Some(_), None) => ExchangeError::NotSent(self.unreachable(innermost(error.error()))),
                (None, Some(failure)) => ExchangeError::Failed(failure),
                (None, None) => ExchangeError::Failed(CallError::Interrupted { address: self.address(), request: name }),
            }),
            Err(_) => Err(ExchangeError::Failed(self.too_slow(limit))),
        }
    }

    /// A node of a pair that does not lead says when to ask again, and has done nothing. Other failures of a server (503) say nothing of the kind.
    pub(crate) fn leading(&self, response: &Response<Incoming>) -> Result<(), CallError> {
        if self.place.is_pair() && follows(response) { Err(CallError::DoesNotLead { address: self.address() }) } else { Ok(()) }
    }

    /// A server that asks for a certificate, or refuses ours, says so behind the handshake.
    fn tls_failure(&self, error: &hyper::Error) -> Option<CallError> {
        match &self.tls {
            Some(tls) => tls.failure(error).map(|why| self.not_agreed(why)),
            None => error.is_parse().then(|| self.not_agreed_plain(NOT_HTTP)),
        }
    }

    async fn exchange(&self, sender: &mut Sender, request: Request<Full<Bytes>>) -> Result<Answer, ExchangeError> {
        let name = format!("{} {}", request.method(), request.uri());
        let limit = self.limits.answer_timeout;
        let whole = async {
            let response = self.try_head(sender, request).await?;
            self.leading(&response).map_err(ExchangeError::Failed)?;
            let follows = follows(&response);
            let answer = self.body(&name, response).await.map_err(ExchangeError::Failed)?;
            if follows { Err(ExchangeError::Failed(self.refusal_of_standby(&answer))) } else { Ok(answer) }
        };
        timeout(limit, whole).await.unwrap_or_else(|_| Err(ExchangeError::Failed(self.too_slow(limit))))
    }

    /// Reads a body of at most [`Limits::answer_bytes_max`].
    pub(crate) async fn body(&self, request: &str, response: Response<Incoming>) -> Result<Answer, CallError> {
        let status = response.status();
        match Limited::new(response.into_body(), self.limits.answer_bytes_max).collect().await {
            Ok(body) => Ok(Answer { status, body: body.to_bytes() }),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(self
                    .unexpected(status, format!("a body longer than {} bytes (Limits::answer_bytes_max)", self.limits.answer_bytes_max)))
            }
            Err(_) => Err(CallError::Interrupted { address: self.address(), request: request.to_owned() }),
        }
    }

    fn too_slow(&self, limit: Duration) -> CallError {
        CallError::TooSlow { address: self.address(), limit }
    }
}

/// Returns true if the answer is that of a node which does not lead its pair.
///
/// Other failures of a server (503) have no `Retry-After`.
fn follows(response: &Response<Incoming>) -> bool {
    response.status() == StatusCode::SERVICE_UNAVAILABLE && response.headers().contains_key(header::RETRY_AFTER)
}

/// What lies at the bottom of an error: the part people can act on.
fn innermost(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
