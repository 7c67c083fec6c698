//! A relay and clouds that share no authority, for tests on this machine.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use bodkin_arrowhead::common_name::CloudCommonName;
use bodkin_relay::native::hub::HubLimits;
use bodkin_trust::{
    Authority, Certificate, Identity, Profile, base64,
    tls::{self, PeerCheck, ServerCheck},
};
use rustls::ClientConfig;
use tokio::time::timeout;

use super::{DialError, Dialer, Guests, Heard, ListedAdmission, Messages, RelayError, RelayPlace, Relays, server::RelayServer};
use crate::destination::Destinations;

const LIFETIME: Duration = Duration::from_secs(86_400);
/// For what happens soon.
pub(super) const SOON: Duration = Duration::from_secs(20);

/// A gatekeeper, and its cloud's authority.
pub(super) struct Cloud {
    pub(super) gatekeeper: Identity,
    pub(super) authority: Certificate,
}

impl Cloud {
    pub(super) fn new(name: &str) -> Self {
        let name = CloudCommonName::parse(&format!("{name}.company.arrowhead.eu")).unwrap();
        let cloud = Authority::root(tls::now(), LIFETIME).unwrap().issue_cloud(&name, tls::now(), LIFETIME).unwrap();
        let profile = Profile {
            name: format!("gatekeeper.{name}"),
            alternative_names: vec!["localhost".to_owned()],
            now: tls::now(),
            lifetime: LIFETIME,
        };
        Self { gatekeeper: cloud.issue(&profile).unwrap(), authority: cloud.certificate().clone() }
    }

    pub(super) fn key(&self) -> Vec<u8> {
        self.gatekeeper.certificate().public_key_info().to_vec()
    }

    /// TLS towards a relay that has this key.
    pub(super) fn tls(&self, relay: &[u8]) -> Arc<ClientConfig> {
        let anchors = [self.authority.clone()];
        tls::towards_relay(&self.gatekeeper, &anchors, Some(relay.to_vec()), ServerCheck::HostName, PeerCheck::default()).unwrap()
    }

    /// Its relays.
    pub(super) fn relays(&self) -> Relays {
        let (identity, authority) = (self.gatekeeper.clone(), self.authority.clone());
        Relays::new(Dialer::with_tls(Destinations::new(&[]), move |place| {
            let key = place.authentication_info.as_deref().map(|info| base64::decode(info).ok_or(DialError::Key)).transpose()?;
            let anchors = [authority.clone()];
            Ok(tls::towards_relay(&identity, &anchors, key, ServerCheck::HostName, PeerCheck::default()).unwrap())
        }))
    }
}

/// A relay of its own, and two clouds that it lets in.
pub(super) struct Lab {
    pub(super) relay: Cloud,
    pub(super) clouds: [Cloud; 2],
    pub(super) admission: Arc<ListedAdmission>,
    pub(super) server: Option<RelayServer>,
    pub(super) address: SocketAddr,
    limits: HubLimits,
}

impl Lab {
    pub(super) fn new(limits: HubLimits) -> Self {
        let (relay, clouds) = (Cloud::new("relay"), [Cloud::new("one"), Cloud::new("two")]);
        let guests = Guests { authorities: Vec::new(), keys: clouds.iter().map(Cloud::key).collect::<BTreeSet<_>>() };
        let admission = Arc::new(ListedAdmission::new(&relay.gatekeeper, guests).unwrap());
        let server = RelayServer::start("127.0.0.1:0".parse().unwrap(), limits, admission.clone()).unwrap();
        Self { address: server.address, relay, clouds, admission, server: Some(server), limits }
    }

    /// As a record has it.
    pub(super) fn place(&self) -> RelayPlace {
        RelayPlace {
            address: "127.0.0.1".into(),
            port: self.address.port(),
            secure: true,
            authentication_info: Some(base64::encode(&self.relay.key()).into()),
        }
    }

    pub(super) fn server(&self) -> &RelayServer {
        self.server.as_ref().expect("it runs")
    }

    pub(super) async fn stop(&mut self) {
        self.server.take().expect("it runs").stop().await;
    }

    /// Comes back where it was, and knows nothing of before.
    pub(super) fn come_back(&mut self) {
        self.server = Some(RelayServer::start(self.address, self.limits, self.admission.clone()).unwrap());
    }
}

/// What comes next, soon.
pub(super) async fn heard(messages: &mut Messages) -> Result<Heard, RelayError> {
    timeout(SOON, messages.next()).await.expect("something is heard soon")
}

/// The next message, soon.
pub(super) async fn message(messages: &mut Messages) -> String {
    match heard(messages).await {
        Ok(Heard::Message(message)) => message,
        other => panic!("a message expected, {other:?} heard"),
    }
}

/// Looks until something is so, which is to be soon.
pub(super) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let looking = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, looking).await.unwrap_or_else(|_| panic!("{what} soon"));
}
