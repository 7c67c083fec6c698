//! NSS, the library that browsers on Linux keep certificates with, takes the key stores that `bodkin cert` writes.

use std::fs;
use std::process::Output;

use crate::program::{good, run};
use crate::support::certificates::Certificates;

const TEST: &str = "a_browsers_store_takes_the_operators_key_store";

fn nss(program: &str, place: &Certificates, line: &str) -> Option<Output> {
    run(program, place, TEST, &format!("{line} -d sql:nss"))
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_browsers_store_takes_the_operators_key_store() {
    let place = Certificates::init();
    place.done("cert issue --system sysop --p12 sysop.p12 --password-file password");
    fs::create_dir(place.path("nss")).expect("a folder is made");
    let Some(made) = nss("certutil", &place, "-N --empty-password") else { return };
    good(&made);
    let Some(taken) = nss("pk12util", &place, "-i sysop.p12 -w password") else { return };
    good(&taken);
    let name = "CN=sysop.testcloud1.aitia.arrowhead.eu";
    let listed = good(&nss("certutil", &place, "-L").expect("it is installed"));
    assert!(listed.lines().any(|line| line.starts_with(name) && line.ends_with("u,u,u")), "the key is there: {listed}");
    assert!(listed.contains("CN=testcloud1.aitia.arrowhead.eu") && listed.contains("CN=arrowhead.eu "), "the chain is there: {listed}");

    // What NSS writes has no lengths in it; that it is told is the promise.
    good(&nss("pk12util", &place, &format!("-o theirs.p12 -n {name} -w password")).expect("it is installed"));
    place.write_secret("theirs.p12", fs::read(place.path("theirs.p12")).expect("readable"));
    assert!(place.refused("cert inspect theirs.p12 --password-file password").contains("BER without lengths"));
}
