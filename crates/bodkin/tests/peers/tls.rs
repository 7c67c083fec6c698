//! OpenSSL as a client of the secure mode: what rustls' own client cannot be made to do.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::cloud::System;
use crate::support::patience::eventually;
use crate::support::secure::{CLOUD, Client, SecureCloud, anchor, system};
use crate::support::skip;

/// `openssl` with these arguments in a folder; what it said on both outputs. `None` where it is not installed.
fn openssl(place: &Path, arguments: &str, input: &str) -> Option<String> {
    let mut command = Command::new("openssl");
    command.args(arguments.split_whitespace()).current_dir(place);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    let mut stdin = child.stdin.take().expect("standard input is piped");
    // A client that was refused does not read it any more.
    let _ = stdin.write_all(input.as_bytes());
    // The client reads a command when it is connected, and ends with its input.
    std::thread::sleep(std::time::Duration::from_millis(500));
    drop(stdin);
    let output = child.wait_with_output().expect("openssl ends");
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

/// A folder with the cloud's certificate in it.
fn place() -> TempDir {
    let place = TempDir::new().expect("a temporary directory");
    fs::write(place.path().join("ca.crt"), anchor().to_pem()).expect("a file is written");
    place
}

fn served(secure: &SecureCloud) {
    for of in System::CORE {
        Client::system("others").expect(&secure.cloud, "GET", &format!("/{}/echo", of.name()), None, 200);
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn nobody_renegotiates() {
    let (secure, place, identity) = (SecureCloud::start([]), place(), system("renegotiating"));
    fs::write(place.path().join("own.crt"), identity.chain_to_pem()).expect("a file is written");
    fs::write(place.path().join("own.key"), identity.key().to_pem().as_bytes()).expect("a file is written");
    for of in [System::ServiceRegistry, System::EventHandler] {
        let address = secure.cloud.address(of);
        let arguments = format!("s_client -connect {address} -tls1_2 -CAfile ca.crt -cert own.crt -cert_chain own.crt -key own.key");
        let Some(said) = openssl(place.path(), &arguments, "R\n") else {
            return skip::note("nobody_renegotiates", "no OpenSSL is installed");
        };
        assert!(said.contains("RENEGOTIATING") && said.contains("no renegotiation"), "{said}");
        served(&secure);
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_weak_key_is_refused_and_told() {
    let (secure, place) = (SecureCloud::start([]), place());
    for file in ["cloud.crt", "cloud.key"] {
        fs::copy(secure.trust(file), place.path().join(file)).expect("a file is copied");
    }
    let request = format!("req -new -newkey rsa:1024 -nodes -subj /CN=weak.{CLOUD} -keyout weak.key -out weak.csr");
    if openssl(place.path(), &request, "").is_none() {
        return skip::note("a_weak_key_is_refused_and_told", "no OpenSSL is installed");
    }
    // Without an extension it would be of a version that nobody takes any more.
    fs::write(place.path().join("weak.ext"), "basicConstraints = CA:FALSE\n").expect("a file is written");
    openssl(
        place.path(),
        "x509 -req -in weak.csr -CA cloud.crt -CAkey cloud.key -CAcreateserial -days 1 -extfile weak.ext -out weak.crt",
        "",
    );
    for (of, version) in [(System::ServiceRegistry, "-tls1_2"), (System::EventHandler, "-tls1_3")] {
        let address = secure.cloud.address(of);
        let arguments = format!(
            "s_client -connect {address} {version} -cipher DEFAULT@SECLEVEL=0 -CAfile ca.crt -cert weak.crt -key weak.key -ign_eof"
        );
        let said = openssl(place.path(), &arguments, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("it was there before");
        assert!(said.contains("alert") && !said.contains("HTTP/1.1 "), "{said}");
        let (log, name) = (|| secure.cloud.stderr(), format!("certificate=\"weak.{CLOUD}\""));
        let told = || log().lines().any(|line| line.contains(&name) && line.contains("RSA 1024") && line.contains(of.name()));
        assert!(eventually(told), "{}", log());
        served(&secure);
    }
}
