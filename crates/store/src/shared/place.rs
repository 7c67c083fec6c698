//! Where a shared database is.

use std::{fmt, path::PathBuf, time::Duration};

use percent_encoding::percent_decode_str;
use tokio_postgres::config::{ChannelBinding, Config, Host, SslMode, TargetSessionAttrs};

use super::tls::DatabaseTls;

/// How long a connection may take to be made.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(3);
/// How long a connection may be idle before the system asks whether the other end is there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
/// How long what was sent may go without an acknowledgement of the other end.
const UNACKNOWLEDGED_TIME_MAX: Duration = Duration::from_secs(10);

/// Hosts of one database: its server, and standbys that may take over.
const HOSTS_MAX: usize = 4;

/// Why a text names no database that can be shared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// Another form.
    #[error("a shared database is named as postgres://USER:PASSWORD@HOST:PORT/DATABASE (or postgresql://...)")]
    Form,
    /// The URL's parts.
    #[error(
        "the database's URL cannot be read: {0}; postgres://USER:PASSWORD@HOST:PORT/DATABASE is expected, in which other characters than letters and digits are %XX"
    )]
    Url(String),
    /// A part that is needed.
    #[error("the database's URL names no {0}; postgres://USER:PASSWORD@HOST:PORT/DATABASE is expected")]
    Missing(&'static str),
    /// The hosts of a server and its standbys.
    #[error("the database's URL names hosts in a way that is not done: {0}")]
    Hosts(String),
    /// How TLS is asked for.
    #[error("the database's URL asks for TLS in a way that is not done: {0}")]
    Tls(String),
}

/// A PostgreSQL database, and as whom it is used. Shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabasePlace {
    /// How to connect to each host, in the order of the URL: the database is where one takes writes.
    configs: Vec<(String, Config)>,
    /// `None`: TLS is not spoken.
    tls: Option<DatabaseTls>,
    told: String,
}

/// What a URL says of TLS.
#[derive(Default)]
struct TlsWords {
    sslmode: Option<String>,
    sslrootcert: Option<String>,
    sslcert: Option<String>,
    sslkey: Option<String>,
}

impl DatabasePlace {
    /// Reads a URL.
    ///
    /// # Errors
    /// It is none of PostgreSQL's, lacks a part, or asks for what is not there.
    pub fn parse(url: &str) -> Result<Self, NoPlace> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(NoPlace::Form);
        }
        let (url, words) = TlsWords::taken_from(url)?;
        let mut configs = of_each_host(&url)?.iter().map(|url| config(url)).collect::<Result<Vec<_>, _>>()?;
        let (_, first) = configs.first().ok_or(NoPlace::Missing("host"))?;
        let user = first.get_user().ok_or(NoPlace::Missing("user"))?.to_owned();
        let database = first.get_dbname().ok_or(NoPlace::Missing("database"))?.to_owned();
        let all: Vec<&Config> = configs.iter().map(|(_, config)| config).collect();
        let tls = words.meant(&all)?;
        for (_, config) in &mut configs {
            config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        }
        let hosts = configs.iter().map(|(host, _)| host.as_str()).collect::<Vec<_>>().join(",");
        Ok(Self { told: format!("postgres://{user}@{hosts}/{database}"), tls, configs })
    }

    /// How many hosts there are to look for it at.
    pub fn hosts(&self) -> usize {
        self.configs.len()
    }

    /// Whether what is said to the server goes through TLS, and whether it has to show who it is: `None` over a socket of this machine.
    pub fn secrecy(&self) -> Option<Secrecy> {
        let is_local = |host: &Host| {
            matches!(host, Host::Unix(_))
                || matches!(host, Host::Tcp(name) if name == "localhost" || name.starts_with("127.") || name == "::1")
        };
        match &self.tls {
            Some(DatabaseTls { authorities: Some(_), .. }) => Some(Secrecy::Verified),
            Some(_) => Some(Secrecy::Unverified),
            None => (!self.configs.iter().all(|(_, config)| config.get_hosts().iter().all(is_local))).then_some(Secrecy::None),
        }
    }

    /// How TLS is spoken; `None`: it is not.
    pub(crate) fn tls(&self) -> Option<&DatabaseTls> {
        self.tls.as_ref()
    }

    /// How to connect to each host, and what that is called; the server shows the name.
    pub(crate) fn configs(&self, name: &str) -> impl Iterator<Item = (&str, Config)> {
        self.configs.iter().map(move |(host, config)| {
            let mut config = config.clone();
            config.application_name(name);
            (host.as_str(), config)
        })
    }
}

/// A URL of each host that a URL names in front of the database's name.
fn of_each_host(url: &str) -> Result<Vec<String>, NoPlace> {
    let (scheme, rest) = url.split_once("://").ok_or(NoPlace::Form)?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
    let at = if authority.contains('@') { "@" } else { "" };
    let urls: Vec<String> = hosts.split(',').map(|host| format!("{scheme}://{user}{at}{host}{behind}")).collect();
    if urls.len() > HOSTS_MAX {
        return Err(NoPlace::Hosts(format!("there are {}, and {HOSTS_MAX} are the most", urls.len())));
    }
    Ok(urls)
}

/// How to connect to a URL's one host, and what that is called. Whoever takes no writes, as a standby, is not the database.
fn config(url: &str) -> Result<(String, Config), NoPlace> {
    let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| NoPlace::Url(error.to_string()))?;
    let host = match config.get_hosts() {
        [] => return Err(NoPlace::Missing("host")),
        [Host::Tcp(name)] if !name.contains(',') => name.clone(),
        [Host::Unix(path)] => path.display().to_string(),
        _ => return Err(NoPlace::Hosts("name them in front of the database's name, host1:port1,host2:port2".to_owned())),
    };
    if config.get_target_session_attrs() == TargetSessionAttrs::ReadOnly {
        return Err(NoPlace::Hosts("nodes write (target_session_attrs=read-write, which is meant without any)".to_owned()));
    }
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    config.connect_timeout(CONNECT_TIME_MAX).keepalives_idle(KEEPALIVE_IDLE).tcp_user_timeout(UNACKNOWLEDGED_TIME_MAX);
    let port = config.get_ports().first().map_or_else(String::new, |port| format!(":{port}"));
    Ok((format!("{host}{port}"), config))
}

/// How far the way to a server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// Whoever is on the way reads and changes what is said, the password first.
    None,
    /// Nobody who only listens does; who pretends to be the server does.
    Unverified,
    /// Nobody does.
    Verified,
}

impl TlsWords {
    /// Takes them out of a URL, which is read by who does not know all of them.
    fn taken_from(url: &str) -> Result<(String, Self), NoPlace> {
        let mut words = Self::default();
        let Some((place, query)) = url.split_once('?') else { return Ok((url.to_owned(), words)) };
        let mut others = Vec::new();
        for part in query.split('&') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let word = match key {
                "sslmode" => &mut words.sslmode,
                "sslrootcert" => &mut words.sslrootcert,
                "sslcert" => &mut words.sslcert,
                "sslkey" => &mut words.sslkey,
                _ if key.starts_with("ssl") => {
                    return Err(NoPlace::Tls(format!("{key} is not known; sslmode, sslrootcert, sslcert and sslkey are")));
                }
                _ => {
                    others.push(part);
                    continue;
                }
            };
            let value = percent_decode_str(value).decode_utf8().map_err(|error| NoPlace::Url(format!("{key}: {error}")))?;
            if value.is_empty() {
                return Err(NoPlace::Tls(format!("{key} says nothing")));
            }
            if word.replace(value.into_owned()).is_some() {
                return Err(NoPlace::Tls(format!("{key} is said twice")));
            }
        }
        let query = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
        Ok((format!("{place}{query}"), words))
    }

    /// What they mean together.
    fn meant(self, configs: &[&Config]) -> Result<Option<DatabaseTls>, NoPlace> {
        let is_bound = configs.iter().any(|config| config.get_channel_binding() == ChannelBinding::Require);
        let refused = |why: &str| Err(NoPlace::Tls(why.to_owned()));
        let Self { sslmode, sslrootcert, sslcert, sslkey } = self;
        let mode = sslmode.as_deref().unwrap_or("disable");
        let is_verified = match mode {
            "disable" if sslrootcert.is_some() || sslcert.is_some() || sslkey.is_some() => {
                return refused("sslrootcert, sslcert and sslkey go with sslmode=verify-full (the last two with sslmode=require too)");
            }
            "disable" if is_bound => {
                return refused(
                    "channel_binding=require needs TLS, and passwords are not bound to it here: say sslmode=verify-full instead",
                );
            }
            "disable" => return Ok(None),
            "require" => false,
            "verify-full" => true,
            "verify-ca" => {
                return refused(
                    "sslmode=verify-ca believes any server of the authority's: say sslmode=verify-full, and have the server's certificate made out for the host in the URL",
                );
            }
            "allow" | "prefer" => {
                return refused(
                    "sslmode=allow and sslmode=prefer go on without TLS where the server, or somebody on the way, says so: say disable, require or verify-full",
                );
            }
            other => return refused(&format!("sslmode={other} is none of disable, require and verify-full")),
        };
        if is_verified && sslrootcert.is_none() {
            return refused(
                "sslmode=verify-full needs sslrootcert=FILE, the certificate (PEM) of the authority that has issued the server's",
            );
        }
        if !is_verified && sslrootcert.is_some() {
            return refused("with sslmode=require nobody is held against sslrootcert: say sslmode=verify-full");
        }
        if is_bound {
            return refused("passwords are not bound to the channel (channel_binding=require): sslmode=verify-full says who reads them");
        }
        if configs.iter().any(|config| config.get_hosts().iter().any(|host| matches!(host, Host::Unix(_)))) {
            return refused("PostgreSQL speaks no TLS over a Unix socket, which nobody listens on: leave sslmode away");
        }
        let identity = match (sslcert, sslkey) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((PathBuf::from(certificate), PathBuf::from(key))),
            _ => return refused("sslcert and sslkey belong together"),
        };
        Ok(Some(DatabaseTls { authorities: sslrootcert.map(PathBuf::from), identity }))
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
        assert!(matches!(refused("postgres://bodkin@db.example:x/cloud"), NoPlace::Url(_)));
    }

    #[test]
    fn a_server_and_its_standbys_are_told_apart_and_one_that_takes_writes_is_meant() {
        let place = DatabasePlace::parse("postgres://bodkin:a%2Cb@db1.example,db2.example:5433/cloud?connect_timeout=2").unwrap();
        assert_eq!((place.to_string().as_str(), place.hosts()), ("postgres://bodkin@db1.example:5432,db2.example:5433/cloud", 2));
        let attributes = place.configs("n").map(|(_, config)| (config.get_target_session_attrs(), config.get_hosts().len()));
        assert_eq!(attributes.collect::<Vec<_>>(), [(TargetSessionAttrs::ReadWrite, 1); 2]);
        let sockets = DatabasePlace::parse("postgres://bodkin@%2Frun%2Fa,%2Frun%2Fb/cloud").unwrap();
        assert_eq!(sockets.to_string(), "postgres://bodkin@/run/a:5432,/run/b:5432/cloud");
        let refused = |url: &str| DatabasePlace::parse(url).unwrap_err().to_string();
        assert!(refused("postgres://bodkin@a/cloud?target_session_attrs=read-only").contains("nodes write"));
        assert!(refused("postgres://bodkin@a,b,c,d,e/cloud").contains("4 are the most"));
        assert!(refused("postgres://bodkin@/cloud?host=a,b").contains("in front of"));
        let tls = "postgres://bodkin@a,%2Frun/cloud?sslmode=require";
        assert!(refused(tls).contains("Unix socket"));
    }

    #[test]
    fn tls_is_asked_for_as_of_any_client_and_never_half() {
        let parse = |query: &str| DatabasePlace::parse(&format!("postgres://bodkin@db.example/cloud{query}"));
        let secrecy = |query: &str| parse(query).unwrap().secrecy();
        assert_eq!(secrecy(""), Some(Secrecy::None));
        assert_eq!(secrecy("?sslmode=disable"), Some(Secrecy::None));
        assert_eq!(secrecy("?sslmode=require"), Some(Secrecy::Unverified));
        assert_eq!(secrecy("?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&connect_timeout=2"), Some(Secrecy::Verified));
        let full = parse("?sslcert=/c.pem&sslmode=verify-full&sslkey=/k.pem&sslrootcert=/ca%20one.pem").unwrap();
        let tls = full.tls().unwrap();
        assert_eq!(tls.authorities, Some("/ca one.pem".into()));
        assert_eq!(tls.identity, Some(("/c.pem".into(), "/k.pem".into())));
        assert_eq!(full.to_string(), "postgres://bodkin@db.example:5432/cloud");
        assert_eq!(DatabasePlace::parse("postgres://bodkin@%2Frun/cloud").unwrap().secrecy(), None);
        for (query, told) in [
            ("?sslmode=verify-full", "needs sslrootcert"),
            ("?sslmode=require&sslrootcert=/ca.pem", "verify-full"),
            ("?sslmode=prefer", "go on without TLS"),
            ("?sslmode=verify-ca&sslrootcert=/ca.pem", "verify-ca"),
            ("?sslmode=full", "none of disable"),
            ("?sslrootcert=/ca.pem", "go with sslmode"),
            ("?sslmode=require&sslcert=/c.pem", "belong together"),
            ("?sslmode=require&sslmode=require", "twice"),
            ("?sslmode=", "says nothing"),
            ("?sslcompression=1", "is not known"),
            ("?sslmode=require&channel_binding=require", "not bound"),
        ] {
            let error = parse(query).unwrap_err();
            assert!(matches!(&error, NoPlace::Tls(why) if why.contains(told)), "{query}: {error}");
        }
        let socket = DatabasePlace::parse("postgres://bodkin@%2Frun/cloud?sslmode=require").unwrap_err();
        assert!(socket.to_string().contains("Unix socket"), "{socket}");
    }
}
