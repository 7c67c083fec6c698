//! The threads that sign, and what they sign with.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc::Receiver},
};

use bodkin_arrowhead::{authorization::token::TokenOrder, common_name::CloudCommonName, core_service::CoreSystem, utc::UtcTime};
use bodkin_trust::{
    Identity, TokenSigner,
    jose::{SealingKey, UnusableKey},
};
use tokio::sync::oneshot;

use super::{IssuerError, cache::TokenCache};
use crate::{control::now, seldom::Seldom};

/// A key of Authorization's, and the tokens that were made with it.
pub struct Signing {
    /// The cloud that Authorization is of.
    pub own_cloud: CloudCommonName,
    signer: TokenSigner,
    cache: Mutex<TokenCache>,
    unusable: Seldom,
    endless_for: Arc<BTreeSet<String>>,
}

impl Signing {
    pub fn new(authorization: &Identity, endless_for: Arc<BTreeSet<String>>) -> Result<Self, IssuerError> {
        Ok(Self {
            own_cloud: authorization.certificate().system()?.cloud,
            signer: TokenSigner::new(authorization.key())?,
            cache: Mutex::default(),
            unusable: Seldom::default(),
            endless_for,
        })
    }

    pub fn authentication_info(&self) -> &str {
        self.signer.authentication_info()
    }

    /// The token that was made for an order, if it is good for long enough.
    pub fn kept(&self, order: &TokenOrder, now: UtcTime) -> Option<Arc<str>> {
        self.cache().get(order, now)
    }

    /// Makes a token, unless another thread has just made it; `None` if the provider's key cannot be used.
    fn make(&self, order: TokenOrder, now: UtcTime) -> Option<Arc<str>> {
        if let Some(token) = self.kept(&order, now) {
            return Some(token);
        }
        match self.sign(&order, now) {
            Ok(token) => {
                let token: Arc<str> = token.into();
                self.cache().insert(order, token.clone(), now);
                Some(token)
            }
            Err(UnusableKey) => {
                self.tell_unusable(&order);
                None
            }
        }
    }

    fn sign(&self, order: &TokenOrder, now: UtcTime) -> Result<String, UnusableKey> {
        let provider = SealingKey::from_authentication_info(&order.provider_key)?;
        let is_endless = self.endless_for.contains(order.provider.parts().0);
        self.signer.issue(&order.grant, &provider, now, (!is_endless).then_some(order.lifetime))
    }

    fn tell_unusable(&self, order: &TokenOrder) {
        let Some(times) = self.unusable.due() else { return };
        let ((provider, address, port), service) = (order.provider.parts(), &order.grant.service);
        tracing::warn!(
            system = CoreSystem::Authorization.name(),
            provider, address, port, %service, times,
            "no token was made: the provider's authenticationInfo is not the Base64 of an RSA public key of 2048 to 8192 bits"
        );
    }

    fn cache(&self) -> MutexGuard<'_, TokenCache> {
        // Every change of the cache ends whole or in a stop of the process.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A token to be made, and who waits for it.
pub struct Job {
    pub signing: Arc<Signing>,
    pub order: TokenOrder,
    pub answer: oneshot::Sender<Option<Arc<str>>>,
}

/// Makes what is queued until the issuer is gone.
pub fn sign_for_ever(jobs: &Mutex<Receiver<Job>>) {
    loop {
        // One thread waits in the queue, the others for its lock.
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { signing, order, answer }) = next else { return };
        // Who has gone away needs none, and who goes away meanwhile does not take it.
        if !answer.is_closed() {
            let _ = answer.send(signing.make(order, now()));
        }
    }
}
