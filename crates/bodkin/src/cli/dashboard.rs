//! `bodkin dashboard`: signs the operator's browser in by a link that works once.

use std::{
    io::{IsTerminal, stdout},
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;

use super::{printer::Printer, registry::RegistryOptions};
use crate::DONE;

/// Opens a link in the browser of a desktop.
const OPENER: &str = "xdg-open";

/// Options of `bodkin dashboard`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "The link signs a browser on this machine in as the operator whose certificate the command uses. The session lasts 8 hours, \
    or until the cloud stops, the certificate is revoked, or --sign-out. From another computer: ssh -L 8440:127.0.0.1:8440 MACHINE, run the command there, and open the link here.\n\
    Exit codes: 0 done, 1 no link was made, 3 not for this caller."
)]
pub struct DashboardOptions {
    /// Open the link in a browser of this desktop; on a terminal only
    #[arg(long)]
    open: bool,
    /// Seconds for which the link is valid, at most 60
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=60))]
    valid_s: u64,
    /// End all sessions of browsers, and withdraw links that nobody has opened
    #[arg(long, conflicts_with_all = ["open", "valid_s"])]
    sign_out: bool,
    #[command(flatten)]
    registry: RegistryOptions,
}

/// Carries the command out; gives the exit code.
pub async fn run(options: DashboardOptions, printer: Printer) -> anyhow::Result<u8> {
    let monitor = options.registry.monitor()?;
    if !options.registry.is_secure()? {
        let url = format!("http://{}/", monitor.address());
        printer.done(&json!({"url": url}), &format!("{url}\ninsecure mode: the dashboard needs no sign-in"))?;
        open(&options, &url)?;
        return Ok(DONE);
    }
    if options.sign_out {
        let ended = monitor.end_dashboard_sessions().await?;
        printer.done(&ended, &format!("sessions ended: {}", ended.ended))?;
        return Ok(DONE);
    }
    let link = monitor.make_dashboard_link(options.valid_s).await?;
    // Asked for behind the call: of a pair, the node that has answered.
    let url = format!("https://{}{}", monitor.address(), link.path);
    let told = format!("{url}\nvalid once, for {} s, in a browser on this machine", link.expires_in_seconds);
    printer.done(&json!({"url": url, "expiresInSeconds": link.expires_in_seconds}), &told)?;
    open(&options, &url)?;
    Ok(DONE)
}

/// Opens the link in a browser, if that was requested.
fn open(options: &DashboardOptions, url: &str) -> anyhow::Result<()> {
    if !options.open {
        return Ok(());
    }
    if !stdout().is_terminal() {
        bail!("--open works on a terminal only: open the link that was printed");
    }
    let mut opener = Command::new(OPENER);
    opener.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    opener.spawn().map(drop).with_context(|| format!("{OPENER} cannot be started: open the link that was printed"))
}
