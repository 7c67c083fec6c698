//! Reservations: providers that a consumer keeps for itself (reference sections 5 and 13).

use super::{DefinitionId, ReservationId, SystemId, Timestamps};
use crate::{system::SystemKey, utc::UtcTime};

/// A provider's service that is kept for one consumer until a time. Provider and service are bare ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Reservation {
    /// Row id.
    pub id: ReservationId,
    /// Who is kept.
    pub provider: SystemId,
    /// For what.
    pub definition: DefinitionId,
    /// For whom.
    pub consumer: SystemKey,
    /// Until when; whole seconds. From then on it counts for nothing.
    pub reserved_to: UtcTime,
    /// Whether it is only held while one of several is chosen.
    pub temporary_lock: bool,
    /// Times of the row.
    pub timestamps: Timestamps,
}
