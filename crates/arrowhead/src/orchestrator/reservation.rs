//! Reservations: a provider's service is kept for one consumer (reference 5 and 13).
//!
//! A temporary lock holds several results of an orchestration while one of them is chosen; the chosen one is then
//! confirmed for longer. An orchestration that asks for a provider exclusively reserves it at once.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::{
    error::ArrowheadError,
    explanation::{Criterion, Step, Witness},
    form::{ReservationRequest, SystemRequest},
    record::{DefinitionId, EntryView, Reservation, ReservationId, SystemId, Timestamps},
    snapshot::Snapshot,
    system::{SystemKey, SystemReference},
    utc::UtcTime,
};

/// Member of a result's metadata that says for how many seconds the service is wanted.
pub(super) const SERVICE_TIME: &str = "QoSCalculatedServiceTimeFrame";

/// How long reservations last; whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationTimes {
    /// Of a temporary lock.
    pub lock: Duration,
    /// Of a confirmed reservation at the most, and where the result does not say for how long it is wanted.
    pub maximum: Duration,
}

impl Default for ReservationTimes {
    fn default() -> Self {
        Self { lock: Duration::from_secs(60), maximum: Duration::from_secs(3600) }
    }
}

/// A provider's service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// By whom.
    pub provider: SystemId,
    /// What.
    pub definition: DefinitionId,
}

impl Offer {
    fn parse(result: &Value, origin: &str) -> Result<Self, ArrowheadError> {
        let id = |pointer: &str| {
            let missing = || ArrowheadError::bad_payload(format!("A result has no id at {pointer}."), origin);
            result.pointer(pointer).and_then(Value::as_i64).ok_or_else(missing)
        };
        Ok(Self { provider: SystemId(id("/provider/id")?), definition: DefinitionId(id("/service/id")?) })
    }
}

/// Results to be held while one of them is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct TemporaryLock {
    /// For whom.
    pub consumer: SystemKey,
    /// Each result as it came, and what it is about.
    pub results: Vec<(Offer, Value)>,
    /// For how long.
    pub duration: Duration,
}

impl TemporaryLock {
    /// Checks a form.
    pub fn parse(form: ReservationRequest, times: ReservationTimes, origin: &str) -> Result<Self, ArrowheadError> {
        let consumer = parse_consumer(form.requester.as_ref(), origin)?;
        let results = form.or_list.unwrap_or_default().into_iter().map(|result| Ok((Offer::parse(&result, origin)?, result)));
        Ok(Self { consumer, results: results.collect::<Result<_, ArrowheadError>>()?, duration: times.lock })
    }
}

/// The answer to a temporary lock: the results that are held now.
#[derive(Debug, Serialize)]
pub struct TemporaryLockResponse {
    /// As they came.
    pub response: Vec<Value>,
}

/// A choice: one result is kept, the locks of the others are let go.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmation {
    /// For whom.
    pub consumer: SystemKey,
    /// What is kept.
    pub selected: Offer,
    /// What is let go.
    pub others: Vec<Offer>,
    /// For how long.
    pub duration: Duration,
}

impl Confirmation {
    /// Checks a form.
    pub fn parse(form: ReservationRequest, times: ReservationTimes, origin: &str) -> Result<Self, ArrowheadError> {
        let consumer = parse_consumer(form.requester.as_ref(), origin)?;
        let result = form.selected.ok_or_else(|| ArrowheadError::bad_payload("Selected result is null.", origin))?;
        let selected = Offer::parse(&result, origin)?;
        let others = form.or_list.unwrap_or_default();
        let others = others.iter().map(|result| Offer::parse(result, origin)).collect::<Result<Vec<_>, _>>()?;
        let others = others.into_iter().filter(|offer| *offer != selected).collect();
        let wanted = result.pointer(&format!("/metadata/{SERVICE_TIME}"));
        let wanted = wanted.and_then(|seconds| seconds.as_str().and_then(|text| text.trim().parse().ok()).or(seconds.as_u64()));
        let duration = wanted.map_or(times.maximum, |seconds| times.maximum.min(Duration::from_secs(seconds)));
        Ok(Self { consumer, selected, others, duration })
    }
}

fn parse_consumer(requester: Option<&SystemRequest>, origin: &str) -> Result<SystemKey, ArrowheadError> {
    let consumer = SystemReference::parse(requester, "Requester system", origin)?;
    if consumer.is_storable() { Ok(consumer.key) } else { Err(ArrowheadError::database()) }
}

/// Whether nobody else keeps the provider's service.
pub(super) fn is_free_for(snapshot: &Snapshot, consumer: &SystemKey, view: &EntryView, now: UtcTime, witness: &mut impl Witness) -> bool {
    let reservation = snapshot.reservation_of(view.entry.provider, view.entry.definition, now);
    let other = reservation.filter(|reservation| reservation.consumer != *consumer);
    if let Some(reservation) = other {
        witness.see(|| {
            let found = format!("{} keeps it until {}", reservation.consumer.parts().0, reservation.reserved_to);
            let step = Step::new(Criterion::Reservation, false, "does nobody else keep it?", found);
            step.of(view.entry.id).by(Some(reservation.id.0))
        });
    }
    other.is_none()
}

/// A reservation as it is listed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationView {
    id: ReservationId,
    reserved_provider_id: SystemId,
    reserved_service_id: DefinitionId,
    consumer_system_name: String,
    consumer_address: String,
    consumer_port: u16,
    reserved_to: UtcTime,
    temporary_lock: bool,
    #[serde(flatten)]
    timestamps: Timestamps,
}

impl From<&Reservation> for ReservationView {
    fn from(reservation: &Reservation) -> Self {
        let (name, address, port) = reservation.consumer.parts();
        Self {
            id: reservation.id,
            reserved_provider_id: reservation.provider,
            reserved_service_id: reservation.definition,
            consumer_system_name: name.to_owned(),
            consumer_address: address.to_owned(),
            consumer_port: port,
            reserved_to: reservation.reserved_to,
            temporary_lock: reservation.temporary_lock,
            timestamps: reservation.timestamps,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(provider: i64, service_time: Value) -> Value {
        json!({"provider": {"id": provider}, "service": {"id": 7}, "metadata": {SERVICE_TIME: service_time}})
    }

    fn confirm(selected: Option<Value>, or_list: Vec<Value>) -> Result<Confirmation, ArrowheadError> {
        let requester =
            SystemRequest { system_name: Some("a".into()), address: Some("b".into()), port: Some(1), ..SystemRequest::default() };
        let form = ReservationRequest { requester: Some(requester), or_list: Some(or_list), selected };
        Confirmation::parse(form, ReservationTimes::default(), "/x")
    }

    #[test]
    fn a_confirmation_keeps_one_and_lets_the_others_go() {
        let list = vec![result(1, Value::Null), result(2, Value::Null)];
        let confirmation = confirm(Some(result(2, Value::Null)), list).unwrap();
        assert_eq!(confirmation.selected.provider, SystemId(2));
        assert_eq!(confirmation.others, [Offer { provider: SystemId(1), definition: DefinitionId(7) }]);
        assert!(confirm(None, vec![]).is_err());
        assert!(confirm(Some(json!({"provider": {"id": 1}})), vec![]).is_err());
    }

    #[test]
    fn a_reservation_lasts_as_long_as_the_service_is_wanted_but_not_longer_than_the_maximum() {
        for (service_time, seconds) in [(Value::Null, 3600), (json!("20"), 20), (json!(20), 20), (json!("9999"), 3600), (json!("x"), 3600)]
        {
            let confirmation = confirm(Some(result(1, service_time.clone())), vec![]).unwrap();
            assert_eq!(confirmation.duration, Duration::from_secs(seconds), "{service_time}");
        }
    }
}
