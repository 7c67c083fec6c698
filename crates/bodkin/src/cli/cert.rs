//! `bodkin cert`: the cloud's authority and the certificates of its systems. Works on the trust directory; the cloud need not run.

mod batch;
mod curve;
mod export;
mod init;
mod inspect;
mod issue;
mod place;
mod renew;
mod revoke;
mod sign;

use std::{path::PathBuf, time::Duration};

use bodkin_arrowhead::name::SystemName;
use clap::{Args, Subcommand};

use self::{
    curve::CurveOptions, export::ExportOptions, init::InitOptions, inspect::InspectOptions, issue::IssueOptions, place::PlaceOptions,
    renew::RenewOptions, revoke::RevokeOptions, sign::SignOptions,
};
use super::printer::Printer;

/// Options of `bodkin cert`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Certificates of systems count for 90 days and are to be renewed when two thirds of that are over, by whoever runs the \
    system: `bodkin cert renew`. The passphrase of encrypted authorities comes from --passphrase-file or BODKIN_CA_PASSPHRASE."
)]
pub struct CertOptions {
    #[command(flatten)]
    place: PlaceOptions,
    #[command(subcommand)]
    command: CertCommand,
}

/// What to do with certificates.
#[derive(Subcommand, Clone, Debug)]
enum CertCommand {
    /// Make the cloud's chain (root, cloud) and the certificates of its core systems and its operator (sysop)
    Init(InitOptions),
    /// Issue certificates to systems, with keys; what is there and good is kept
    Issue(IssueOptions),
    /// Issue a certificate for a signing request (CSR); names are decided here, not by the request
    Sign(SignOptions),
    /// Renew certificates with the same names and key: those named, or all kept here that are due
    Renew(RenewOptions),
    /// Revoke certificates, and sign the revocation list anew
    Revoke(RevokeOptions),
    /// List what was issued
    List(revoke::Listing),
    /// Show what is in a file: PEM, DER, key store, signing request, revocation list
    Inspect(InspectOptions),
    /// Write the certificate that the cloud's systems trust
    Export(ExportOptions),
    /// CURVE keys: make one for a system, bind one it has made, or list whose is which
    Curve(CurveOptions),
}

/// Carries a command out; gives the exit code.
pub fn run(options: CertOptions, printer: Printer) -> anyhow::Result<u8> {
    let place = options.place;
    match options.command {
        CertCommand::Init(options) => init::run(&place, options, printer),
        CertCommand::Issue(options) => issue::run(&place, options, printer),
        CertCommand::Sign(options) => sign::run(&place, options, printer),
        CertCommand::Renew(options) => renew::run(&place, options, printer),
        CertCommand::Revoke(options) => revoke::run(&place, options, printer),
        CertCommand::List(options) => revoke::list(&place, &options, printer),
        CertCommand::Inspect(options) => inspect::run(&options, printer),
        CertCommand::Export(options) => export::run(&place, &options, printer),
        CertCommand::Curve(options) => curve::run(&place, options, printer),
    }
}

/// How long what is issued counts.
#[derive(Args, Clone, Copy, Debug)]
struct Life {
    /// Days for which it counts
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
}

impl Life {
    fn duration(self) -> Duration {
        Duration::from_secs(u64::from(self.days) * 86_400)
    }
}

/// The password of a key store or a key.
#[derive(Args, Clone, Debug, Default)]
struct PasswordOptions {
    /// File whose first line is the password of the key store; only its owner may read it
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl PasswordOptions {
    fn read(&self) -> anyhow::Result<Option<zeroize::Zeroizing<String>>> {
        Ok(self.password_file.as_deref().map(bodkin_trust::file::read_password).transpose()?)
    }
}

fn system(text: &str) -> Result<SystemName, String> {
    SystemName::parse(text).map_err(|error| format!("the name {error}"))
}
