//! A service of a cloud that lets others in by its Gateway only: orchestrated, read through the tunnel, and the tunnel closed.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bodkin_client::{Connection, Limits, Monitor, Page, answer::GatewaySession};
use hyper::{Method, StatusCode};
use tokio::time::sleep;

use super::{
    narrator::step,
    neighbors::{Consumer, Side, tell_parts},
    report::Sample,
};

const VIA_GATEWAY: &str = "VIA_GATEWAY";
/// Longest wait until the other Gateway knows that a session is over.
const CLOSED_WAIT_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Plays the consumer of `home`, and in the end the operator, who closes the tunnel.
pub async fn show(consumer: &Consumer, home: &Side, other: &Side) -> anyhow::Result<()> {
    let (mut offers, took) = consumer.orchestrate().await?;
    let offer = offers.pop().context("the Orchestrator offered nothing by a tunnel")?;
    ensure!(offer.warnings.iter().any(|warning| warning == VIA_GATEWAY), "the offer of {} leads by no Gateway: {offer:?}", other.name);
    let text = format!(
        "asked the Orchestrator of {}: ALLOWED, by a tunnel. {} of {} offers it at {}",
        home.name,
        offer.provider.system_name,
        home.name,
        offer.url()
    );
    step(took, "consumer", &text)?;
    tell_parts(home, other).await?;
    let interface = offer.authorization_tokens.as_ref().and_then(|tokens| tokens.keys().next()).context("the offer has no token")?;
    let tunnel = Connection::secure(offer.provider.host_and_port(), Limits::default(), &consumer.home, &offer.provider.system_name);
    let read = async || {
        let began = Instant::now();
        let answer = tunnel.send(Method::GET, &offer.path(interface), None).await.context("the tunnel failed")?;
        let took = began.elapsed();
        ensure!(answer.status == StatusCode::OK, "the provider behind the tunnel answered {}", answer.status);
        let sample: Sample = serde_json::from_slice(&answer.body).context("the provider's answer is no sample")?;
        Ok::<_, anyhow::Error>((sample, took))
    };
    let (sample, took) = read().await?;
    let without = tunnel.send(Method::GET, &offer.service_uri, None).await.context("the tunnel failed")?;
    ensure!(without.status == StatusCode::UNAUTHORIZED, "without a token the provider answered {}", without.status);
    let text = format!("read the service through the tunnel, with the token (without it: 401): {:.1} {}", sample.value, sample.unit);
    step(took, "consumer", &format!("{text}. Both Gateways showed certificates of their own clouds"))?;
    let (sample, took) = read().await?;
    step(took, "consumer", &format!("read it again on the same connection: {:.1} {}", sample.value, sample.unit))?;
    let began = Instant::now();
    let (here, there) = (last(&home.monitor).await?, last(&other.monitor).await?);
    ensure!([&here, &there].iter().all(|session| session.state == "open" && session.numbered == Some(true)), "{here:?} {there:?}");
    let text = format!(
        "both Gateways tell of the session: open, numbered, {} bytes there and {} back, sealed from Gateway to Gateway",
        here.bytes_to_peer, here.bytes_from_peer
    );
    step(began.elapsed(), "cloud", &text)?;
    drop(tunnel);
    let began = Instant::now();
    let active = home.monitor.active_sessions(&Page::default()).await?.data.pop().context("the Gateway's management knows no session")?;
    home.monitor.close_session(&active).await.context("the tunnel was not closed")?;
    loop {
        let session = last(&other.monitor).await?;
        if session.state == "closed" {
            let text =
                format!("of {} closed the tunnel, and {} was told: \"{}\"", home.name, other.name, session.reason.unwrap_or_default());
            return Ok(step(began.elapsed(), "operator", &text)?);
        }
        ensure!(began.elapsed() < CLOSED_WAIT_MAX, "{} keeps a session that was closed: {session:?}", other.name);
        sleep(LOOK_EVERY).await;
    }
}

async fn last(monitor: &Monitor) -> anyhow::Result<GatewaySession> {
    monitor.gateway_sessions().await?.data.pop().context("a Gateway tells of no session")
}
