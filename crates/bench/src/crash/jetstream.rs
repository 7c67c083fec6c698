//! Server of NATS JetStream on the subscribers' host, to which the pair forwards its durable events.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;

use super::plant::{Plant, Site, VIEWER};
use crate::realtime::fleet::bare::Bare;
use crate::realtime::peer::nats_program;

const PORT: u16 = 4222;
/// Longest wait for the server's greeting.
const WAIT_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Stream of the campaign.
pub const STREAM: &str = "CRASH";
/// Lane of all forwarded events.
pub const LANE: &str = "durable";

/// A running server; killed when dropped.
pub struct JetStream {
    child: Child,
    _directory: TempDir,
}

impl JetStream {
    /// Starts the server, if its program is there: `BODKIN_NATS_SERVER`, or `nats-server` on `PATH`.
    ///
    /// # Errors
    /// Returns an error if the program is there and does not serve.
    pub fn start(plant: &Plant) -> anyhow::Result<Option<Self>> {
        let Ok(program) = nats_program() else { return Ok(None) };
        let directory = tempfile::Builder::new().prefix("bodkin-crash-").tempdir()?;
        let config = directory.path().join("nats.conf");
        // A server that syncs before it acknowledges, as forwarding needs it.
        let text = format!(
            "listen: \"{}\"\njetstream {{ store_dir: \"{}\", sync_interval: always }}\n",
            address(),
            directory.path().join("store").display()
        );
        fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        let mut command = plant.command(Site::Viewer, &program);
        command.arg("--config").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let server = Self { child, _directory: directory };
        let begin = Instant::now();
        while Bare::connect(address()).is_err() {
            if begin.elapsed() > WAIT_MAX {
                bail!("{} does not serve after {} s", program.display(), WAIT_MAX.as_secs());
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(Some(server))
    }
}

impl Drop for JetStream {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the server's address, which each broker reaches.
pub fn address() -> SocketAddr {
    (VIEWER, PORT).into()
}
