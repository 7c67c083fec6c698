//! TLS between the nodes of a reliable pair.

use std::sync::Arc;

use rustls::{ClientConfig, ServerConfig, client::Resumption, server::NoServerSessionStorage};

use super::{ClientCertificate, PeerCheck, ServerCheck, TlsError, client_with_check, server};
use crate::{certificate::Certificate, identity::Identity};

/// What is spoken over it (RFC 7301), so that no other client of TLS is taken for a node.
pub const LINK_PROTOCOL: &[u8] = b"bodkin-pair";

/// What a node makes its connections with, and takes those of the others.
#[derive(Clone, Debug)]
pub struct LinkTls {
    /// Of connections that come in.
    pub server: Arc<ServerConfig>,
    /// Of those that it makes.
    pub client: Arc<ClientConfig>,
}

impl LinkTls {
    /// Of a node that shows `identity`. Both ends show a certificate in every handshake, for no session is resumed; whoever has a name that `check` does not
    /// expect is refused there, whatever the address. Which node it is has to be asked behind it.
    pub fn new(identity: &Identity, anchors: &[Certificate], check: PeerCheck) -> Result<Self, TlsError> {
        let mut server = Arc::unwrap_or_clone(server(identity, anchors, ClientCertificate::Required, check.clone())?);
        server.alpn_protocols = vec![LINK_PROTOCOL.to_vec()];
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let mut client = Arc::unwrap_or_clone(client_with_check(Some(identity), anchors, ServerCheck::ChainOnly, check)?);
        client.alpn_protocols = vec![LINK_PROTOCOL.to_vec()];
        client.resumption = Resumption::disabled();
        Ok(Self { server: Arc::new(server), client: Arc::new(client) })
    }
}
