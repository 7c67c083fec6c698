//! The numbers of what is measured of providers and services. None is of one service: who asks for these asks `/api/v1/quality`.

use super::Number;
use crate::quality::Qualities;

/// What is there now.
pub(super) fn gauges(qualities: &Qualities) -> [Number; 3] {
    [
        ("bodkin_quality_providers", "Providers whose connections were measured.", qualities.echoes.measured() as u64),
        ("bodkin_quality_services", "Services whose own answers were measured.", qualities.services.measured() as u64),
        (
            "bodkin_quality_services_unmeasured",
            "Services that are not asked how long they take, for there are too many.",
            qualities.beyond() as u64,
        ),
    ]
}

/// What has happened since the start.
pub(super) fn counters(qualities: &Qualities) -> [Number; 4] {
    let (echoes, services) = (qualities.echoes.counts(), qualities.services.counts());
    [
        ("bodkin_quality_connections_total", "Connections to providers that were accepted in a measurement.", echoes.answered),
        ("bodkin_quality_connections_lost_total", "Connections to providers that were not accepted in time in a measurement.", echoes.lost),
        ("bodkin_quality_probes_total", "Requests to services that were answered in a measurement.", services.answered),
        ("bodkin_quality_probes_lost_total", "Requests to services that were not answered in time in a measurement.", services.lost),
    ]
}
