//! Where a shared database is.

use std::{fmt, time::Duration};

use tokio_postgres::config::{Config, Host, SslMode};

/// How long a connection may take to be made.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(3);
/// How long a connection may be idle before the system asks whether the other end is there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
/// How long what was sent may go without an acknowledgement of the other end.
const UNACKNOWLEDGED_TIME_MAX: Duration = Duration::from_secs(10);

/// Why a text names no database that can be shared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// Another form.
    #[error("a shared database is named as postgres://USER:PASSWORD@HOST:PORT/DATABASE (or postgresql://...)")]
    Form,
    /// The URL's parts.
    #[error("the database's URL cannot be read: {0}")]
    Url(String),
    /// A part that is needed.
    #[error("the database's URL names no {0}")]
    Missing(&'static str),
    /// TLS is asked for.
    #[error("TLS to the database is not spoken: reach it over a Unix socket, or through a tunnel on this host, and leave sslmode away")]
    Tls,
}

/// A PostgreSQL database, and as whom it is used. Shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabasePlace {
    config: Config,
    told: String,
}

impl DatabasePlace {
    /// Reads a URL.
    pub fn parse(url: &str) -> Result<Self, NoPlace> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(NoPlace::Form);
        }
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| NoPlace::Url(error.to_string()))?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(NoPlace::Tls);
        }
        let user = config.get_user().ok_or(NoPlace::Missing("user"))?.to_owned();
        let database = config.get_dbname().ok_or(NoPlace::Missing("database"))?.to_owned();
        let hosts = config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts = hosts.collect::<Vec<_>>().join(",");
        if hosts.is_empty() {
            return Err(NoPlace::Missing("host"));
        }
        let ports = config.get_ports().iter().map(u16::to_string).collect::<Vec<_>>().join(",");
        let ports = if ports.is_empty() { ports } else { format!(":{ports}") };
        config.connect_timeout(CONNECT_TIME_MAX).keepalives_idle(KEEPALIVE_IDLE).tcp_user_timeout(UNACKNOWLEDGED_TIME_MAX);
        Ok(Self { told: format!("postgres://{user}@{hosts}{ports}/{database}"), config })
    }

    /// How to connect; the server shows the name.
    pub(crate) fn config(&self, name: &str) -> Config {
        let mut config = self.config.clone();
        config.application_name(name);
        config
    }
}

impl fmt::Display for DatabasePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told)
    }
}

impl fmt::Debug for DatabasePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabasePlace({})", self.told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_shown_without_its_password() {
        let place = DatabasePlace::parse("postgres://bodkin:se%40cret@db.example:5433/cloud").unwrap();
        assert_eq!(place.to_string(), "postgres://bodkin@db.example:5433/cloud");
        assert_eq!(format!("{place:?}"), "DatabasePlace(postgres://bodkin@db.example:5433/cloud)");
        let local = DatabasePlace::parse("postgresql://bodkin@%2Frun%2Fpostgresql/cloud").unwrap();
        assert_eq!(local.to_string(), "postgres://bodkin@/run/postgresql:5432/cloud");
    }

    #[test]
    fn what_names_no_database_is_told() {
        let refused = |url: &str| DatabasePlace::parse(url).unwrap_err();
        assert_eq!(refused("sqlite://file"), NoPlace::Form);
        assert_eq!(refused("postgres://db.example/cloud"), NoPlace::Missing("user"));
        assert_eq!(refused("postgres://bodkin@db.example"), NoPlace::Missing("database"));
        assert_eq!(refused("postgres://bodkin@/cloud"), NoPlace::Missing("host"));
        assert_eq!(refused("postgres://bodkin@db.example/cloud?sslmode=require"), NoPlace::Tls);
        assert!(matches!(refused("postgres://bodkin@db.example:x/cloud"), NoPlace::Url(_)));
    }
}
