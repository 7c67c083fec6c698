//! Opening what is there: the database and the certificates, and whether this node may serve from them.

use std::{io, sync::Arc};

use bodkin_store::{
    Opened, Store,
    following::Following,
    identity::{self, DatabaseId},
};
use bodkin_trust::TrustDirectory;

use super::StartError;
use crate::{
    config::HostConfig,
    security::{Security, SecurityConfig, SecurityError},
    shared::account::{Account, refuse_other_authority},
};

/// Opens the database: a node's own, or one that it shares with others; of a pair's node that follows until it leads. Nothing is made there for a cloud that does not start.
///
/// # Errors
/// It cannot be opened, was written in the other mode, or belongs to nodes of another authority.
pub(super) async fn database(config: &HostConfig) -> Result<(Opened, Option<Following>), StartError> {
    let (opened, following) = match (&config.pair, &config.database) {
        (Some(pair), _) => {
            let (opened, following) = Store::follow(&config.data, pair.reporter())?;
            (opened, Some(following))
        }
        (None, Some(place)) => (Store::share(&config.data, place)?, None),
        (None, None) => (Store::open(&config.data)?, None),
    };
    refuse_other_mode(&opened.store, config)?;
    let authority = config.security.as_ref().and_then(SecurityConfig::own_authority);
    refuse_other_authority(&opened.store, authority.as_ref()).await?;
    // What was revoked while this node was away counts for the first who comes.
    if authority.is_some_and(|own| own.exists())
        && let Some(account) = account(config, &opened.store)?
    {
        match account.take().await {
            // A standby receives the present lines from its leader, and can refuse what is revoked without its files.
            Err(error) if config.pair.is_some() => tracing::error!(%error, "lines of certificates are not taken into the trust directory"),
            taken => taken?,
        }
    }
    // A node of a pair has its database from the other one, and looks when it leads.
    if config.pair.is_none() {
        bind_parts(config, &opened.store).await?;
    }
    Ok((opened, following))
}

/// Refuses a data directory whose event log or audit log belongs to another database, and notes which one they belong to.
///
/// # Errors
/// Returns an error if a part belongs to another database, or the disk or the database refuses.
pub(super) async fn bind_parts(config: &HostConfig, store: &Store) -> Result<DatabaseId, StartError> {
    let database: DatabaseId = match store.shared_names() {
        Some((_, cloud)) => cloud.parse().map_err(io::Error::other)?,
        None => {
            let drawn = DatabaseId::draw()?;
            store.write(move |draft| draft.database_id(&drawn), |_, id| id).await?
        }
    };
    let (directory, bound) = (config.data.clone(), database.clone());
    tokio::task::spawn_blocking(move || identity::bind_parts(&directory, &bound)).await.map_err(io::Error::other)??;
    Ok(database)
}

/// Data that was written in the other mode is taken over only where the operator says so.
pub(super) fn refuse_other_mode(store: &Store, config: &HostConfig) -> Result<(), StartError> {
    let was_secure = store.snapshot().clouds().find(|cloud| cloud.own_cloud).map(|cloud| cloud.secure);
    match was_secure.filter(|was_secure| *was_secure != config.security.is_some() && !config.adopt_data) {
        Some(was_secure) => Err(StartError::OtherMode { directory: config.data.clone(), was_secure }),
        None => Ok(()),
    }
}

/// The account of certificates that the nodes share, where they do, and this one has its cloud's authority.
pub(super) fn account(config: &HostConfig, store: &Store) -> Result<Option<Account>, SecurityError> {
    let authority = config.security.as_ref().and_then(SecurityConfig::own_authority);
    let account = |own: TrustDirectory| Account::of(&own, store, config.pair.as_ref());
    Ok(authority.map(account).transpose()?.flatten())
}

/// Reads certificates and keys, which takes its time: not on a thread that serves others.
pub(super) async fn security(config: &HostConfig) -> Result<Option<Arc<Security>>, StartError> {
    let Some(config) = config.security.clone() else { return Ok(None) };
    let opened = tokio::task::spawn_blocking(|| Security::open(config)).await.map_err(io::Error::other)?;
    Ok(Some(opened?))
}
