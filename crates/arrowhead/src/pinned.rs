//! Names that a link accepts, and no others: the two ends of a replica pair know each other by name.

use std::collections::BTreeSet;

use crate::common_name::{CommonNameError, SystemCommonName};

/// The system names of a reliable pair's nodes: Primary, Backup and witness. No device comes to a certificate of one of them.
pub const PAIR_NODES: [&str; 3] = ["bodkin-primary", "bodkin-backup", "bodkin-witness"];

/// Common names of the systems that may be at the other end. None is in an empty set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinnedNames(BTreeSet<SystemCommonName>);

impl PinnedNames {
    /// Takes configured names, each `<system>.<cloud>.<operator>.arrowhead.eu` in any case; the first that is none is the error.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, CommonNameError> {
        names.into_iter().map(|name| SystemCommonName::parse(name.trim())).collect::<Result<_, _>>().map(Self)
    }

    /// The systems of these names.
    pub fn of(names: impl IntoIterator<Item = SystemCommonName>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Whether the common name of a certificate, whose chain was verified, is one of them. The whole name counts: a system of the same
    /// name in another cloud is another system.
    pub fn accept(&self, common_name: &str) -> bool {
        SystemCommonName::parse(common_name).is_ok_and(|name| self.0.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_name_is_accepted_in_any_case_and_no_other_is() {
        let pinned = PinnedNames::parse(["Backup.Cloud.Operator.arrowhead.eu", " witness.cloud.operator.arrowhead.eu "]).unwrap();
        for (name, accepted) in [
            ("backup.cloud.operator.arrowhead.eu", true),
            ("WITNESS.cloud.operator.arrowhead.eu", true),
            ("primary.cloud.operator.arrowhead.eu", false),
            ("backup.cloud.elsewhere.arrowhead.eu", false),
            ("backup.other.operator.arrowhead.eu", false),
            ("cloud.operator.arrowhead.eu", false),
            ("x.backup.cloud.operator.arrowhead.eu", false),
            ("backup", false),
            ("", false),
        ] {
            assert_eq!(pinned.accept(name), accepted, "{name}");
        }
        assert!(!PinnedNames::default().accept("backup.cloud.operator.arrowhead.eu"));
    }

    #[test]
    fn a_name_of_another_form_is_no_pin() {
        assert_eq!(PinnedNames::parse(["backup"]).unwrap_err().name, "backup");
    }
}
