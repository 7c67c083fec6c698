//! The demo's last act: a reliable pair on this machine, an event each millisecond that may not be lost, and a Primary that is killed. Or the pair alone, for as
//! long as somebody looks at it and hands the lead over from the dashboard.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bodkin_arrowhead::form::SystemRequest;
use bodkin_broker::topic::LeaseTimes;
use bodkin_client::{
    CoreSystems,
    realtime::{Session, StreamCounters},
};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    child::Child,
    narrator::{paragraph, step},
    pair::Pair,
    pulse::{Noted, Pulse, quantile},
    report::milliseconds,
};

const SYSTEM: &str = "demo-pulse";
/// How long events flow in front of the kill, and behind it.
const FLOW: Duration = Duration::from_secs(1);
/// Time between two lines of a pair that is looked at.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Shows it.
///
/// # Errors
/// The pair does not come together, or an event that may not be lost is.
pub async fn show() -> anyhow::Result<()> {
    paragraph("\nA reliable pair: a Primary, its Backup and a witness; an event each millisecond, of which none may be lost (L = 0).\n")?;
    let place = TempDir::with_prefix("bodkin-demo-pair-").context("no temporary directory for the pair")?;
    let began = Instant::now();
    let mut pair = Pair::start(place.path()).await?;
    pair.wait_until_protected().await?;
    let x = Duration::from_nanos(LeaseTimes::SHIPPED.failover().get().unsigned_abs());
    let killed = pair.children.last().and_then(Child::pid).unwrap_or_default();
    let text = format!(
        "witness, Backup and Primary (process {killed}) are in sync, insecure and on this machine only; a fail-over may take x = {:.1} ms",
        milliseconds(x)
    );
    step(began.elapsed(), "pair", &text)?;

    register(&pair.registry).await?;
    let pulse = Pulse::start(pair.brokers(SYSTEM), pair.brokers("demo-listener"));
    let began = Instant::now();
    sleep(FLOW).await;
    let at = Instant::now();
    let primary = pair.children.pop().expect("it was started last");
    primary.kill().await?;
    sleep(FLOW).await;
    let noted = pulse.end().await?;
    for child in pair.children {
        ensure!(child.stop().await?, "a process of the pair did not end in order");
    }
    tell(&noted, at, began)
}

/// Says what publisher and subscriber noticed.
fn tell(noted: &Noted, killed: Instant, began: Instant) -> anyhow::Result<()> {
    let before = noted.latencies_ms(|at| at < killed);
    let around = noted.latencies_ms(|at| at >= killed);
    ensure!(
        !before.is_empty() && !around.is_empty(),
        "no events came: published {}, received {}",
        noted.published,
        noted.counters.received
    );
    let text = format!(
        "{} events came, {:.2} ms behind their creation in the median, 99 of 100 within {:.2} ms",
        before.len(),
        quantile(&before, 0.5),
        quantile(&before, 0.99)
    );
    step(killed - began, "pulse", &text)?;
    let (led, _) = noted.led.iter().find(|(at, _)| *at > killed).context("no other broker led")?;
    let safe = noted.covered.iter().find(|at| *at > led).context("no event was safe any more")?;
    let text = format!(
        "killed the Primary (SIGKILL): its Backup led after {:.1} ms, and after {:.1} ms events were safe again",
        milliseconds(*led - killed),
        milliseconds(*safe - killed)
    );
    step(*safe - killed, "pair", &text)?;
    let StreamCounters { received, lost, duplicates, .. } = noted.counters;
    let text = format!(
        "{} events published, {received} received, {lost} lost, {} twice ({duplicates} that came again were dropped); the latest came \
        {:.1} ms behind its creation",
        noted.published,
        received.saturating_sub(noted.published),
        quantile(&around, 1.0)
    );
    step(began.elapsed(), "pulse", &text)?;
    ensure!(
        lost == 0 && received == noted.published,
        "events that may not be lost were; of all, {} came faster than a period allows, for which nothing is promised",
        noted.excess
    );
    Ok(())
}

/// Runs a pair until the demo is ended: an event each millisecond, a line a second, and whoever likes hands the lead over or kills a node.
///
/// # Errors
/// The pair does not come together, or publisher or subscriber cannot go on.
pub async fn stay() -> anyhow::Result<()> {
    paragraph(
        "A reliable pair: a Primary, its Backup and a witness; an event each millisecond, of which none may be lost (L = 0).\nInsecure, on this machine only.\n\n",
    )?;
    let place = TempDir::with_prefix("bodkin-demo-pair-").context("no temporary directory for the pair")?;
    let began = Instant::now();
    let mut pair = Pair::start(place.path()).await?;
    pair.wait_until_protected().await?;
    step(began.elapsed(), "pair", "witness, Backup and Primary are in sync")?;
    register(&pair.registry).await?;
    let [primary, backup] = &pair.monitors;
    let pid = |at: usize| pair.children.get(at).and_then(Child::pid).unwrap_or_default();
    paragraph(&format!(
        "\n  Primary  process {:<8} http://{primary}/#/broker\n  Backup   process {:<8} http://{backup}/#/broker\n  witness  process {}\n\n\
        Hand the lead over by the button `Hand over` of the leader's page, or kill a process (kill -9). Ctrl-C ends the demo.\n\n",
        pid(2),
        pid(1),
        pid(0)
    ))?;
    let pulse = Pulse::start(pair.brokers(SYSTEM), pair.brokers("demo-listener"));
    while pulse.runs() {
        sleep(TELL_EVERY).await;
        let noted = pulse.take();
        for (_, session) in &noted.led {
            let node = if *session == Session::One { "Primary" } else { "Backup" };
            paragraph(&format!("  the configured {node} leads\n"))?;
        }
        tell_second(&noted)?;
    }
    pulse.end().await.map(|_| ())
}

/// The system that publishes is registered, as any is.
async fn register(registry: &str) -> anyhow::Result<()> {
    let operator = CoreSystems::discover(registry).await?;
    let system = SystemRequest { system_name: Some(SYSTEM.into()), address: Some("127.0.0.1".into()), port: Some(1), ..Default::default() };
    operator.add_system(&system).await?;
    Ok(())
}

/// A line of what came since the last one.
fn tell_second(noted: &Noted) -> anyhow::Result<()> {
    let latencies = noted.latencies_ms(|_| true);
    let came = match latencies.last() {
        None => "none came".to_owned(),
        Some(latest) => format!(
            "{} came, 99 of 100 within {:.2} ms, the latest {latest:.2} ms behind its creation",
            latencies.len(),
            quantile(&latencies, 0.99)
        ),
    };
    let StreamCounters { received, lost, .. } = noted.counters;
    paragraph(&format!("  {} events published, {received} received, {lost} lost; {came}\n", noted.published))?;
    Ok(())
}
