//! Where the node of a pair that leads shows its dashboard: it writes that down when it begins to lead, and so the node that follows knows it.

use crate::{
    database::params,
    draft::{Draft, OperationError},
};

/// The table has one row at the most.
pub(crate) const MIGRATION: &str = "
CREATE TABLE leader (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    host TEXT NOT NULL,
    monitor_port INTEGER NOT NULL,
    secure INTEGER NOT NULL
) STRICT;
";

/// Where the node that leads, or has led last, is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderPlace {
    /// Name or IP address under which its core systems are registered.
    pub host: String,
    /// Where Bodkin's own interface is.
    pub monitor_port: u16,
    /// Whether it speaks TLS there.
    pub secure: bool,
}

impl Draft<'_> {
    /// Notes where this node is, which leads; one that is noted already changes nothing.
    pub fn note_leader(&mut self, place: &LeaderPlace) -> Result<(), OperationError> {
        if self.leader()?.as_ref() != Some(place) {
            let LeaderPlace { host, monitor_port, secure } = place;
            self.run(
                "INSERT INTO leader (id, host, monitor_port, secure) VALUES (1, ?1, ?2, ?3)
                 ON CONFLICT (id) DO UPDATE SET host = excluded.host, monitor_port = excluded.monitor_port, secure = excluded.secure",
                params![host, *monitor_port, *secure],
            )?;
        }
        Ok(())
    }

    /// Where the node is that has noted itself last; `None`: no node of a pair has led on this database.
    pub fn leader(&mut self) -> Result<Option<LeaderPlace>, OperationError> {
        let place = self.row("SELECT host, monitor_port, secure FROM leader", (), |row| {
            Ok(LeaderPlace { host: row.get(0)?, monitor_port: row.get(1)?, secure: row.get(2)? })
        });
        Ok(place?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[tokio::test]
    async fn the_node_that_led_last_is_known_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let place = |host: &str| LeaderPlace { host: host.into(), monitor_port: 8440, secure: true };
        let opened = Store::open(directory.path()).unwrap();
        assert_eq!(opened.store.read(|draft| draft.leader()).await.unwrap(), None);
        for host in ["first.example", "second.example"] {
            let noted = place(host);
            opened.store.write(move |draft| draft.note_leader(&noted), |_, ()| ()).await.unwrap();
        }
        opened.close();
        let opened = Store::open(directory.path()).unwrap();
        assert_eq!(opened.store.read(|draft| draft.leader()).await.unwrap(), Some(place("second.example")));
    }
}
