//! What a token costs: made, made again from those that are kept, verified.
//!
//! `cargo run -p bodkin-host --example token_cost`
//!
//! Processor time of all threads, so that what else runs on the machine matters little. The cryptography is C and assembly that is
//! optimised in every profile; what is ours around it is not in this one.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_arrowhead::{
    authorization::token::{Grant, TokenLifetimes, TokenOrder},
    common_name::{CloudCommonName, SystemCommonName},
    name::{InterfaceName, ServiceDefinition},
    system::SystemKey,
};
use bodkin_host::{TokenIssuer, control::now};
use bodkin_trust::{
    Authority, KeySize, PrivateKey, Profile, TokenSigner, TokenVerifier, base64,
    jose::{SealingKey, SigningKey, seal, sign},
};
use nix::time::{ClockId, clock_gettime};

const DAY: Duration = Duration::from_secs(86_400);
const ROUNDS: usize = 9;
const TIMES: usize = 300;
/// Consumers that ask at the same time, each for a token of its own.
const SIMULTANEOUS: usize = 10_000;

fn system(name: &str) -> SystemCommonName {
    SystemCommonName::parse(&format!("{name}.cloud.operator.arrowhead.eu")).expect("a name")
}

fn order(consumer: &str, provider_key: &str) -> TokenOrder {
    TokenOrder {
        grant: Grant {
            consumer: system(consumer),
            service: ServiceDefinition::from_stored("temperature"),
            interface: InterfaceName::from_stored("HTTP-SECURE-JSON"),
        },
        provider: SystemKey::new("sensor", "10.0.0.2", 8080),
        provider_key: provider_key.into(),
        lifetime: Duration::from_secs(600),
    }
}

/// Processor time of this process so far.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("the clock is there").into()
}

/// Prints the smallest, median and largest of the rounds' means, in microseconds.
fn measure(what: &str, mut once: impl FnMut()) {
    let mut means: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = processor_time();
            (0..TIMES).for_each(|_| once());
            (processor_time() - started).as_secs_f64() * 1e6 / TIMES as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    println!("{what:40} {:8.1} {:8.1} {:8.1}", means[0], means[ROUNDS / 2], means[ROUNDS - 1]);
}

fn main() {
    let cloud = CloudCommonName::parse("cloud.operator.arrowhead.eu").expect("a name");
    let authority = Authority::root(now(), DAY).and_then(|root| root.issue_cloud(&cloud, now(), DAY)).expect("an authority");
    let authorization = authority.issue(&Profile::system(&system("authorization"), &[], now(), DAY)).expect("an identity");
    let provider = PrivateKey::generate(KeySize::Bits2048).expect("a key");
    let provider_key = base64::encode(&provider.public_key_info());
    let signer = TokenSigner::new(authorization.key()).expect("an RSA key");
    let signing = SigningKey::new(authorization.key()).expect("an RSA key");
    let sealing = SealingKey::from_authentication_info(&provider_key).expect("an RSA key");
    let verifier = TokenVerifier::new(&provider, signer.authentication_info()).expect("RSA keys");
    let ordered = order("display", &provider_key);
    let issue = || signer.issue(&ordered.grant, &sealing, now(), ordered.lifetime).expect("a token");
    let token = issue();

    println!("{ROUNDS} rounds of {TIMES}, microseconds of processor: smallest, median, largest mean; a token has {} bytes", token.len());
    measure("signed (RS512)", || drop(sign(&[b'x'; 200], &signing).expect("a signature")));
    measure("sealed (RSA-OAEP-256, A256CBC-HS512)", || drop(seal(&[b'x'; 650], &sealing).expect("a sealed text")));
    measure("a provider's key read", || drop(SealingKey::from_authentication_info(&provider_key).expect("an RSA key")));
    measure("a token made", || drop(issue()));
    measure("a token verified", || drop(verifier.verify(&token, &system("display"), now()).expect("it counts")));

    let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("a runtime");
    let issuer = TokenIssuer::start(&authorization, TokenLifetimes::default()).expect("an issuer");
    let mut number = 0;
    measure("one after the other from the issuer", || {
        number += 1;
        let order = order(&format!("c{number}"), &provider_key);
        runtime.block_on(issuer.issue(&[&order])).expect("a token");
    });
    measure("the same again (kept)", || {
        runtime.block_on(issuer.issue(&[&ordered])).expect("a token");
    });

    let issuer = Arc::new(issuer);
    let (wall, started) = (Instant::now(), processor_time());
    let ask = |number: usize| {
        let (issuer, order) = (issuer.clone(), order(&format!("s{number}"), &provider_key));
        runtime.spawn(async move { issuer.issue(&[&order]).await.map(|tokens| tokens[0].is_some()) })
    };
    let asked: Vec<_> = (0..SIMULTANEOUS).map(ask).collect();
    let failed = asked.into_iter().map(|asked| runtime.block_on(asked)).filter(|had| !matches!(had, Ok(Ok(true)))).count();
    let mean_us = (processor_time() - started).as_secs_f64() * 1e6 / SIMULTANEOUS as f64;
    println!("{SIMULTANEOUS} at the same time: {mean_us:.1} each, {:.2} s in all, {failed} failed", wall.elapsed().as_secs_f64());
}
