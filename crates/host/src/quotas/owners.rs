//! The quota of what one system stores.

use bodkin_arrowhead::{error::ArrowheadError, snapshot::OwnerUse};
use bodkin_store::{Draft, OperationError};

use super::Rejections;
use crate::limits::Limits;

/// The quota of what one system stores: its systems, services, and subscriptions. Operators are not limited.
#[derive(Debug)]
pub struct OwnerQuota {
    /// Rows of one system.
    pub rows_max: u64,
    /// Bytes of these rows.
    pub bytes_max: u64,
    /// In the order of [`Self::NAMES`].
    rejections: [Rejections; Self::NAMES.len()],
}

impl OwnerQuota {
    /// Name of its group in metrics.
    pub const GROUP: &str = "registry";
    const NAMES: [&str; 2] = ["owner_rows", "owner_bytes"];

    /// A quota that has rejected nothing.
    pub fn new(limits: &Limits) -> Self {
        Self { rows_max: limits.owner_rows_max, bytes_max: limits.owner_bytes_max, rejections: Default::default() }
    }

    /// Checks what the running operation of `draft` has given to a system.
    ///
    /// # Errors
    /// Refuses the operation if the system has more than its quota. The rejection is counted and logged.
    pub fn check(&self, draft: &Draft<'_>) -> Result<(), OperationError> {
        draft.owner_growth().into_iter().try_for_each(|(owner, used)| self.check_owner(owner.as_str(), used))
    }

    fn check_owner(&self, owner: &str, used: OwnerUse) -> Result<(), OperationError> {
        let (rejections, reason) = if used.rows > self.rows_max {
            (&self.rejections[0], format!("{} systems, services and subscriptions (owner_rows_max)", self.rows_max))
        } else if used.bytes > self.bytes_max {
            (&self.rejections[1], format!("{} bytes of systems, services and subscriptions (owner_bytes_max)", self.bytes_max))
        } else {
            return Ok(());
        };
        if let Some(times) = rejections.count() {
            tracing::warn!(owner, limit = reason, times, "change rejected: quota of a system used up");
        }
        let text = format!("The system '{owner}' has reached its limit of {reason}. Remove what it does not need, or raise the limit.");
        Err(ArrowheadError::unavailable(text).into())
    }

    /// Name of each quota, its limit, and what it has rejected.
    pub fn quotas(&self) -> [(&'static str, u64, &Rejections); 2] {
        let [rows, bytes] = &self.rejections;
        [(Self::NAMES[0], self.rows_max, rows), (Self::NAMES[1], self.bytes_max, bytes)]
    }
}
