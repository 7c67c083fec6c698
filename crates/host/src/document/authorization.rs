//! Operations of Authorization (reference 4).

use super::description::{Description, Tag::*, delete, get, paging, post};

const BY_ROW: &[&str] = paging!("id|createdAt|updatedAt");

/// A row each.
pub const OPERATIONS: &[Description] = &[
    get(Client, "publickey", "text", "The public key that tokens are signed with.").needing_keys(),
    get(Management, "mgmt/intracloud", "Page[IntraCloudResponse]", "All rules.").asking(BY_ROW),
    get(Management, "mgmt/intracloud/{id}", "IntraCloudResponse", "A rule."),
    post(Management, "mgmt/intracloud", "IntraCloudRequest", "Page[IntraCloudResponse]", "Makes rules; those that are there are skipped.")
        .created(),
    delete(Management, "mgmt/intracloud/{id}", "Removes a rule."),
    get(Management, "mgmt/intercloud", "Page[InterCloudResponse]", "All rules for other clouds.").asking(BY_ROW),
    get(Management, "mgmt/intercloud/{id}", "InterCloudResponse", "A rule for another cloud."),
    post(Management, "mgmt/intercloud", "InterCloudRequest", "Page[InterCloudResponse]", "Makes rules for another cloud.").created(),
    delete(Management, "mgmt/intercloud/{id}", "Removes a rule for another cloud."),
    post(Private, "intracloud/check", "IntraCloudCheckRequest", "IntraCloudCheckResponse", "May a consumer use a service?"),
    post(Private, "intercloud/check", "InterCloudCheckRequest", "InterCloudCheckResponse", "May another cloud use a service?"),
    post(Private, "subscription/check", "SubscriptionCheckRequest", "SubscriptionCheckResponse", "Whom may a consumer hear?"),
    post(Private, "token", "TokenGenerationRequest", "TokenGenerationResponse", "Makes tokens.").needing_keys(),
    post(Private, "token/multi", "[TokenGenerationRequest]", "TokenGenerationMultiResponse", "Makes tokens for several services.")
        .needing_keys(),
];
