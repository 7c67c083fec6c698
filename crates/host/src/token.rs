//! Authorization's tokens: made on threads of their own, kept while they are good.
//!
//! A token costs about a third of a millisecond of a processor, most of it for the signature, so a consumer that asks again gets the one it has
//! had while half of its time is left. What has to be made goes to the signing threads through a bounded queue; whoever asks
//! waits as a task and holds no thread.

mod cache;
mod signing;

use std::{
    collections::BTreeSet,
    sync::{Arc, mpsc},
    thread,
};

use arc_swap::ArcSwap;
use bodkin_arrowhead::{
    authorization::token::{TokenLifetimes, TokenOrder},
    common_name::{CloudCommonName, CommonNameError},
    error::ArrowheadError,
};
use bodkin_trust::{Identity, jose::UnusableKey};
use tokio::sync::oneshot;

use self::signing::{Job, Signing, sign_for_ever};
use crate::control::now;

/// Tokens that may wait to be made, those of all requests together; a request for one more is answered 503.
const QUEUE_MAX: usize = 65_536;
/// Tokens of one request that wait at the same time: a large request must not keep the small ones waiting.
const QUEUED_OF_REQUEST_MAX: usize = 8;
/// Tokens that one request may ask for; more is refused with 400.
const TOKENS_OF_REQUEST_MAX: usize = 16_384;
/// Threads that sign, if there are as many processors.
const THREADS_MAX: usize = 8;

/// Why no tokens can be issued with an identity.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    /// Its key does not sign tokens.
    #[error("Authorization's key cannot sign tokens: {0}")]
    Key(#[from] UnusableKey),
    /// Its name says no cloud.
    #[error("Authorization's certificate does not say which cloud it is of: {0}")]
    Name(#[from] CommonNameError),
    /// No thread could be made.
    #[error("the system refuses a thread to sign tokens on: {0}")]
    Thread(#[from] std::io::Error),
}

/// Issues tokens in Authorization's name. Its threads end when it is dropped.
pub struct TokenIssuer {
    signing: ArcSwap<Signing>,
    queue: mpsc::SyncSender<Job>,
    lifetimes: TokenLifetimes,
    endless_for: Arc<BTreeSet<String>>,
}

impl TokenIssuer {
    /// Starts the signing threads, for Authorization's identity.
    pub fn start(authorization: &Identity, lifetimes: TokenLifetimes) -> Result<Self, IssuerError> {
        Self::start_with(authorization, lifetimes, BTreeSet::new())
    }

    /// As [`Self::start`]; tokens for the providers of these names (lower-case) have no expiry.
    pub fn start_with(authorization: &Identity, lifetimes: TokenLifetimes, endless_for: BTreeSet<String>) -> Result<Self, IssuerError> {
        let endless_for = Arc::new(endless_for);
        let signing = ArcSwap::from_pointee(Signing::new(authorization, endless_for.clone())?);
        let (queue, jobs) = mpsc::sync_channel(QUEUE_MAX);
        let jobs = Arc::new(std::sync::Mutex::new(jobs));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        for number in 0..processors.min(THREADS_MAX) {
            let jobs = jobs.clone();
            thread::Builder::new().name(format!("token-{number}")).spawn(move || sign_for_ever(&jobs))?;
        }
        Ok(Self { signing, queue, lifetimes, endless_for })
    }

    /// Goes on with another identity. What was made with the former key is not handed out any more.
    pub fn replace_identity(&self, authorization: &Identity) -> Result<(), IssuerError> {
        self.signing.store(Arc::new(Signing::new(authorization, self.endless_for.clone())?));
        Ok(())
    }

    /// Base64 of the public key that providers verify tokens with.
    pub fn authentication_info(&self) -> String {
        self.signing.load().authentication_info().to_owned()
    }

    /// The cloud that Authorization is of.
    pub fn own_cloud(&self) -> CloudCommonName {
        self.signing.load().own_cloud.clone()
    }

    /// Returns true if the token of this order has no expiry.
    pub fn is_endless(&self, order: &TokenOrder) -> bool {
        self.endless_for.contains(order.provider.parts().0)
    }

    /// How long tokens count.
    pub fn lifetimes(&self) -> TokenLifetimes {
        self.lifetimes
    }

    /// Gives a token for each order, in their order; `None` where the provider's key cannot be used.
    pub async fn issue(&self, orders: &[&TokenOrder]) -> Result<Vec<Option<Arc<str>>>, ArrowheadError> {
        if orders.len() > TOKENS_OF_REQUEST_MAX {
            return Err(ArrowheadError::invalid_parameter(format!(
                "{} tokens would be needed, and at most {TOKENS_OF_REQUEST_MAX} are made for one request: ask for fewer providers or interfaces.",
                orders.len()
            )));
        }
        let signing = self.signing.load_full();
        let mut tokens = Vec::with_capacity(orders.len());
        for group in orders.chunks(QUEUED_OF_REQUEST_MAX) {
            let begun = group.iter().map(|order| self.begin(&signing, order)).collect::<Result<Vec<_>, _>>()?;
            for token in begun {
                tokens.push(token.ready().await?);
            }
        }
        Ok(tokens)
    }

    fn begin(&self, signing: &Arc<Signing>, order: &TokenOrder) -> Result<Begun, ArrowheadError> {
        if let Some(token) = signing.kept(order, now()) {
            return Ok(Begun::Kept(token));
        }
        let (answer, answered) = oneshot::channel();
        let job = Job { signing: signing.clone(), order: order.clone(), answer };
        match self.queue.try_send(job) {
            Ok(()) => Ok(Begun::Queued(answered)),
            Err(mpsc::TrySendError::Full(_)) => {
                let told = format!("{QUEUE_MAX} tokens are waiting to be made, which is the limit: try again in some seconds.");
                Err(ArrowheadError::unavailable(told))
            }
            Err(mpsc::TrySendError::Disconnected(_)) => unreachable!("the signing threads end after the issuer"),
        }
    }
}

/// A token that is there, or is being made.
enum Begun {
    Kept(Arc<str>),
    Queued(oneshot::Receiver<Option<Arc<str>>>),
}

impl Begun {
    async fn ready(self) -> Result<Option<Arc<str>>, ArrowheadError> {
        match self {
            Self::Kept(token) => Ok(Some(token)),
            Self::Queued(answered) => answered.await.map_err(|_| ArrowheadError::unavailable("The local cloud is shutting down.")),
        }
    }
}

#[cfg(test)]
mod tests;
