//! Subscriber by ZMTP SUB, with a link to one of the nodes.

use std::thread;
use std::time::Duration;

use bodkin_zmtp::SocketType;

use super::super::access::SUB_SYSTEM;
use super::super::nodes::zmtp;
use super::super::plan::Transport;
use super::super::plant::Site;
use super::Scene;
use super::zmtp::ZmtpLink;

/// Prefix of all topics of the campaign.
const PREFIX: &str = "CRASH-";
const RECONNECT_AFTER: Duration = Duration::from_millis(10);

/// Receives events until the subscribers end.
///
/// # Errors
/// Returns an error if the system has no key.
pub fn subscribe(scene: &Scene, broker: Site) -> anyhow::Result<()> {
    let security = scene.access.curve(SUB_SYSTEM)?;
    let open = || {
        let mut link = ZmtpLink::open(zmtp(broker, Site::Viewer), SocketType::Sub, "", &security)?;
        link.subscribe(PREFIX).map(|()| link)
    };
    while scene.subscribers_run() {
        let Ok(mut link) = open() else {
            thread::sleep(RECONNECT_AFTER);
            continue;
        };
        let mut turn = Ok(());
        while scene.subscribers_run() && turn.is_ok() {
            turn = link.turn(|message| {
                if let Some(payload) = message.frames().nth(1) {
                    scene.receive(Transport::Prefix, payload, false);
                }
            });
        }
    }
    Ok(())
}
