//! `bodkin cert inspect`: what is in a file.

use std::path::PathBuf;

use anyhow::Context;
use bodkin_trust::{
    Certificate, RevocationList, SigningRequest,
    content::{self, Item},
    file,
    tls::now,
};
use clap::Args;
use serde_json::{Value, json};

use super::PasswordOptions;
use crate::{
    DONE,
    cli::{details::Details, printer::Printer},
};

/// Entries of a revocation list that are shown to people; programs get all.
const ENTRIES_SHOWN: usize = 20;

/// Options of `bodkin cert inspect`.
#[derive(Args, Clone, Debug)]
pub struct InspectOptions {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    password: PasswordOptions,
}

/// Prints what is in the file; gives the exit code. Nothing is verified but a signing request's signature.
pub fn run(options: &InspectOptions, printer: Printer) -> anyhow::Result<u8> {
    let password = options.password.read()?;
    let content = file::read_any(&options.file)?;
    let (form, items) =
        content::read(&content, password.as_ref().map(|password| password.as_str())).with_context(|| options.file.display().to_string())?;
    let (values, texts): (Vec<Value>, Vec<Details>) = items.iter().map(told).unzip();
    if printer.is_json() {
        printer.done(&json!({"file": options.file, "form": form.as_str(), "items": values}), "")?;
    } else {
        let texts: Vec<String> = texts.iter().map(Details::to_string).collect();
        printer.remark(&format!("{}: {}\n\n{}", options.file.display(), form.as_str(), texts.join("\n").trim_end()))?;
    }
    Ok(DONE)
}

fn told(item: &Item) -> (Value, Details) {
    match item {
        Item::Certificate(certificate) => certificate_told(certificate),
        Item::Request(request) => request_told(request),
        Item::RevocationList(list) => list_told(list),
        Item::Key(key) => {
            let public = key.public_key_fingerprint().to_string();
            (json!({"kind": "private key", "publicKeySha256": public}), Details::default().with("private key of", public))
        }
        Item::EncryptedKey => {
            (json!({"kind": "encrypted private key"}), Details::default().with("private key", "encrypted; no password given"))
        }
    }
}

fn certificate_told(certificate: &Certificate) -> (Value, Details) {
    let now = now();
    let time = match certificate.is_valid_at(now) {
        true if now >= certificate.renewal_due() => "valid, to be renewed",
        true => "valid",
        false if now < certificate.not_before() => "not yet valid",
        false => "expired",
    };
    let role = match (certificate.is_authority(), certificate.system()) {
        (true, _) => "authority".to_owned(),
        (false, Ok(name)) => format!("system {} of the cloud {}", name.system, name.cloud),
        (false, Err(error)) => format!("no system: {error}"),
    };
    let value = json!({
        "kind": "certificate", "name": certificate.common_name(), "role": role, "issuer": certificate.issuer(),
        "serial": certificate.serial_text(), "notBefore": certificate.not_before(), "notAfter": certificate.not_after(), "time": time,
        "alternativeNames": certificate.alternative_names(), "key": certificate.key_kind().to_string(),
        "sha256": certificate.fingerprint().to_string(), "publicKeySha256": certificate.public_key_fingerprint().to_string(),
    });
    let details = Details::default()
        .with("certificate of", certificate.told_name())
        .with("role", role)
        .with("issuer", certificate.issuer().unwrap_or_default())
        .with("serial", certificate.serial_text())
        .with("counts", format!("{} to {} ({time})", certificate.not_before(), certificate.not_after()))
        .with("counts for", certificate.alternative_names().join(", "))
        .with("key", certificate.key_kind())
        .with("SHA-256", certificate.fingerprint());
    (value, details)
}

fn request_told(request: &SigningRequest) -> (Value, Details) {
    let value = json!({"kind": "signing request", "asked": request.common_name(), "key": request.key_kind().to_string()});
    let details = Details::default()
        .with("signing request of", request.common_name().unwrap_or_default())
        .with("key", request.key_kind())
        .with("signature", "right");
    (value, details)
}

fn list_told(list: &RevocationList) -> (Value, Details) {
    let entries: Vec<_> = list.revoked.iter().map(|entry| (entry.serial_text(), entry.since)).collect();
    let value = json!({
        "kind": "revocation list", "issuer": list.issuer(), "thisUpdate": list.this_update, "nextUpdate": list.next_update,
        "revoked": entries.iter().map(|(serial, since)| json!({"serial": serial, "since": since})).collect::<Vec<_>>(),
    });
    let mut details = Details::default()
        .with("revocation list of", list.issuer())
        .with("signed", list.this_update)
        .with_some("next", list.next_update)
        .with("certificates", entries.len());
    for (serial, since) in entries.iter().take(ENTRIES_SHOWN) {
        details = details.with("revoked", format!("{serial} since {since}"));
    }
    (value, details)
}
