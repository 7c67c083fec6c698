//! `bodkin onboard join`: on the new system.

use std::path::PathBuf;

use anyhow::Context;
use bodkin_arrowhead::name::SystemName;
use bodkin_client::{Limits, onboard};
use bodkin_trust::{
    Certificate, Identity, KeySize, PrivateKey, SigningRequest,
    directory::{files_in, make_directory},
    file,
    onboarding::OnboardingSecret,
};
use clap::Args;
use serde_json::json;

use crate::{
    DONE,
    cli::{printer::Printer, registry::parse_host_and_port},
};

/// Options of `bodkin onboard join`.
#[derive(Args, Clone, Debug)]
pub struct Joining {
    /// Bodkin's own port of the cloud, for example https://cloud.example:8440
    #[arg(value_name = "URL", value_parser = parse_host_and_port)]
    address: String,
    /// File whose first line is the secret; only its owner may read it
    #[arg(long, value_name = "FILE")]
    secret_file: PathBuf,
    /// Which system this becomes, where the secret is for many
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Folder for the certificates (NAME.crt) and the key (NAME.key)
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Makes a key, has it certified, and writes both; gives the exit code.
pub async fn run(options: Joining, printer: Printer) -> anyhow::Result<u8> {
    let text = file::read_password(&options.secret_file)?;
    let secret = OnboardingSecret::parse(&text).with_context(|| options.secret_file.display().to_string())?;
    // Before the secret is spent: a folder that cannot be written costs nothing.
    make_directory(&options.out)?;
    let key = PrivateKey::generate(KeySize::Bits2048)?;
    let csr = SigningRequest::make(&key, options.system.as_deref().unwrap_or("new system"))?;
    let answer = onboard(&options.address, Limits::default(), &secret, options.system.as_deref(), &csr).await?;
    let identity = Identity::new(Certificate::from_pem(answer.certificate.as_bytes())?, key)?;
    let system = SystemName::parse(&answer.system_name)?;
    let (certificates, key) = files_in(&options.out, &system);
    file::write_identity(&certificates, &key, &identity)?;
    let name = identity.certificate().told_name();
    let done = json!({"name": name, "notAfter": answer.not_after, "certificates": certificates, "key": key});
    let sentence = format!("this is {name} until {}: {} and {}", answer.not_after, certificates.display(), key.display());
    printer.done(&done, &sentence)?;
    Ok(DONE)
}
