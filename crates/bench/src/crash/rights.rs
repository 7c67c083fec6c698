//! Systems of the clients, and the rules that let the subscribers hear the publishers.

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::access::{Access, CALLBACK_SYSTEM, REQUIRED_SYSTEM, STREAM_SYSTEM, SUB_SYSTEM};
use super::nodes::CALLBACK_PORT;
use super::plan::{ONE_WAY_SYSTEM, Settings};
use super::plant::VIEWER;
use crate::http::Answer;

const REGISTRY_PORT: u16 = 8443;
const AUTHORIZATION_PORT: u16 = 8445;
const EVENT_HANDLER_PORT: u16 = super::nodes::EVENT_HANDLER_PORT;
/// Service of every publisher, which the rules name.
const SERVICE: &str = "crash-events";
/// Address of the systems at which nothing listens.
const ADDRESS: &str = "machine";
const PORT: u16 = 1;

/// Sends a request: of a system or the operator, to a port, with target and body.
pub type Call<'c> = dyn Fn(Option<&str>, u16, &str, &str) -> anyhow::Result<Answer> + 'c;

/// Returns the system of a client as requests name it.
pub fn system(name: &str) -> Value {
    match name {
        CALLBACK_SYSTEM => json!({"systemName": name, "address": VIEWER.to_string(), "port": CALLBACK_PORT}),
        _ => json!({"systemName": name, "address": ADDRESS, "port": PORT}),
    }
}

/// Returns the names of the systems that publish.
pub fn publishers(settings: &Settings) -> Vec<&str> {
    let mut names: Vec<&str> = settings.lines.iter().map(|line| line.system.as_str()).collect();
    names.push(ONE_WAY_SYSTEM);
    names.sort_unstable();
    names.dedup();
    names
}

/// Registers all systems and rules, and subscribes the system that receives callbacks.
///
/// # Errors
/// Returns an error if the leader refuses a request.
pub fn register(settings: &Settings, access: &Access, call: &Call<'_>) -> anyhow::Result<()> {
    let interface = access.interface();
    // A node speaks TLS to subscribers that have a public key, and to no others.
    let mut callback = system(CALLBACK_SYSTEM);
    if let Some(info) = access.authentication_info()? {
        callback["authenticationInfo"] = json!(info);
    }
    let mut consumers = Vec::new();
    for system in [system(REQUIRED_SYSTEM), system(STREAM_SYSTEM), callback.clone(), system(SUB_SYSTEM)] {
        let answer = done(call, REGISTRY_PORT, "/serviceregistry/mgmt/systems", &system, 201)?;
        consumers.push(number(&answer, "/id")?);
    }
    for name in publishers(settings) {
        let form = json!({"serviceDefinition": SERVICE, "providerSystem": system(name), "serviceUri": "/crash", "interfaces": [interface]});
        let entry = done(call, REGISTRY_PORT, "/serviceregistry/mgmt", &form, 201)?;
        for consumer in &consumers {
            let rule = json!({
                "consumerId": consumer, "providerIds": [number(&entry, "/provider/id")?],
                "serviceDefinitionIds": [number(&entry, "/serviceDefinition/id")?], "interfaceIds": [number(&entry, "/interfaces/0/id")?],
            });
            done(call, AUTHORIZATION_PORT, "/authorization/mgmt/intracloud", &rule, 201)?;
        }
    }
    for line in &settings.lines {
        let form = json!({"eventType": line.topic, "notifyUri": "/notify", "subscriberSystem": callback});
        // A system subscribes for itself only.
        let answer = call(Some(CALLBACK_SYSTEM), EVENT_HANDLER_PORT, "/eventhandler/subscribe", &form.to_string())?;
        if answer.status != 200 {
            bail!("the subscription of {} was answered {}: {}", line.topic, answer.status, answer.text());
        }
    }
    Ok(())
}

/// Sends a request that has to succeed; returns the answer's JSON.
fn done(call: &Call<'_>, port: u16, target: &str, body: &Value, status: u16) -> anyhow::Result<Value> {
    let answer = call(None, port, target, &body.to_string())?;
    if answer.status != status {
        bail!("{target} was answered {} instead of {status}: {}", answer.status, answer.text());
    }
    serde_json::from_slice(&answer.body).with_context(|| format!("{target} was answered with unknown JSON"))
}

fn number(answer: &Value, pointer: &str) -> anyhow::Result<i64> {
    answer.pointer(pointer).and_then(Value::as_i64).with_context(|| format!("no {pointer} in {answer}"))
}
