//! Connecting to a provider: how long it takes until somebody accepts.

use std::time::{Duration, Instant};

use super::Measurement;
use crate::{
    control::Endpoint,
    destination::{DestinationError, Destinations},
};

/// Attempts of a measurement, one after the other.
const ATTEMPTS: usize = 10;
/// Between two of them.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(10);

/// Connects some times. Our own listeners accept, and are not asked.
pub async fn measure(endpoint: Endpoint, patience: Duration, destinations: Destinations) -> (Endpoint, Measurement) {
    let mut measurement = Measurement::default();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(ATTEMPT_PAUSE).await;
        }
        let begun = Instant::now();
        let connected = destinations.connect(endpoint.address.as_str(), endpoint.port, patience).await;
        measurement.attempts.push(match connected {
            Ok(_) => Some(begun.elapsed()),
            Err(DestinationError::Own(_)) => Some(Duration::ZERO),
            Err(error) => {
                measurement.trouble = Some(error.to_string());
                None
            }
        });
    }
    (endpoint, measurement)
}
