//! The Authorization system tells that a subscriber's rules have changed (reference 6.4).
//!
//! The rules themselves are asked for each event, so there is nothing to bring up to date, and no update can be lost: what is
//! left is to refuse what upstream refuses.

use crate::{
    caller::Authorized,
    error::ArrowheadError,
    publication::{PublishForm, Scratch, authorize},
    snapshot::Snapshot,
    utc::UtcTime,
};

/// Path of the operation, as errors name it.
pub const AUTH_UPDATE_ORIGIN: &str = "/eventhandler/publish/authupdate";
/// The one event type it takes, in any case.
pub const AUTH_UPDATE_EVENT_TYPE: &str = "SUBSCRIBER_AUTH_UPDATE";

/// Checks an update: an event as any other, whose payload is the id of the subscriber.
pub fn check(snapshot: &Snapshot, form: &Authorized<PublishForm<'_>>, now: UtcTime) -> Result<(), ArrowheadError> {
    let refused = |message: &str| ArrowheadError::bad_payload(message, AUTH_UPDATE_ORIGIN);
    let mut scratch = Scratch::default();
    let publication = authorize(snapshot, form, now, &mut scratch).map_err(|error| error.at(AUTH_UPDATE_ORIGIN))?;
    if scratch.event_type != AUTH_UPDATE_EVENT_TYPE {
        return Err(refused("Event type must be SUBSCRIBER_AUTH_UPDATE."));
    }
    match publication.payload().text().trim().parse::<i64>() {
        Ok(id) if id > 0 => Ok(()),
        _ => Err(refused("Payload must be the id of the subscriber system.")),
    }
}
