//! Quality of service (reference 5.5): what a consumer requires of its provider, what was measured of providers, and for how long one is wanted
//! for the consumer alone.

use std::{collections::BTreeMap, fmt, time::Duration};

use crate::{
    error::ArrowheadError,
    explanation::{Criterion, Step, Witness},
    metadata::MetadataForm,
    record::EntryView,
};

use super::{
    Kind, Orchestration,
    measured::{Found, Measured, MeasuredBy},
    reservation::{Confirmation, Offer},
};

/// Command that asks for a provider for the consumer alone, for so many seconds.
const EXCLUSIVITY: &str = "qosExclusivity";

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

/// Those members that limit a figure. Another cloud is sent them among its commands.
pub fn limits_among(commands: &MetadataForm) -> MetadataForm {
    let limits = Figure::ALL.iter().filter_map(|figure| Some((figure.key().to_owned(), commands.get(figure.key())?.clone())));
    limits.collect()
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

    /// The limits as another cloud is sent them; empty: none.
    pub(super) fn as_commands(&self) -> MetadataForm {
        self.limits.iter().map(|(figure, limit)| (figure.key().to_owned(), Some(limit.to_string()))).collect()
    }

    /// The limits in words.
    fn told(&self) -> String {
        self.limits.iter().map(|(figure, limit)| format!("{figure} {limit}")).collect::<Vec<_>>().join(", ")
    }

    /// The first limit that a provider's service does not keep, and what was found; none: it keeps all. Who was not measured keeps no limit.
    fn exceeded(&self, found: &Found) -> Option<String> {
        let decisive = found.decisive();
        self.limits.iter().find_map(|(figure, limit)| match decisive {
            None => Some(format!("{figure} {limit} is asked for, and nothing was measured yet")),
            Some((by, measured)) if figure.is_time() && measured.recent_loss_percent >= 100.0 => {
                let who = if by == MeasuredBy::Service { "the service" } else { "it" };
                Some(format!("{figure} {limit} is asked for, and {who} did not answer"))
            }
            Some((by, measured)) => {
                let Some(found) = figure.of(measured) else {
                    return Some(format!("{figure} {limit} is asked for, and nothing can be predicted from what it answered"));
                };
                let how = if *figure == Figure::Predicted { "predicted" } else { "measured" };
                (found > *limit).then(|| format!("{figure} {limit} is asked for, and {found:.3} was {how} {}", by.told()))
            }
        })
    }
}

/// Keeps the candidates of a dynamic orchestration whose services are measured to be as good as the consumer requires, in their order.
pub fn with_quality(
    orchestration: &Orchestration,
    mut candidates: Vec<EntryView>,
    found: impl Fn(&EntryView) -> Found,
    witness: &mut impl Witness,
) -> Vec<EntryView> {
    let Some(quality) = orchestration.limited_quality() else { return candidates };
    candidates.retain(|view| {
        let found = found(view);
        let exceeded = quality.exceeded(&found);
        witness.see(|| {
            let by = found.decisive().map_or("", |(by, _)| by.told());
            let told = exceeded.clone().unwrap_or_else(|| format!("it does, by what was measured {by}"));
            Step::new(Criterion::Quality, exceeded.is_none(), "does the provider keep the required quality of service?", told)
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

    /// The same where it limits anything.
    fn limited_quality(&self) -> Option<&Quality> {
        self.quality().filter(|quality| !quality.limits.is_empty())
    }

    /// Whether what was measured of providers is held against limits.
    pub fn limits_quality(&self) -> bool {
        self.limited_quality().is_some()
    }

    /// The limits in words; none: there are none.
    pub fn told_limits(&self) -> Option<String> {
        self.limited_quality().map(Quality::told)
    }

    /// The same without limits: what there would be if nothing was required.
    pub fn without_limits(&self) -> Self {
        Self { quality: None, ..self.clone() }
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

    /// Measured of the service.
    fn of_service(measured: Measured) -> Found {
        Found { service: Some(measured), is_probed: true, ..Found::default() }
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
            ..Measured::default()
        };
        for (key, found) in [
            ("qosMaxRespTimeThreshold", 5.0),
            ("qosAvgRespTime", 4.0),
            ("qosJitterThreshold", 3.0),
            ("qosMaxRecentPacketLoss", 2.0),
            ("qosMaxPacketLost", 1.0),
            ("qosPredictedRespTime", 6.0),
        ] {
            let exceeded = |limit: f64| quality(&[(key, &limit.to_string())], &[]).unwrap().exceeded(&of_service(measured));
            assert_eq!((exceeded(found), exceeded(found + 0.1)), (None, None), "{key}");
            assert!(exceeded(found - 0.1).is_some_and(|told| told.starts_with(key)), "{key}");
        }
    }

    #[test]
    fn limits_are_held_against_the_service_and_against_connecting_only_where_it_is_not_asked() {
        let of_mean = |response_mean_ms: f64| Some(Measured { response_mean_ms, ..Measured::default() });
        let asked = quality(&[("qosAvgRespTime", "10")], &[]).unwrap();
        let exceeded = |echo, service, is_probed| asked.exceeded(&Found { echo, service, is_probed });
        assert_eq!(exceeded(of_mean(1.0), of_mean(9.0), true), None);
        let told = exceeded(of_mean(1.0), of_mean(11.0), true);
        assert_eq!(told.as_deref(), Some("qosAvgRespTime 10 is asked for, and 11.000 was measured of the service"));
        assert_eq!(exceeded(of_mean(1.0), None, false), None, "it is not asked");
        let told = exceeded(of_mean(12.0), None, false);
        assert_eq!(told.as_deref(), Some("qosAvgRespTime 10 is asked for, and 12.000 was measured of connecting"));
        let told = exceeded(of_mean(1.0), None, true);
        assert_eq!(told.as_deref(), Some("qosAvgRespTime 10 is asked for, and nothing was measured yet"));
        let silent = Some(Measured { recent_loss_percent: 100.0, ..Measured::default() });
        let told = exceeded(of_mean(1.0), silent, true);
        assert_eq!(told.as_deref(), Some("qosAvgRespTime 10 is asked for, and the service did not answer"));
    }

    #[test]
    fn who_was_not_measured_or_does_not_answer_keeps_no_limit() {
        let asked = |key: &str| quality(&[(key, "100")], &[]).unwrap();
        let silent = Measured { recent_loss_percent: 100.0, loss_percent: 10.0, ..Measured::default() };
        for (key, keeps) in
            [("qosMaxRespTimeThreshold", false), ("qosAvgRespTime", false), ("qosJitterThreshold", false), ("qosMaxPacketLost", true)]
        {
            assert!(asked(key).exceeded(&Found::default()).is_some(), "{key}");
            assert_eq!(asked(key).exceeded(&of_service(silent)).is_none(), keeps, "{key}");
        }
        let unpredicted = asked("qosPredictedRespTime").exceeded(&of_service(Measured::default()));
        assert_eq!(
            unpredicted.as_deref(),
            Some("qosPredictedRespTime 100 is asked for, and nothing can be predicted from what it answered")
        );
        assert_eq!(quality(&[], &[]).unwrap().exceeded(&Found::default()), None, "who requires nothing gets whoever is there");
    }
}
