//! What was measured of providers and of their services, as figures.

use std::time::Duration;

use crate::utc::UtcTime;

/// Share of the last attempts that [`Measured::response_p99_ms`] is not below.
const HIGH_SHARE: f64 = 0.99;

/// Times and losses of attempts of one kind: to connect to a provider, or to be answered by a service.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Shortest response of the last measurement, in ms.
    pub response_min_ms: f64,
    /// Longest response of the last measurement, in ms.
    pub response_max_ms: f64,
    /// Their mean, in ms.
    pub response_mean_ms: f64,
    /// Their standard deviation, in ms.
    pub jitter_ms: f64,
    /// The time that 99 % of the attempts of the last measurements took at the most, in ms, those that were answered (nearest rank).
    pub response_p99_ms: f64,
    /// Share of the last measurement's attempts that were not answered in time, in percent.
    pub recent_loss_percent: f64,
    /// The same of all attempts since the provider is known, in percent.
    pub loss_percent: f64,
    /// Within how many ms 99 % of the next attempts are predicted to be answered; none where too little is known, or more than that is lost.
    pub predicted_ms: Option<f64>,
    /// Attempts of the last measurement.
    pub sent: u64,
    /// Those of them that were answered.
    pub received: u64,
    /// Attempts since the provider is known.
    pub sent_all: u64,
    /// Those of them that were answered.
    pub received_all: u64,
    /// Mean of the last measurement with every lost attempt as long as one may take, in ms.
    pub mean_with_lost_ms: f64,
    /// Standard deviation likewise, in ms.
    pub jitter_with_lost_ms: f64,
    /// When a measurement last had an answer.
    pub last_answer: Option<UtcTime>,
}

impl Measured {
    /// Of one measurement: the time of each attempt, none where nobody answered within `patience`, and the last attempts of this and earlier ones.
    pub fn of(attempts: &[Option<Duration>], recent: &[Option<Duration>], patience: Duration) -> Self {
        let times_ms = times_ms(attempts);
        let with_lost: Vec<f64> = attempts.iter().map(|time| ms(time.unwrap_or(patience))).collect();
        let (mean, jitter) = mean_and_deviation(&times_ms);
        let (mean_with_lost_ms, jitter_with_lost_ms) = mean_and_deviation(&with_lost);
        let (sent, received) = (attempts.len() as u64, times_ms.len() as u64);
        Self {
            response_min_ms: times_ms.iter().copied().reduce(f64::min).unwrap_or_default(),
            response_max_ms: times_ms.iter().copied().fold(0.0, f64::max),
            response_mean_ms: mean,
            jitter_ms: jitter,
            response_p99_ms: quantile(self::times_ms(recent)),
            recent_loss_percent: percent(sent - received, sent),
            sent,
            received,
            mean_with_lost_ms,
            jitter_with_lost_ms,
            ..Self::default()
        }
    }

    /// The same with what is known of all attempts.
    pub fn counted(self, sent_all: u64, received_all: u64) -> Self {
        Self { sent_all, received_all, loss_percent: percent(sent_all.saturating_sub(received_all), sent_all), ..self }
    }
}

/// What was measured of a provider's service, of each kind: neither is mixed with the other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    /// Of connecting to the provider.
    pub echo: Option<Measured>,
    /// Of being answered by the service itself; none where it is not asked, or was not yet.
    pub service: Option<Measured>,
    /// Whether the service itself is asked. Until it was, times of connecting do not stand in for its own.
    pub is_probed: bool,
}

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredBy {
    /// The service's own answers.
    Service,
    /// Connecting to its provider.
    Echo,
}

impl MeasuredBy {
    /// As results' metadata and other clouds are told.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Echo => "echo",
        }
    }

    /// In an explanation.
    pub(super) fn told(self) -> &'static str {
        match self {
            Self::Service => "of the service",
            Self::Echo => "of connecting",
        }
    }
}

impl Found {
    /// The figures that limits are held against: the service's own where it is asked, and otherwise those of connecting.
    pub fn decisive(&self) -> Option<(MeasuredBy, &Measured)> {
        match (&self.service, &self.echo) {
            (Some(service), _) => Some((MeasuredBy::Service, service)),
            (None, Some(echo)) if !self.is_probed => Some((MeasuredBy::Echo, echo)),
            _ => None,
        }
    }
}

/// The times of those attempts that were answered, in ms.
pub fn times_ms(attempts: &[Option<Duration>]) -> Vec<f64> {
    attempts.iter().flatten().copied().map(ms).collect()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

fn mean_and_deviation(times_ms: &[f64]) -> (f64, f64) {
    let count = times_ms.len().max(1) as f64;
    let mean = times_ms.iter().sum::<f64>() / count;
    let variance = times_ms.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// The smallest of the times that [`HIGH_SHARE`] of them are not above; 0 of none.
fn quantile(mut times_ms: Vec<f64>) -> f64 {
    times_ms.sort_unstable_by(f64::total_cmp);
    let rank = (HIGH_SHARE * times_ms.len() as f64).ceil() as usize;
    times_ms.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    #[test]
    fn a_measurement_has_its_mean_spread_and_losses() {
        let attempts = [after(1), after(3), None, after(5), None];
        let found = Measured::of(&attempts, &attempts, Duration::from_millis(10));
        assert_eq!((found.response_min_ms, found.response_max_ms, found.response_mean_ms), (1.0, 5.0, 3.0));
        assert_eq!((found.sent, found.received, found.recent_loss_percent), (5, 3, 40.0));
        assert!((found.jitter_ms - (8.0_f64 / 3.0).sqrt()).abs() < 1e-12, "{found:?}");
        // 1, 3, 10, 5 and 10 ms: mean 5.8, and squares of 4.8, 2.8, 4.2, 0.8 and 4.2.
        assert!((found.mean_with_lost_ms - 5.8).abs() < 1e-12, "{found:?}");
        assert!((found.jitter_with_lost_ms - 13.36_f64.sqrt()).abs() < 1e-9, "{found:?}");
        let silent = Measured::of(&[None, None], &[None, None], Duration::from_millis(10));
        assert_eq!((silent.response_mean_ms, silent.response_p99_ms, silent.recent_loss_percent), (0.0, 0.0, 100.0));
    }

    #[test]
    fn the_high_times_are_those_of_the_last_measurements() {
        let recent: Vec<_> = (1..=200).map(after).collect();
        assert_eq!(Measured::of(&[after(1)], &recent, Duration::from_secs(1)).response_p99_ms, 198.0);
        assert_eq!(Measured::of(&[after(1)], &[after(7)], Duration::from_secs(1)).response_p99_ms, 7.0);
    }

    #[test]
    fn losses_are_shares_of_all_attempts() {
        assert_eq!(Measured::default().counted(8, 6).loss_percent, 25.0);
        assert_eq!(Measured::default().counted(0, 0).loss_percent, 0.0);
    }

    #[test]
    fn the_services_own_times_decide_where_it_is_asked() {
        let (echo, service) = (Some(Measured { sent: 1, ..Measured::default() }), Some(Measured { sent: 2, ..Measured::default() }));
        let decisive = |echo, service, is_probed| Found { echo, service, is_probed }.decisive().map(|(by, found)| (by, found.sent));
        assert_eq!(decisive(echo, service, true), Some((MeasuredBy::Service, 2)));
        assert_eq!(decisive(None, service, true), Some((MeasuredBy::Service, 2)));
        assert_eq!(decisive(echo, None, false), Some((MeasuredBy::Echo, 1)));
        assert_eq!(decisive(echo, None, true), None, "it is asked, and has not been yet");
        assert_eq!(decisive(None, None, false), None);
    }
}
