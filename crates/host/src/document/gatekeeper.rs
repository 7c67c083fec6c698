//! Operations of the Gatekeeper (reference 7).

use super::description::{Description, Tag::*, delete, get, paging, post, put};

const BY_CLOUD: &[&str] = paging!("id|createdAt|updatedAt|operator|name");
const BY_RELAY: &[&str] = paging!("id|createdAt|updatedAt|address|port");

/// A row each.
pub const OPERATIONS: &[Description] = &[
    get(Management, "mgmt/clouds", "Page[CloudWithRelaysResponse]", "All clouds, the own one among them.").asking(BY_CLOUD),
    get(Management, "mgmt/clouds/{id}", "CloudWithRelaysResponse", "A cloud."),
    post(Management, "mgmt/clouds", "[CloudForm]", "Page[CloudWithRelaysResponse]", "Makes other clouds known, all or none.").created(),
    put("mgmt/clouds/{id}", "CloudForm", "CloudWithRelaysResponse", "Replaces what is known of another cloud."),
    delete(Management, "mgmt/clouds/{id}", "Forgets another cloud, with its rules and systems."),
    post(Management, "mgmt/clouds/assign", "RelayAssignment", "CloudWithRelaysResponse", "Assigns further relays to another cloud."),
    get(Management, "mgmt/relays", "Page[RelayResponse]", "All relays.").asking(BY_RELAY),
    get(Management, "mgmt/relays/{id}", "RelayResponse", "A relay."),
    get(Management, "mgmt/relays/{address}/{port}", "RelayResponse", "The relay at an address and port."),
    post(Management, "mgmt/relays", "[RelayRequest]", "Page[RelayResponse]", "Makes relays known, all or none.").created(),
    put("mgmt/relays/{id}", "RelayRequest", "RelayResponse", "Replaces what is known of a relay; its type stays."),
    delete(Management, "mgmt/relays/{id}", "Forgets a relay; the last one by which a cloud's gatekeeper is reached stays."),
    post(Private, "init_gsd", "GSDQueryForm", "GSDQueryResult", "Which other clouds offer a service?"),
    post(Private, "init_multi_gsd", "GSDMultiQueryForm", "GSDMultiQueryResult", "Which other clouds offer which of several services?"),
    post(Private, "init_icn", "ICNRequestForm", "ICNResult", "What does another cloud grant a consumer of this one?"),
    get(Private, "pull_clouds", "Page[CloudWithPublicRelaysResponse]", "All clouds, with the relays for tunnels to any of them."),
    post(Private, "collect_system_addresses", "CloudRequest", "SystemAddresses", "Where are the systems of another cloud?"),
    post(Private, "collect_access_types", "[CloudRequest]", "Page[CloudAccess]", "Are other clouds reached without a gateway?"),
    post(Private, "init_relay_test", "RelayTestRequest", "any", "Asks another cloud to test a relay together."),
    get(Private, "cloud/{operator}/{name}", "CloudWithRelaysResponse", "A cloud, with the relays for tunnels to any."),
];
