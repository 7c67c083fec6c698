//! What the options say of ZMTP: where it is spoken, by whom, and as whom those publish who do not say who they are.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use bodkin_arrowhead::name::SystemName;
use bodkin_host::{IpcAccess, IpcConfig, ZmtpConfig};

use super::Settings;

/// The path that is found by itself.
pub(super) const AUTO: &str = "auto";
/// Who may come to it.
pub(super) const OWNER: &str = "owner";
const GROUP: &str = "group";

impl Settings {
    /// What complete settings say; `None`: ZMTP is not spoken.
    pub(super) fn zmtp_config(&self) -> anyhow::Result<Option<ZmtpConfig>> {
        let all = "complete settings have every option";
        let name = self.zmtp_system.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let system = name.map(|name| SystemName::parse(name).map_err(|error| anyhow!("zmtp_system {error}"))).transpose()?;
        let access = match self.zmtp_ipc_access.as_deref().expect(all) {
            OWNER => IpcAccess::Owner,
            GROUP => IpcAccess::Group,
            other => bail!("zmtp_ipc_access is '{other}', where {OWNER} or {GROUP} is expected"),
        };
        let ipc = match self.zmtp_ipc.as_deref().expect(all) {
            "" => None,
            AUTO => Some(IpcConfig { path: None, access }),
            path => Some(IpcConfig { path: Some(path.into()), access }),
        };
        Ok(Some(ZmtpConfig { port: zmtp_port(self.offset()), system, ipc }).filter(|_| self.zmtp.expect(all)))
    }

    /// The Unix socket that complete settings mean, if ZMTP is spoken on one.
    pub fn zmtp_ipc_path(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(IpcConfig { path, .. }) = self.zmtp_config()?.and_then(|zmtp| zmtp.ipc) else { return Ok(None) };
        let data = self.data.as_ref().expect("complete settings have every option");
        Ok(Some(std::path::absolute(path.unwrap_or_else(|| data.join(IpcConfig::DEFAULT_NAME)))?))
    }
}

/// Where ZMTP is spoken; an offset that moves the standard ports to ports moves this one, which is less. Without an offset any.
pub fn zmtp_port(offset: Option<u16>) -> u16 {
    offset.map_or(0, |offset| ZmtpConfig::DEFAULT_PORT.saturating_add(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_that_of_the_data_directory_a_named_one_or_none() {
        let settings = |path: &str, access: &str| Settings {
            data: Some("/data".into()),
            zmtp_ipc: Some(path.into()),
            zmtp_ipc_access: Some(access.to_owned()),
            ..Settings::defaults()
        };
        for (path, expected) in [("auto", Some("/data/zmtp.ipc")), ("/run/bodkin/zmtp", Some("/run/bodkin/zmtp")), ("", None)] {
            assert_eq!(settings(path, OWNER).zmtp_ipc_path().unwrap(), expected.map(PathBuf::from));
        }
        let access = |access| settings("auto", access).zmtp_config().map(|zmtp| zmtp.unwrap().ipc.unwrap().access.mode());
        assert_eq!(["owner", "group"].map(|text| access(text).unwrap()), [0o600, 0o660]);
        assert_eq!(access("all").unwrap_err().to_string(), "zmtp_ipc_access is 'all', where owner or group is expected");
        let off = Settings { zmtp: Some(false), ..Settings::defaults() };
        assert_eq!((off.zmtp_config().unwrap(), off.zmtp_ipc_path().unwrap()), (None, None));
    }

    #[test]
    fn the_port_moves_with_the_others() {
        assert_eq!([zmtp_port(Some(100)), zmtp_port(None)], [5670, 0]);
    }
}
