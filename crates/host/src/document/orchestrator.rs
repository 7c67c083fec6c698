//! Operations of the Orchestrator (reference 5).

use super::description::{Content, Description, Tag::*, delete, get, paging, post};

const BY_ENTRY: &[&str] = paging!("id|createdAt|updatedAt|priority");

/// A row each.
pub const OPERATIONS: &[Description] = &[
    post(Client, "orchestration", "OrchestrationForm", "OrchestrationResponse", "What should the consumer use?"),
    get(Client, "orchestration/{id}", "OrchestrationResponse", "What should the consumer use by the orchestration store?"),
    post(Private, "orchestration-by-proxy", "OrchestrationForm", "OrchestrationResponse", "An orchestration on a consumer's behalf."),
    post(Private, "store/flexible", "[FlexibleRule]", "Page[FlexibleRuleResponse]", "Makes flexible rules.").created(),
    delete(Private, "store/flexible/{id}", "Removes a flexible rule."),
    delete(Private, "store/flexible/all", "Removes all flexible rules."),
    get(Private, "qos_enabled", "", "Whether quality of service is managed.").saying(Content::Text),
    get(Private, "qos_reservations", "Page[QosReservation]", "All reservations."),
    post(Private, "qos_reservations", "QosReservationRequest", "", "Keeps a provider for a consumer.").saying(Content::Nothing),
    post(Private, "qos_temporary_lock", "QosTemporaryLockRequest", "OrchestrationResponse", "Keeps providers while one is chosen."),
    get(Management, "mgmt/store", "Page[StoreResponse]", "All entries of the orchestration store.").asking(BY_ENTRY),
    get(Management, "mgmt/store/{id}", "StoreResponse", "An entry."),
    get(Management, "mgmt/store/all_top_priority", "Page[StoreResponse]", "All entries of priority 1.").asking(BY_ENTRY),
    post(Management, "mgmt/store/all_by_consumer", "StoreSearch", "Page[StoreResponse]", "The entries of a consumer.").asking(BY_ENTRY),
    post(Management, "mgmt/store", "[StoreRequest]", "Page[StoreResponse]", "Makes entries; those that cannot be are skipped."),
    post(Management, "mgmt/store/modify_priorities", "PriorityMap", "", "Gives all entries of a group their priorities.")
        .saying(Content::Nothing),
    delete(Management, "mgmt/store/{id}", "Removes an entry."),
    get(Management, "mgmt/store/flexible", "Page[FlexibleRuleResponse]", "All flexible rules.").asking(BY_ENTRY),
    post(Management, "mgmt/store/flexible", "[FlexibleRule]", "Page[FlexibleRuleResponse]", "Makes flexible rules.").created(),
    delete(Management, "mgmt/store/flexible/{id}", "Removes a flexible rule."),
];
