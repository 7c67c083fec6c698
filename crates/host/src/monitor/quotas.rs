//! The numbers of quotas of clients.

use super::{Monitor, Number, push};
use crate::quotas::{ConnectionQuota, OwnerQuota, QuotaLimits, Quotas};

const USED: (&str, &str, &str) = ("bodkin_quota_used", "gauge", "What all clients of a group of ports use of a quota.");
const LIMIT: (&str, &str, &str) = ("bodkin_quota_limit", "gauge", "Limit of a quota; quotas named client_ hold for each client.");
const REJECTED: (&str, &str, &str) = ("bodkin_quota_rejected_total", "counter", "Connections and requests that a quota has rejected.");

/// Returns the quotas that have rejected something in the last minute.
pub(super) fn gauges(quotas: &Quotas) -> [Number; 1] {
    let owners = quotas.owners.quotas().into_iter().filter(|(.., rejections)| rejections.is_recent()).count();
    let recent = quotas.groups().into_iter().flat_map(ConnectionQuota::rejections).filter(|(_, rejections)| rejections.is_recent());
    [("bodkin_quotas_exceeded", "Quotas of clients that have rejected something in the last minute.", (recent.count() + owners) as u64)]
}

impl Monitor {
    /// Appends use, limit and rejections of each quota.
    pub(super) fn push_quotas(&self, text: &mut String) {
        let groups = self.quotas.groups();
        let handshakes = self.quotas.handshake_groups();
        let used = groups.iter().flat_map(|group| used(group)).chain(handshakes.iter().map(|(name, all)| handshake(name, all.count())));
        push_labeled(text, USED, used);
        let limits = groups.iter().flat_map(|group| limits(group)).chain(handshakes.iter().map(|(name, all)| handshake(name, all.max)));
        let owners = self.quotas.owners.quotas();
        push_labeled(text, LIMIT, limits.chain(owners.iter().map(|(quota, limit, _)| (OwnerQuota::GROUP, *quota, *limit))));
        let rejected =
            groups.iter().flat_map(|group| group.rejections().map(|(quota, rejections)| (group.name, quota, rejections.total())));
        let rejected = rejected.chain(owners.iter().map(|(quota, _, rejections)| (OwnerQuota::GROUP, *quota, rejections.total())));
        push_labeled(text, REJECTED, rejected.chain(handshakes.iter().map(|(name, all)| (*name, "handshakes", all.evicted()))));
    }
}

type Labeled = (&'static str, &'static str, u64);

fn handshake(group: &'static str, value: usize) -> Labeled {
    (group, "handshakes", value as u64)
}

fn used(group: &ConnectionQuota) -> [Labeled; 2] {
    [("connections", group.connections()), ("request_bytes", group.buffer_bytes())].map(|(quota, value)| (group.name, quota, value as u64))
}

fn limits(group: &ConnectionQuota) -> [Labeled; 4] {
    let QuotaLimits { connections_max, client_connections_max, buffer_bytes_max, client_buffer_bytes_max } = group.limits;
    [
        ("connections", connections_max),
        ("client_connections", client_connections_max),
        ("request_bytes", buffer_bytes_max),
        ("client_request_bytes", client_buffer_bytes_max),
    ]
    .map(|(quota, value)| (group.name, quota, value as u64))
}

fn push_labeled(text: &mut String, (name, kind, help): (&str, &str, &str), values: impl Iterator<Item = Labeled>) {
    push(text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    for (group, quota, value) in values {
        push(text, format_args!("{name}{{group=\"{group}\",quota=\"{quota}\"}} {value}\n"));
    }
}
