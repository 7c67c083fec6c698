//! Operations of the Gateway (reference 8).

use super::description::{Content, Description, Tag::*, get, paging, post};

const BY_START: &[&str] = paging!("id");

/// A row each.
pub const OPERATIONS: &[Description] = &[
    get(Private, "publickey", "key", "The Gateway's public key.").needing_keys(),
    post(Private, "connect_provider", "ProviderConnectionRequest", "ProviderConnection", "Opens the provider's end of a tunnel.")
        .created()
        .needing_keys(),
    post(Private, "connect_consumer", "ConsumerConnectionRequest", "port", "Opens the consumer's end of a tunnel; gives its port.")
        .created()
        .needing_keys(),
    post(Private, "close_sessions", "[port]", "[SessionCloseError]", "Ends the sessions of these ports; gives those that are not ended.")
        .needing_keys(),
    get(Management, "mgmt/sessions", "Page[ActiveSession]", "All sessions, in the order in which they were begun.").asking(BY_START),
    post(Management, "mgmt/sessions/close", "ActiveSession", "", "Ends the session of this queue id.")
        .saying(Content::Nothing)
        .needing_keys(),
];
