//! `bodkin cert init`: root, cloud, core systems and operator.

use anyhow::anyhow;
use bodkin_arrowhead::{
    common_name::CloudCommonName,
    core_service::CoreSystem,
    name::{CloudName, SystemName},
};
use bodkin_trust::{
    directory::{LEAF_LIFETIME, default_cloud_name},
    tls::now,
};
use clap::Args;
use serde_json::json;

use super::place::PlaceOptions;
use crate::{
    DONE,
    cli::{details::Details, printer::Printer},
};

/// Whoever manages a cloud.
const OPERATOR: &str = "sysop";
/// Under what core systems are called on their own machine.
const OWN_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Options of `bodkin cert init`.
#[derive(Args, Clone, Debug)]
pub struct InitOptions {
    /// The cloud's name [default: local]
    #[arg(long, value_name = "NAME", value_parser = cloud)]
    cloud: Option<CloudName>,
    /// Who runs it [default: bodkin]
    #[arg(long, value_name = "NAME", value_parser = cloud)]
    operator: Option<CloudName>,
    /// A host name or IP address under which the core systems are called, besides localhost; may be repeated
    #[arg(long = "san", value_name = "NAME")]
    alternative_names: Vec<String>,
}

fn cloud(text: &str) -> Result<CloudName, String> {
    CloudName::parse(text).map_err(|error| format!("the name {error}"))
}

/// Makes everything; gives the exit code.
pub fn run(place: &PlaceOptions, options: InitOptions, printer: Printer) -> anyhow::Result<u8> {
    let (directory, now, default) = (place.directory()?, now(), default_cloud_name());
    let name = CloudCommonName { cloud: options.cloud.unwrap_or(default.cloud), operator: options.operator.unwrap_or(default.operator) };
    let authority = directory.init(&name, now)?;
    let names: Vec<String> = OWN_NAMES.map(str::to_owned).into_iter().chain(options.alternative_names).collect();
    for system in CoreSystem::ALL.map(CoreSystem::name).into_iter().chain([OPERATOR]) {
        let system = SystemName::parse(system).map_err(|error| anyhow!("{system} {error}"))?;
        directory.ensure_identity(&system, if system.as_str() == OPERATOR { &[] } else { &names }, now, LEAF_LIFETIME)?;
    }
    let (path, systems) = (directory.path(), directory.systems());
    let until = authority.certificate().not_after();
    let answer = json!({"cloud": name.to_string(), "directory": path, "systems": systems, "authorityUntil": until});
    let details = Details::default()
        .with("cloud", &name)
        .with("root", path.join("root.crt").display())
        .with("authority", format!("{}, until {until}", path.join("cloud.crt").display()))
        .with("core systems and sysop", systems.display())
        .with("next", format!("bodkin cert issue --trust {} --system NAME; keep root.key elsewhere", path.display()))
        .with("renew in 60 days", format!("bodkin cert renew --trust {}", path.display()));
    printer.one(&answer, &details)?;
    Ok(DONE)
}
