//! `/api/v1/pair`: what an operator asks of a reliable pair.

use std::time::Duration;

use bodkin_broker::Epoch;
use serde::Serialize;

use super::Api;
use crate::{
    answer::Answer,
    pair::{HandOverError, HandedOver},
};

/// A hand-over as it is told.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HandedOverView {
    /// Who leads: `first` or `second`.
    leader: String,
    epoch: u64,
    drained_ms: u64,
    gap_ms: u64,
}

impl Api {
    /// Has the other node of the pair lead; answers when that one does, or why it does not.
    pub(super) async fn hand_over(&self) -> Answer {
        let Some(pair) = &self.pair else {
            return Answer::problem(409, "This is a cloud by itself: nobody else could lead.");
        };
        match pair.hand_over().await {
            Ok(handed_over) => Answer::json(200, &view(handed_over)),
            Err(error) => not_handed_over(&error),
        }
    }
}

fn view(HandedOver { leader, epoch: Epoch(epoch), drained, gap }: HandedOver) -> HandedOverView {
    let ms_up = |time: Duration| u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
    HandedOverView { leader: format!("{leader:?}").to_lowercase(), epoch, drained_ms: ms_up(drained), gap_ms: ms_up(gap) }
}

/// 409 where nothing has changed; 503 where nobody has led for a while.
fn not_handed_over(error: &HandOverError) -> Answer {
    match error {
        HandOverError::NobodyLed(_) => Answer::problem(503, &format!("{error}.")),
        _ => Answer::problem(409, &format!("{error}.")),
    }
}

#[cfg(test)]
mod tests {
    use bodkin_broker::Node;

    use super::*;

    #[test]
    fn times_are_whole_milliseconds_and_never_less_than_they_were() {
        let told = view(HandedOver {
            leader: Node::Second,
            epoch: Epoch(4),
            drained: Duration::from_micros(20_001),
            gap: Duration::from_millis(431),
        });
        assert_eq!(serde_json::to_value(told).unwrap(), serde_json::json!({"leader": "second", "epoch": 4, "drainedMs": 21, "gapMs": 431}));
    }

    #[test]
    fn a_refusal_that_changed_nothing_differs_from_one_that_stopped_the_node() {
        let status = |error: HandOverError| not_handed_over(&error).status;
        assert_eq!((status(HandOverError::NotProtected), status(HandOverError::NobodyLed(Duration::from_secs(5)))), (409, 503));
    }
}
