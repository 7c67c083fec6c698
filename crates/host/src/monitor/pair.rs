//! The numbers of a node of a reliable pair.

use super::Number;
use crate::pair::{Leadership, Trouble};

/// What is so now.
pub(super) fn gauges(leadership: &Leadership) -> impl Iterator<Item = Number> {
    let troubles = leadership.troubles();
    let witness = leadership
        .reaches_witness()
        .map(|is_connected| ("bodkin_pair_witness_connected", "1 while this node is connected to the witness.", u64::from(is_connected)));
    [
        ("bodkin_pair_epoch", "The right to lead that this node of the pair has or had last.", leadership.epoch().0),
        ("bodkin_pair_leads", "1 while this node of the pair leads.", u64::from(leadership.leads())),
        (
            "bodkin_pair_protected",
            "1 while every change is on the Backup's disk before it is answered.",
            u64::from(leadership.is_protected()),
        ),
        ("bodkin_pair_unreached", "Other nodes of the pair that this one is not connected to.", leadership.unreached()),
        (
            "bodkin_pair_clock_difference_seconds",
            "By how much the clock of the pair's other host differs from ours for certain; 0 while it is not connected.",
            leadership.clock_difference_ns().unwrap_or(0),
        ),
        (
            "bodkin_pair_duplicates",
            "Nodes of the pair that a second process claims to be; it is refused.",
            troubles.count(|trouble| matches!(trouble, Trouble::Duplicate(_))),
        ),
        (
            "bodkin_pair_rejected",
            "Nodes of the pair that refuse this process, because another process is this node.",
            troubles.count(|trouble| matches!(trouble, Trouble::Rejected(_))),
        ),
        (
            "bodkin_pair_settings_differ",
            "Nodes of the pair that run with other times or topics than this one.",
            troubles.count(|trouble| matches!(trouble, Trouble::SettingsDiffer(_))),
        ),
        (
            "bodkin_pair_lease_refused",
            "Nodes of the pair that refuse this node's lease, so that nobody takes over when the leader fails.",
            troubles.count(|trouble| matches!(trouble, Trouble::LeaseRefused(_))),
        ),
        (
            "bodkin_pair_record_failed",
            "Nodes of the pair, this one among them, that cannot write their record of votes, so that they vote for no node.",
            troubles.count(|trouble| matches!(trouble, Trouble::Record | Trouble::RecordOf(_))),
        ),
        (
            "bodkin_pair_disks_full",
            "Candidates of the pair, this one among them, whose disk takes no new data.",
            troubles.count(|trouble| matches!(trouble, Trouble::Disk | Trouble::DiskOf(_))),
        ),
        (
            "bodkin_pair_follow_failed",
            "1 while this standby cannot keep what the leader sends, so that it does not take over.",
            troubles.count(|trouble| *trouble == Trouble::Follow),
        ),
        (
            "bodkin_pair_certificate_revoked",
            "1 while this node takes no part in the pair, because its own certificate is revoked here or at another node.",
            u64::from(leadership.is_excluded() || troubles.has(Trouble::RevokedThere)),
        ),
        (
            "bodkin_pair_certificates_unshared",
            "1 while certificates that were issued or revoked at this node are not known at the other one.",
            troubles.count(|trouble| *trouble == Trouble::Certificates),
        ),
        (
            "bodkin_pair_without_leader",
            "1 while this node finds no leader of the pair, and cannot lead.",
            u64::from(leadership.has_no_leader()),
        ),
    ]
    .into_iter()
    .chain(witness)
}
