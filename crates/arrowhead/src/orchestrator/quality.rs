//! Quality of service (reference 5.5): what a consumer requires of its provider, what was measured of providers, and for how long one is wanted
//! for the consumer alone.

use std::{collections::BTreeMap, fmt, time::Duration};

use crate::{
    error::ArrowheadError,
    explanation::{Criterion, Step, Witness},
    metadata::MetadataForm,
    record::{EntryView, System},
};

use super::{
    Kind, Orchestration,
    reservation::{Confirmation, Offer},
};

/// Command that asks for a provider for the consumer alone, for so many seconds.
const EXCLUSIVITY: &str = "qosExclusivity";

/// What was measured of a provider: times of connecting to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Longest response of the last measurement, in ms.
    pub response_max_ms: f64,
    /// Their mean, in ms.
    pub response_mean_ms: f64,
    /// Their standard deviation, in ms.
    pub jitter_ms: f64,
    /// Share of the last measurement's attempts that were not answered in time, in percent.
    pub recent_loss_percent: f64,
    /// The same of all attempts since the provider is known, in percent.
    pub loss_percent: f64,
    /// Within how many ms 99 % of the next attempts are predicted to be answered; none where too little is known, or more than that is lost.
    pub predicted_ms: Option<f64>,
}

/// A figure that may be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    ResponseMax,
    ResponseMean,
    Jitter,
    RecentLoss,
    Loss,
    Predicted,
}

impl Figure {
    const ALL: [Self; 6] = [Self::ResponseMax, Self::ResponseMean, Self::Jitter, Self::RecentLoss, Self::Loss, Self::Predicted];

    /// The requirement's key.
    fn key(self) -> &'static str {
        match self {
            Self::ResponseMax => "qosMaxRespTimeThreshold",
            Self::ResponseMean => "qosAvgRespTime",
            Self::Jitter => "qosJitterThreshold",
            Self::RecentLoss => "qosMaxRecentPacketLoss",
            Self::Loss => "qosMaxPacketLost",
            // Bodkin's own: upstream predicts nothing.
            Self::Predicted => "qosPredictedRespTime",
        }
    }

    /// What was found; none where nothing is predicted.
    fn of(self, measured: &Measured) -> Option<f64> {
        Some(match self {
            Self::ResponseMax => measured.response_max_ms,
            Self::ResponseMean => measured.response_mean_ms,
            Self::Jitter => measured.jitter_ms,
            Self::RecentLoss => measured.recent_loss_percent,
            Self::Loss => measured.loss_percent,
            Self::Predicted => return measured.predicted_ms,
        })
    }

    /// Whether it is a time, for which a provider has to have answered.
    fn is_time(self) -> bool {
        matches!(self, Self::ResponseMax | Self::ResponseMean | Self::Jitter | Self::Predicted)
    }

    /// Whether such a limit can be met, and another one not.
    fn takes(self, limit: f64) -> bool {
        match self {
            Self::ResponseMax | Self::ResponseMean | Self::Predicted => limit > 0.0 && limit.is_finite(),
            Self::Jitter => limit >= 0.0 && limit.is_finite(),
            Self::RecentLoss | Self::Loss => (0.0..=100.0).contains(&limit),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::ResponseMax | Self::ResponseMean | Self::Predicted => "milliseconds above 0",
            Self::Jitter => "milliseconds from 0",
            Self::RecentLoss | Self::Loss => "percent, 0 to 100",
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// What a consumer requires, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quality {
    limits: Vec<(Figure, f64)>,
    /// For how long the chosen provider is wanted for the consumer alone.
    pub exclusivity: Option<Duration>,
}

impl Quality {
    /// Checks requirements and commands; keys that mean nothing here are passed over. Exclusivity is asked for in whole seconds, 1 to those of `longest`.
    pub(super) fn parse(
        requirements: Option<&MetadataForm>,
        commands: Option<&MetadataForm>,
        longest: Duration,
    ) -> Result<Self, ArrowheadError> {
        let empty = BTreeMap::new();
        let mut limits = Vec::new();
        for figure in Figure::ALL {
            let Some(text) = requirements.unwrap_or(&empty).get(figure.key()) else { continue };
            let limit = text.as_deref().and_then(|text| text.trim().parse::<f64>().ok()).filter(|limit| figure.takes(*limit));
            let refused = || format!("{figure} is {}; expected {}.", text.as_deref().unwrap_or("null"), figure.expected());
            limits.push((figure, limit.ok_or_else(|| ArrowheadError::invalid_parameter(refused()))?));
        }
        let exclusivity = commands.unwrap_or(&empty).get(EXCLUSIVITY).map(|text| {
            let seconds = text.as_deref().and_then(|text| text.trim().parse::<u64>().ok());
            let seconds = seconds.filter(|seconds| (1..=longest.as_secs()).contains(seconds));
            let refused =
                || format!("{EXCLUSIVITY} is {}; expected seconds, 1 to {}.", text.as_deref().unwrap_or("null"), longest.as_secs());
            seconds.map(Duration::from_secs).ok_or_else(|| ArrowheadError::invalid_parameter(refused()))
        });
        Ok(Self { limits, exclusivity: exclusivity.transpose()? })
    }

    /// The first limit that a provider does not keep, and what was found; none: it keeps all. Who was not measured keeps no limit.
    fn exceeded(&self, measured: Option<&Measured>) -> Option<String> {
        self.limits.iter().find_map(|(figure, limit)| match measured {
            None => Some(format!("{figure} {limit} is asked for, and nothing was measured yet")),
            Some(measured) if figure.is_time() && measured.recent_loss_percent >= 100.0 => {
                Some(format!("{figure} {limit} is asked for, and it did not answer"))
            }
            Some(measured) => {
                let Some(found) = figure.of(measured) else {
                    return Some(format!("{figure} {limit} is asked for, and nothing can be predicted from what it answered"));
                };
                let how = if *figure == Figure::Predicted { "predicted" } else { "measured" };
                (found > *limit).then(|| format!("{figure} {limit} is asked for, and {found:.3} was {how}"))
            }
        })
    }
}

/// Keeps the candidates of a dynamic orchestration whose providers are measured to be as good as the consumer requires, in their order.
pub fn with_quality(
    orchestration: &Orchestration,
    mut candidates: Vec<EntryView>,
    measured: impl Fn(&System) -> Option<Measured>,
    witness: &mut impl Witness,
) -> Vec<EntryView> {
    let Some(quality) = orchestration.quality().filter(|quality| !quality.limits.is_empty()) else { return candidates };
    candidates.retain(|view| {
        let exceeded = quality.exceeded(measured(&view.provider).as_ref());
        witness.see(|| {
            let found = exceeded.clone().unwrap_or_else(|| "it does".to_owned());
            Step::new(Criterion::Quality, exceeded.is_none(), "does the provider keep the required quality of service?", found)
                .of(view.entry.id)
        });
        exceeded.is_none()
    });
    candidates
}

impl Orchestration {
    /// What is required, where it is heeded: the stores know no quality of service.
    fn quality(&self) -> Option<&Quality> {
        self.quality.as_ref().filter(|_| matches!(self.kind, Kind::Dynamic(_)))
    }

    /// For how long the chosen provider is to be kept for the consumer alone.
    pub fn exclusivity(&self) -> Option<Duration> {
        self.quality()?.exclusivity
    }

    /// The reservation of a chosen provider for so long.
    pub fn reservation_of(&self, chosen: &EntryView, duration: Duration) -> Confirmation {
        let selected = Offer { provider: chosen.entry.provider, definition: chosen.entry.definition };
        Confirmation { consumer: self.requester.key.clone(), selected, others: Vec::new(), duration }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quality(requirements: &[(&str, &str)], commands: &[(&str, &str)]) -> Result<Quality, ArrowheadError> {
        let form = |pairs: &[(&str, &str)]| -> MetadataForm {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned()))).collect()
        };
        Quality::parse(Some(&form(requirements)), Some(&form(commands)), Duration::from_secs(3600))
    }

    #[test]
    fn limits_are_checked() {
        for (key, right, wrong) in [
            ("qosMaxRespTimeThreshold", ["1", "0.5", " 20 "], ["0", "-1", "fast"]),
            ("qosAvgRespTime", ["1", "0.5", "1e3"], ["0", "inf", ""]),
            ("qosPredictedRespTime", ["1", "0.5", "1e3"], ["0", "NaN", "soon"]),
            ("qosJitterThreshold", ["0", "0.5", "20"], ["-1", "NaN", "x"]),
            ("qosMaxRecentPacketLoss", ["0", "50", "100"], ["-1", "101", "x"]),
            ("qosMaxPacketLost", ["0", "50", "100"], ["-1", "100.5", "x"]),
        ] {
            right.iter().for_each(|text| assert_eq!(quality(&[(key, text)], &[]).unwrap().limits.len(), 1, "{key} {text}"));
            wrong.iter().for_each(|text| assert!(quality(&[(key, text)], &[]).is_err(), "{key} {text}"));
        }
        assert_eq!(quality(&[("other", "x")], &[("other", "x")]).unwrap(), Quality::default());
    }

    #[test]
    fn exclusivity_is_seconds_up_to_the_longest_reservation() {
        for (text, seconds) in [("1", Some(1)), ("3600", Some(3600)), ("0", None), ("3601", None), ("1.5", None), ("", None)] {
            let found = quality(&[], &[("qosExclusivity", text)]).ok().and_then(|quality| quality.exclusivity);
            assert_eq!(found, seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn every_limit_is_kept_up_to_itself() {
        let measured = Measured {
            response_max_ms: 5.0,
            response_mean_ms: 4.0,
            jitter_ms: 3.0,
            recent_loss_percent: 2.0,
            loss_percent: 1.0,
            predicted_ms: Some(6.0),
        };
        for (key, found) in [
            ("qosMaxRespTimeThreshold", 5.0),
            ("qosAvgRespTime", 4.0),
            ("qosJitterThreshold", 3.0),
            ("qosMaxRecentPacketLoss", 2.0),
            ("qosMaxPacketLost", 1.0),
            ("qosPredictedRespTime", 6.0),
        ] {
            let exceeded = |limit: f64| quality(&[(key, &limit.to_string())], &[]).unwrap().exceeded(Some(&measured));
            assert_eq!((exceeded(found), exceeded(found + 0.1)), (None, None), "{key}");
            assert!(exceeded(found - 0.1).is_some_and(|told| told.starts_with(key)), "{key}");
        }
    }

    #[test]
    fn who_was_not_measured_or_does_not_answer_keeps_no_limit() {
        let asked = |key: &str| quality(&[(key, "100")], &[]).unwrap();
        let silent = Measured { recent_loss_percent: 100.0, loss_percent: 10.0, ..Measured::default() };
        for (key, keeps) in
            [("qosMaxRespTimeThreshold", false), ("qosAvgRespTime", false), ("qosJitterThreshold", false), ("qosMaxPacketLost", true)]
        {
            assert!(asked(key).exceeded(None).is_some(), "{key}");
            assert_eq!(asked(key).exceeded(Some(&silent)).is_none(), keeps, "{key}");
        }
        let unpredicted = asked("qosPredictedRespTime").exceeded(Some(&Measured::default()));
        assert_eq!(
            unpredicted.as_deref(),
            Some("qosPredictedRespTime 100 is asked for, and nothing can be predicted from what it answered")
        );
        assert_eq!(quality(&[], &[]).unwrap().exceeded(None), None, "who requires nothing gets whoever is there");
    }
}
