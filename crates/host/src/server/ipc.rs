//! Taking a path of this machine (`ipc://`), on which ZMTP is spoken as it is on the port.

use std::{
    fs, io,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::UnixListener,
    },
    path::{Path, PathBuf},
};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::{config::IpcAccess, listener};

/// Bytes of a path that the system takes for a socket, and with it every client.
const PATH_BYTES_MAX: usize = 107;

/// Why a path cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum IpcError {
    /// The system's names of sockets are short.
    #[error("the path has {0} bytes, and that of a socket at most {PATH_BYTES_MAX}: name a shorter one by --zmtp-ipc")]
    Long(usize),
    /// A file of somebody's.
    #[error("there is something that is no socket: move it away, or name another path by --zmtp-ipc")]
    Taken,
    /// Somebody listens.
    #[error("another process listens there: stop it, or name another path by --zmtp-ipc")]
    InUse,
    /// The system's words.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A socket's file; it is removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and number, by which it is told from one that somebody has put in its place.
    identity: (u64, u64),
}

impl SocketFile {
    /// Where it is, from the root.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.identity);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "a socket's file stays; the next start removes it");
        }
    }
}

/// What is at a path on which one may listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing.
    Free,
    /// A socket on which nobody listens any more.
    Left,
}

/// Looks whether one may listen on a path.
///
/// # Errors
/// Why not.
pub fn examine(path: &Path) -> Result<Place, IpcError> {
    let length = path.as_os_str().as_bytes().len();
    if length > PATH_BYTES_MAX {
        return Err(IpcError::Long(length));
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Place::Free),
        Err(error) => Err(error.into()),
        Ok(found) if !found.file_type().is_socket() => Err(IpcError::Taken),
        // Without waiting: a full queue is a listener's as well.
        Ok(_) => match Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?.connect(&SockAddr::unix(path)?) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(Place::Left),
            _ => Err(IpcError::InUse),
        },
    }
}

/// Listens on a path. What a killed process has left there is replaced.
///
/// # Errors
/// Why it cannot.
pub(super) fn bind(path: &Path, access: IpcAccess) -> Result<(UnixListener, SocketFile), IpcError> {
    let path = std::path::absolute(path)?;
    if examine(&path)? == Place::Left {
        fs::remove_file(&path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.bind(&SockAddr::unix(&path)?)?;
    // Before it listens, so that nobody comes who may not.
    fs::set_permissions(&path, fs::Permissions::from_mode(access.mode()))?;
    socket.listen(listener::BACKLOG)?;
    let made = fs::symlink_metadata(&path)?;
    Ok((socket.into(), SocketFile { path, identity: (made.dev(), made.ino()) }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn bound(path: &Path) -> Result<(UnixListener, SocketFile), IpcError> {
        bind(path, IpcAccess::Owner)
    }

    #[test]
    fn a_socket_has_its_rights_and_goes_with_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        for (access, mode) in [(IpcAccess::Owner, 0o600), (IpcAccess::Group, 0o660)] {
            let path = directory.path().join("s");
            let (listener, file) = bind(&path, access).unwrap();
            assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, mode);
            assert_eq!(file.path(), path);
            drop(UnixStream::connect(&path).unwrap());
            assert!(matches!(bound(&path), Err(IpcError::InUse)));
            drop((listener, file));
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left");
        }
    }

    #[test]
    fn what_a_killed_process_has_left_is_replaced_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        let (_listener, file) = bound(&path).unwrap();
        drop(UnixStream::connect(&path).unwrap());
        // Somebody else's in its place is not ours to remove.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert!(matches!(bound(&path), Err(IpcError::Taken)));
    }

    #[test]
    fn a_path_that_is_too_long_is_told_before_anything_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let room = PATH_BYTES_MAX - directory.path().as_os_str().len() - 1;
        drop(bound(&directory.path().join("x".repeat(room))).unwrap());
        let told = bound(&directory.path().join("x".repeat(room + 1))).unwrap_err().to_string();
        assert_eq!(told, "the path has 108 bytes, and that of a socket at most 107: name a shorter one by --zmtp-ipc");
        assert!(matches!(bound(&directory.path().join("none/s")), Err(IpcError::System(_))));
    }
}
