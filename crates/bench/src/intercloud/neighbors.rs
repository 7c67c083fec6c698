//! Two own clouds that share no authority, and the relay in one of them; made known to each other by the operator's commands.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::certificates::Certificates;
use crate::cloud::{Cloud, Directory};
use crate::operation::Needs;
use crate::options::{Case, InterCloudOptions, ServerOptions};
use crate::request;
use crate::scene::{Filled, set_up};
use crate::state::State;

/// Asks other clouds if there is nothing here, as Rocha's consumers do.
pub const IF_NOTHING_HERE: &str = "enableInterCloud";
/// Asks other clouds at once, as Deliorman's consumers do.
pub const AT_ONCE: &str = "triggerInterCloud";
/// Lets others in by the Gateway only.
const BY_GATEWAY: [&str; 2] = ["--gateway-is-mandatory", "true"];
/// Name of the cloud beside the one under test.
const NEIGHBOR: &str = "neighbor";
/// Address of every provider.
const PROVIDERS: &str = "127.0.0.1";
/// What is asked for where answers are fixed.
const FIXED_SERVICE: &str = "fixed-service";
/// Longest wait until both listen at the relay.
const MEET_WAIT_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The two clouds.
pub struct Neighbors {
    /// The one that consumers ask.
    pub asking: Cloud,
    /// The one that it asks.
    pub asked: Cloud,
    /// What is there to be asked for.
    services: Vec<String>,
}

impl Neighbors {
    /// Starts them as the case wants them, with services and rules.
    ///
    /// # Errors
    /// A cloud does not start, certificates cannot be made, or something is refused.
    pub fn start(case: Case, options: &InterCloudOptions) -> anyhow::Result<Self> {
        let certificates = [options.certificates.open(false)?, options.certificates.open_of(NEIGHBOR)?].map(Arc::new);
        let [own, other] = &certificates;
        let start = |certificates: &Arc<Certificates>, directory: Directory, arguments: Vec<String>| {
            Cloud::start(directory, &ServerOptions { certificates: Some(certificates.clone()), arguments, ..ServerOptions::default() })
        };
        let by_gateway = BY_GATEWAY.into_iter().filter(|_| options.gateway).map(str::to_owned).collect();
        let tested = start(own, Directory::new(options.data.as_deref())?, by_gateway)?;
        let directory = Directory::new(options.data.as_deref())?;
        let mut arguments: Vec<String> = ["--relay-listen", "127.0.0.1:0"].map(str::to_owned).into();
        if case == Case::ToCloud {
            arguments.extend(["--fixed-answers".to_owned(), directory.file("answers.json", &fixed_answers().to_string())?]);
        }
        let neighbor = start(other, directory, arguments)?;
        let relay = neighbor.relay.clone().context("the neighbor's ready line names no relay")?;
        command(&neighbor, &["relay", "add", &relay, "--own"])?;
        introduce(&neighbor, &tested)?;
        introduce(&tested, &neighbor)?;
        await_each_other(&tested, &neighbor)?;
        match case {
            Case::ToCloud => Ok(Self { asking: tested, asked: neighbor, services: vec![FIXED_SERVICE.to_owned()] }),
            Case::ToNeighbor => {
                let services = fill(&tested, options.services)?;
                Ok(Self { asking: neighbor, asked: tested, services })
            }
        }
    }

    /// So many orchestrations that lead to the other cloud; `flag` says when.
    ///
    /// # Errors
    /// The asking cloud has no Orchestrator.
    pub fn orchestrations(&self, count: u32, flag: &str) -> anyhow::Result<Vec<Vec<u8>>> {
        self.services.iter().cycle().take(count as usize).map(|definition| self.orchestration(definition, flag)).collect()
    }

    /// An orchestration that leads to a service of the other cloud.
    ///
    /// # Errors
    /// The asking cloud has no Orchestrator.
    pub fn orchestration(&self, definition: &str, flag: &str) -> anyhow::Result<Vec<u8>> {
        let body = json!({
            "requesterSystem": {"systemName": "sysop", "address": PROVIDERS, "port": 8000},
            "requestedService": {"serviceDefinitionRequirement": definition, "securityRequirements": ["NOT_SECURE", "CERTIFICATE", "TOKEN"]},
            "orchestrationFlags": {"overrideStore": true, flag: true},
        });
        Ok(request::post(self.asking.orchestrator()?, "/orchestrator/orchestration", &body))
    }

    /// Lets the neighbor use services of the cloud under test, where that is the one that is asked.
    ///
    /// # Errors
    /// A rule is refused.
    pub fn grant(&self, services: &[request::Registered]) -> anyhow::Result<()> {
        grant(&self.asked, services)
    }

    /// Where the relay is.
    ///
    /// # Errors
    /// Neither cloud says.
    pub fn relay(&self) -> anyhow::Result<SocketAddr> {
        let place = self.asking.relay.as_ref().or(self.asked.relay.as_ref()).context("no ready line names a relay")?;
        place.parse().with_context(|| format!("the relay's place {place} is no address"))
    }

    /// The cloud that has the relay.
    pub fn with_relay(&self) -> &Cloud {
        if self.asking.relay.is_some() { &self.asking } else { &self.asked }
    }

    /// Ends both.
    ///
    /// # Errors
    /// One did not end well.
    pub fn close(self) -> anyhow::Result<()> {
        self.asking.close()?;
        self.asked.close()?;
        Ok(())
    }
}

/// What the neighbor of case 1 says, whatever it is asked.
fn fixed_answers() -> Value {
    let interface = "HTTP-SECURE-JSON";
    json!({
        "gsd_poll": {
            "providerCloud": {"operator": "bodkin", "name": NEIGHBOR}, "requiredServiceDefinition": FIXED_SERVICE,
            "availableInterfaces": [interface], "numOfProviders": 1, "gatewayIsMandatory": false, "verifiedRelays": [],
        },
        "icn_proposal": {
            "response": [{
                "provider": {"id": 1, "systemName": "fixed-provider", "address": PROVIDERS, "port": 9000, "authenticationInfo": "key"},
                "service": {"id": 1, "serviceDefinition": FIXED_SERVICE}, "serviceUri": "/fixed", "secure": "CERTIFICATE", "metadata": {},
                "interfaces": [{"id": 1, "interfaceName": interface}], "version": 1, "authorizationTokens": null, "warnings": [],
            }],
            "useGateway": false, "relay": null, "connectionInfo": null,
        },
    })
}

/// Has the operator of a cloud do something; gives what is printed.
fn command(cloud: &Cloud, arguments: &[&str]) -> anyhow::Result<Value> {
    let program = std::env::current_exe().context("cannot tell the path of this program")?;
    let place = cloud.directory().context("the cloud is none of the bench's own")?;
    let certificates = cloud.certificates.as_ref().context("the cloud has no certificates")?;
    let mut command = Command::new(program);
    command.args(arguments).args(["--output", "json", "--trust"]).arg(certificates.trust()).current_dir(place.path());
    command.env("BODKIN_MONITOR", &cloud.api()?.authority).stdin(Stdio::null());
    let told = command.output().context("cannot start this program")?;
    if !told.status.success() {
        let (out, err) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
        bail!("bodkin {} failed: {}{}", arguments.join(" "), out.trim(), err.trim());
    }
    serde_json::from_slice(&told.stdout).with_context(|| format!("bodkin {} printed no JSON", arguments.join(" ")))
}

/// Makes one cloud known to another.
fn introduce(cloud: &Cloud, to: &Cloud) -> anyhow::Result<()> {
    let place = cloud.directory().context("the cloud is none of the bench's own")?.path().join("introduction.toml");
    let file = place.to_str().context("the temporary directory's path is no text")?;
    let written = command(cloud, &["cloud", "introduce", "--out", file])?;
    let fingerprint = written["fingerprint"].as_str().context("no fingerprint was printed")?;
    command(to, &["cloud", "add", file, "--fingerprint", fingerprint]).map(drop)
}

/// Waits until both hear each other's calls: one that is made before is lost.
fn await_each_other(tested: &Cloud, neighbor: &Cloud) -> anyhow::Result<()> {
    let deadline = Instant::now() + MEET_WAIT_MAX;
    // A call that is lost costs the whole time-out.
    for cloud in [tested, neighbor] {
        while !is_at_relay(cloud)? {
            if Instant::now() >= deadline {
                bail!("a cloud does not come to the relay: {}", command(cloud, &["relay", "list"])?);
            }
            thread::sleep(LOOK_EVERY);
        }
    }
    for (from, to) in [(tested, NEIGHBOR), (neighbor, "bench")] {
        loop {
            match command(from, &["cloud", "ping", to]) {
                Ok(_) => break,
                Err(error) if Instant::now() >= deadline => return Err(error.context("the two clouds do not meet at the relay")),
                Err(_) => thread::sleep(LOOK_EVERY),
            }
        }
    }
    Ok(())
}

/// Whether a cloud is connected to its relay.
fn is_at_relay(cloud: &Cloud) -> anyhow::Result<bool> {
    let relays = command(cloud, &["relay", "list"])?;
    Ok(relays["data"][0]["state"].as_str().is_some_and(|state| state.starts_with("open")))
}

/// Registers services, and lets the neighbor use each of them; gives their names.
fn fill(cloud: &Cloud, services: u32) -> anyhow::Result<Vec<String>> {
    let state = State { seed: State::SEED, services };
    let filled = Filled::fill(cloud, state, Needs::Services, PROVIDERS)?;
    grant(cloud, filled.registered())?;
    Ok((0..services).map(|n| state.data().service(n).definition).collect())
}

/// Lets the neighbor use these services.
fn grant(cloud: &Cloud, services: &[request::Registered]) -> anyhow::Result<()> {
    let clouds = command(cloud, &["cloud", "list"])?;
    let rows = clouds["data"].as_array().into_iter().flatten();
    let id = rows.filter(|row| row["name"] == NEIGHBOR).find_map(|row| row["id"].as_i64()).context("the neighbor has no row")?;
    let authorization = cloud.authorization()?;
    let rule = |service: &request::Registered| {
        let body = json!({
            "cloudId": id, "providerIdList": [service.provider_id], "serviceDefinitionIdList": [service.definition_id],
            "interfaceIdList": [service.interface_id],
        });
        request::post(authorization, "/authorization/mgmt/intercloud", &body)
    };
    let rules: Vec<_> = services.iter().map(rule).collect();
    set_up(authorization, &rules, 201, |_, _| {})
}
