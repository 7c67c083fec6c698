//! Who answers on which port, and how the shard's port comes to its answers of the control plane.

use std::{io, net::TcpListener as BoundListener, sync::Arc};

use bodkin_arrowhead::core_service::CoreSystem;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc},
};

use super::{Port, parts::Parts};
use crate::{
    control::Control,
    gate::Gate,
    inbox::{Inbox, Message},
    listener::{self, PortContext, PortQuotas, Service},
    monitor::Monitor,
    security::SecurePort,
    shard::ControlRequest,
    stopping::Stopping,
};

/// Requests of the shard's that are carried out at the same time; more wait in their channel.
const SHARD_REQUESTS_MAX: usize = 1024;

/// What the ports need to answer.
pub(super) struct Doors<'p> {
    pub parts: &'p Parts,
    pub control: Arc<Control>,
    pub monitor: Arc<Monitor>,
    pub gate: Arc<Gate>,
}

impl Doors<'_> {
    /// Begins to accept on each port, in the order of [`Port::ALL`]; gives the listeners of the shard, on which it accepts itself: none in secure mode.
    pub fn open(self, listeners: Vec<Vec<BoundListener>>, stopping: &Arc<Stopping>) -> io::Result<Vec<BoundListener>> {
        let Parts { quotas, inbox, .. } = self.parts;
        let limits = self.parts.config.limits;
        let mut shards_own = Vec::new();
        for (port, group) in Port::ALL.into_iter().zip(listeners) {
            let secure = self.secure(port);
            let (service, certified) = match port {
                Port::System(CoreSystem::EventHandler) => {
                    match secure {
                        None => shards_own = group,
                        Some(port) => hand_over(group, &port, stopping, inbox)?,
                    }
                    continue;
                }
                Port::System(system) => (Service::System(system, self.control.clone()), &quotas.control),
                Port::Monitor => (Service::Monitor(self.monitor.clone()), &quotas.monitor),
            };
            let quotas = PortQuotas { certified: certified.clone(), anonymous: quotas.anonymous.clone() };
            let (gate, stopping) = (self.gate.clone(), stopping.clone());
            let context = PortContext { service, gate, limits, quotas, stopping, security: secure };
            for listener in group {
                tokio::spawn(listener::serve(TcpListener::from_std(listener)?, context.clone()));
            }
        }
        Ok(shards_own)
    }

    fn secure(&self, port: Port) -> Option<Arc<SecurePort>> {
        let Parts { security, audit, config, quotas, .. } = self.parts;
        Some(Arc::new(SecurePort::new(security.clone()?, port, config.limits.handshake_timeout, audit.clone(), quotas)))
    }
}

/// Begins to accept the data plane's connections in secure mode.
fn hand_over(group: Vec<BoundListener>, port: &Arc<SecurePort>, stopping: &Arc<Stopping>, inbox: &Arc<Inbox>) -> io::Result<()> {
    for listener in group {
        let listener = TcpListener::from_std(listener)?;
        tokio::spawn(listener::hand_over(listener, port.clone(), stopping.clone(), inbox.clone()));
    }
    Ok(())
}

/// Answers the requests that came in on the shard's port and are not its own.
pub(super) async fn answer_shard(mut asked: mpsc::Receiver<ControlRequest>, control: Arc<Control>, inbox: Arc<Inbox>) {
    let places = Arc::new(Semaphore::new(SHARD_REQUESTS_MAX));
    while let Some(ControlRequest { connection, request, denial }) = asked.recv().await {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (control, inbox) = (control.clone(), inbox.clone());
        tokio::spawn(async move {
            let answer = match denial {
                Some(denial) => control.audit.denied(&request, denial).await,
                None => control.answer(CoreSystem::EventHandler, &request).await,
            };
            inbox.post(Message::Answer { connection, answer });
            drop(place);
        });
    }
}
