//! Control commits that were answered: whoever leads has them all, at their places.

use crate::violation::Broken;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct ControlAccount {
    /// The newest answered position and the digest of everything through it; digests chain, so the newest stands for all.
    newest: Option<(u64, u64)>,
}

impl ControlAccount {
    pub(super) fn answered(&mut self, position: u64, digest: u64) {
        if self.newest.is_none_or(|(newest, _)| newest < position) {
            self.newest = Some((position, digest));
        }
    }

    /// `digests` are those of the positions from 1 on.
    pub(super) fn check(&self, node: u16, digests: &[u64]) -> Result<(), Broken> {
        let Some((position, digest)) = self.newest else { return Ok(()) };
        let found = usize::try_from(position - 1).ok().and_then(|index| digests.get(index));
        if found == Some(&digest) { Ok(()) } else { Err(Broken::ControlLost { node, position }) }
    }
}
