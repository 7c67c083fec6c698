//! A browser shows the page that describes a system, from nothing but that system's own port.

use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::browser::BROWSERS;
use crate::support::cloud::{Launch, System};
use crate::support::skip;

/// Ends when the page has done what it does at first.
const FLAGS: [&str; 7] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--virtual-time-budget=5000",
    "--dump-dom",
];

#[test]
#[ignore = "peer: ./x test --all"]
fn a_browser_shows_the_page_of_a_system() {
    let cloud = Launch::new().start();
    let place = TempDir::new().expect("a temporary directory");
    let shown = |system: System| {
        let url = format!("http://{}/swagger-ui.html", cloud.address(system));
        BROWSERS.into_iter().find_map(|name| {
            let mut command = Command::new(name);
            command.args(FLAGS).arg(format!("--user-data-dir={}", place.path().display())).arg(&url);
            let output = command.env("TMPDIR", place.path()).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        })
    };
    let Some(page) = shown(System::ServiceRegistry) else {
        return skip::note("a_browser_shows_the_page_of_a_system", "no Chromium is installed");
    };
    let expected =
        ["<h1>Arrowhead Service Registry Core System API</h1>", "<h2>Client</h2>", "/serviceregistry/register", "Registers a service."];
    expected.iter().for_each(|part| assert!(page.contains(part), "{part} is not shown: {page}"));
    let monitor = shown(System::Monitor).expect("the browser is there");
    assert!(monitor.contains("/api/v1/stages"), "{monitor}");
}
