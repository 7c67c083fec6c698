//! Whose a data directory is: root writes into nobody else's, for what it makes there its owner could not use.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

/// The user that is nobody's business to ask.
const ROOT: u32 = 0;
/// Where users have their names.
const USERS: &str = "/etc/passwd";

/// Refuses root the directory of another user; one that is not there yet is whoever's makes it.
pub fn refuse_root(directory: &Path) -> anyhow::Result<()> {
    // Of a process its directory in /proc is its effective user's; without /proc nothing is said.
    let own = fs::metadata("/proc/self").map(|process| process.uid());
    let owner = fs::metadata(directory).map(|directory| directory.uid());
    match (own, owner) {
        (Ok(own), Ok(owner)) => judge(own, owner, directory, || fs::read_to_string(USERS)),
        _ => Ok(()),
    }
}

fn judge(own: u32, owner: u32, directory: &Path, users: impl FnOnce() -> io::Result<String>) -> anyhow::Result<()> {
    if own != ROOT || owner == ROOT {
        return Ok(());
    }
    let name = users().ok().and_then(|users| name_of(owner, &users)).unwrap_or_else(|| format!("#{owner}"));
    anyhow::bail!(
        "the data directory {} is the user {name}'s, who could not use what root makes there. Be that user (sudo -u '{name}' bodkin ...), start the service (systemctl start bodkin), \
         or give this cloud its own directory with --data",
        directory.display()
    )
}

/// The name of a user, out of the lines of `/etc/passwd`.
fn name_of(user: u32, users: &str) -> Option<String> {
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    users.lines().map(fields).find(|fields| fields.get(2).is_some_and(|id| id.parse() == Ok(user))).map(|fields| fields[0].clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "root:x:0:0:root:/root:/bin/bash\n\nbroken\nbodkin:x:998:997::/var/lib/bodkin:/usr/sbin/nologin\n";

    #[test]
    fn root_is_refused_what_is_another_users_and_told_whose() {
        let told = |own, owner| judge(own, owner, Path::new("/var/lib/bodkin"), || Ok(LINES.to_owned())).map_err(|error| error.to_string());
        assert!(told(0, 0).is_ok() && told(998, 998).is_ok(), "its own");
        assert!(told(1000, 998).is_ok(), "the system itself refuses that");
        let refused = told(0, 998).unwrap_err();
        assert!(refused.contains("/var/lib/bodkin is the user bodkin's") && refused.contains("sudo -u 'bodkin' bodkin"), "{refused}");
        assert!(told(0, 5).unwrap_err().contains("sudo -u '#5'"), "a user without a name");
        assert!(judge(0, 5, Path::new("x"), || Err(io::ErrorKind::NotFound.into())).is_err(), "nor a file of names");
        assert!(refuse_root(Path::new("/nobody/has/this")).is_ok());
    }
}
