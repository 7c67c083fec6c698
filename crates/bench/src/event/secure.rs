//! `bench event --secure`: the scenario in insecure and in secure mode, alternated, with the same rules in both.
//!
//! Each publisher has a certificate of its own; one registered system opens all streams, and hears whom the rules let it hear.

use std::sync::Arc;

use super::WARM_UP_SECONDS;
use super::manner::Afflictions;
use super::rig::Rig;
use super::scenario::Shape;
use crate::cloud::Cloud;
use crate::machine::Conditions;
use crate::options::{EventOptions, TargetOptions, Transport};
use crate::report::{Outcome, Report};
use crate::statistics::Series;

/// Alternates runs against both clouds and adds both to the report.
///
/// # Errors
/// A cloud does not start, certificates cannot be made, or a side fails.
pub fn compare(
    options: &EventOptions,
    connections: u32,
    name: &str,
    report: &mut Report,
    conditions: &mut Conditions,
) -> anyhow::Result<()> {
    let certificates = Arc::new(options.secure.certificates.open(false)?);
    let mut secure_target = options.target.clone();
    secure_target.server.certificates = Some(certificates);
    let mut insecure = rig(options, &options.target, connections, conditions)?;
    let mut secure = rig(options, &secure_target, connections, conditions)?;
    conditions.server = format!("{}; and {}", insecure.cloud.description(), secure.cloud.description());
    let [mut without, mut with] = ["insecure", "secure"].map(|mode| Outcome::new(format!("{mode}{name}")));
    let mut ratios = Series::default();
    let run = |rig: &mut Rig, seconds| rig.broker_run(Transport::Sse, Afflictions::NONE, seconds);
    run(&mut insecure, WARM_UP_SECONDS)?;
    run(&mut secure, WARM_UP_SECONDS)?;
    for _ in 0..options.repeat {
        let (plain, tls) = (run(&mut insecure, options.seconds)?, run(&mut secure, options.seconds)?);
        ratios.push(tls.ratios(&plain));
        without.push(plain.figures(), plain.measured());
        with.push(tls.figures(), tls.measured());
    }
    insecure.cloud.close()?;
    secure.cloud.close()?;
    report.note(format!("insecure and secure{name}: one system opens all streams, with a rule for every publisher, in both"));
    let mut compared = Outcome::new(format!("secure to insecure{name}, run by run"));
    compared.series = ratios;
    for key in ["p50_ratio", "mean_ratio", "p99_ratio"] {
        report.ratio(format!("{key}, secure to insecure{name}"), compared.series.summary(key).unwrap_or(0.0));
    }
    report.outcomes.extend([with, without, compared]);
    Ok(())
}

fn rig(options: &EventOptions, target: &TargetOptions, connections: u32, conditions: &mut Conditions) -> anyhow::Result<Rig> {
    let cloud = Cloud::open(target)?;
    if let Some(directory) = cloud.directory() {
        conditions.data_on(&directory.data());
    }
    Rig::with_subscriber(cloud, Shape::of(options, connections), &target.provider_address)
}
