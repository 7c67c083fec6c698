//! What a service manager is told (systemd's `sd_notify`): that the cloud is ready, reads its files again, stops; and that it lives.

use std::{
    env, io,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
    path::Path,
    time::Duration,
};

use bodkin_host::Pulse;
use nix::time::{ClockId, clock_gettime};
use tokio::time::{sleep, timeout};

/// Where it listens; systemd sets it.
const SOCKET: &str = "NOTIFY_SOCKET";
/// Within how many microseconds it wants to hear that the process lives, and of which process.
const WATCHDOG_US: &str = "WATCHDOG_USEC";
const WATCHDOG_PID: &str = "WATCHDOG_PID";
/// Signs of life in that time: one may be late.
const SIGNS: u32 = 3;

/// The service manager; where there is none nothing is told.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The one that has started this process, if one has.
    pub fn of_environment() -> Self {
        let text = |name| env::var(name).ok();
        let is_ours = text(WATCHDOG_PID).is_none_or(|pid| pid.parse() == Ok(std::process::id()));
        let watchdog_us = text(WATCHDOG_US).and_then(|us| us.parse().ok()).filter(|us| is_ours && *us > 0);
        let socket = env::var_os(SOCKET).and_then(|place| match open(place.as_bytes()) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(%error, ?place, "the service manager's socket cannot be used: it is told nothing");
                None
            }
        });
        Self { socket, watchdog: watchdog_us.map(Duration::from_micros) }
    }

    /// Everything answers; or a node of a pair runs, whether it leads or not.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}\n"));
    }

    /// What the process does, in a line.
    pub fn status(&self, status: &str) {
        self.tell(&format!("STATUS={status}\n"));
    }

    /// Files are read again from now on; [`Self::ready`] follows.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}\n", now.as_micros()));
    }

    /// What is under way is answered, and then the process ends.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=what is under way is answered\n");
    }

    /// Tells that the process lives, for as long as the data plane answers: one that hangs is started again by the manager. Never completes.
    pub async fn watch(&self, pulse: &Pulse) {
        let Some(period) = self.watchdog.map(|watchdog| watchdog / SIGNS) else { return std::future::pending().await };
        loop {
            match timeout(period, pulse.beat()).await {
                Ok(true) => self.tell("WATCHDOG=1\n"),
                // It ends, and says so by itself.
                Ok(false) => {}
                Err(_) => tracing::warn!(?period, "the data plane does not answer"),
            }
            sleep(period).await;
        }
    }

    fn tell(&self, text: &str) {
        let Some((socket, place)) = &self.socket else { return };
        if let Err(error) = socket.send_to_addr(text.as_bytes(), place) {
            tracing::warn!(%error, "the service manager could not be told");
        }
    }
}

/// A path, or behind an `@` a name in Linux's abstract space.
fn open(place: &[u8]) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match place {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(Path::new(std::ffi::OsStr::from_bytes(path)))?,
    };
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not hold the cloud up.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(place: &str, listener: &UnixDatagram, act: impl FnOnce(&ServiceManager)) -> String {
        listener.set_nonblocking(true).unwrap();
        let manager = ServiceManager { socket: Some(open(place.as_bytes()).unwrap()), watchdog: None };
        act(&manager);
        let mut buffer = [0; 512];
        let length = listener.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn the_manager_is_told_at_a_path_and_at_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let at_path = UnixDatagram::bind(&path).unwrap();
        assert_eq!(heard(path.to_str().unwrap(), &at_path, |manager| manager.ready("serves")), "READY=1\nSTATUS=serves\n");
        let name = format!("bodkin-test-{}", std::process::id());
        let abstractly = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let told = heard(&format!("@{name}"), &abstractly, ServiceManager::reloading);
        let us = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").and_then(|rest| rest.trim_end().parse::<u64>().ok());
        assert!(us.is_some_and(|us| us > 0), "{told}");
    }

    #[test]
    fn without_a_manager_nothing_is_told_and_nothing_fails() {
        let manager = ServiceManager::default();
        manager.ready("serves");
        manager.stopping();
        assert!(open(b"").is_err() || open(&[b'a'; 200]).is_err());
    }
}
