//! TLS to the shared database, on a real PostgreSQL with authorities of the test's own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bodkin_store::{Store, shared::DatabasePlace};
use bodkin_trust::{Identity, tls::now};
use tempfile::TempDir;

use crate::postgres::server::{Server, eventually};
use crate::support::ports::held_port;
use crate::support::secure::{DAY, authority, issue, other_authority};
use crate::support::skip;

/// Chain and key of an identity, and the anchor's certificate, as files of this test's user.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    fn put(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).expect("a file is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("rights are set");
        path
    }
}

fn chain(identity: &Identity) -> String {
    identity.chain_to_pem()
}

fn key(identity: &Identity) -> String {
    identity.key().to_pem().to_string()
}

/// Has the server speak TLS at a port of 127.0.0.1, with a certificate for `localhost`.
fn speaks_tls(server: &mut Server, port: u16) {
    let own = issue(&authority(), "db.example", &["localhost"], now(), DAY);
    let files = [
        server.file("own.crt", &chain(&own)),
        server.file("own.key", &key(&own)),
        server.file("ca.crt", &authority().identity().chain_to_pem()),
    ];
    let access = "local all all trust\nhostssl all guarded 127.0.0.1/32 cert\nhost all all 127.0.0.1/32 trust\n";
    let access = server.file("access", access);
    let [own, key, ca] = files.map(|file| file.display().to_string());
    server.restart_with(&[
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        "ssl=on".to_owned(),
        format!("ssl_cert_file={own}"),
        format!("ssl_key_file={key}"),
        format!("ssl_ca_file={ca}"),
        format!("hba_file={}", access.display()),
    ]);
}

fn share(url: &str) -> Result<(), String> {
    let place = TempDir::new().expect("a temporary directory");
    let database = DatabasePlace::parse(url).map_err(|error| error.to_string())?;
    Store::share(place.path(), &database).map(|opened| opened.close()).map_err(|error| error.to_string())
}

fn shown(path: &Path) -> String {
    path.display().to_string().replace('/', "%2F")
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_database_is_spoken_to_in_tls_by_who_it_says_it_is() {
    let Some(mut server) = Server::start() else {
        return skip::note("a_database_is_spoken_to_in_tls_by_who_it_says_it_is", "no PostgreSQL server");
    };
    let port = held_port();
    speaks_tls(&mut server, port);
    let files = Files::new();
    let right = shown(&files.put("right.pem", &authority().certificate().to_pem()));
    let wrong = shown(&files.put("wrong.pem", &other_authority("elsewhere.aitia.arrowhead.eu").certificate().to_pem()));
    let url = |user: &str, host: &str, query: &str| format!("postgres://{user}@{host}:{port}/cloud?{query}");
    let verified = |ca: &str| format!("sslmode=verify-full&sslrootcert={ca}");

    // While a node is there, every connection of its is in TLS.
    let place = TempDir::new().expect("a temporary directory");
    let database = DatabasePlace::parse(&url("bodkin", "localhost", &verified(&right))).expect("a place");
    let opened = Store::share(place.path(), &database).expect("it is shared");
    let plain = "SELECT count(*) FILTER (WHERE NOT ssl), count(*) > 0 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'bodkin %'";
    assert_eq!(server.sql("cloud", plain), "0|t");
    opened.close();
    share(&url("bodkin", "127.0.0.1", "sslmode=require")).expect("whoever answers is believed");

    let refused = |user: &str, host: &str, query: &str| share(&url(user, host, query)).expect_err("it is refused");
    let told = refused("bodkin", "localhost", &verified(&wrong));
    assert!(told.contains("UnknownIssuer"), "{told}");
    let told = refused("bodkin", "127.0.0.1", &verified(&right));
    assert!(told.contains("not valid for name \"127.0.0.1\""), "{told}");
    let told = refused("bodkin", "localhost", &verified("%2Fnowhere.pem"));
    assert!(told.contains("/nowhere.pem"), "{told}");
    let nothing = shown(&files.put("nothing.pem", "nothing"));
    let told = refused("bodkin", "localhost", &verified(&nothing));
    assert!(told.contains("holds no certificate"), "{told}");

    // Who has to show who he is.
    server.sql("cloud", "CREATE ROLE guarded LOGIN SUPERUSER");
    let told = refused("guarded", "localhost", &verified(&right));
    assert!(told.contains("valid client certificate"), "{told}");
    let own = issue(&authority(), "guarded", &[], now(), DAY);
    let (certificate, secret) = (files.put("own.crt", &chain(&own)), files.put("own.key", &key(&own)));
    let shows = format!("{}&sslcert={}&sslkey={}", verified(&right), shown(&certificate), shown(&secret));
    share(&url("guarded", "localhost", &shows)).expect("it shows who it is");
    // New files count for the next connection of a node that runs.
    let place = TempDir::new().expect("a temporary directory");
    let database = DatabasePlace::parse(&url("guarded", "localhost", &shows)).expect("a place");
    let opened = Store::share(place.path(), &database).expect("it is shared");
    let serials = || {
        let of_nodes = "FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'bodkin %'";
        server.sql("cloud", &format!("SELECT DISTINCT client_serial {of_nodes}"))
    };
    let renewed = issue(&authority(), "guarded", &[], now(), DAY);
    assert_ne!(renewed.certificate().serial(), own.certificate().serial());
    let first = serials();
    files.put("own.crt", &chain(&renewed));
    files.put("own.key", &key(&renewed));
    assert_eq!(serials(), first, "a connection keeps the certificate that it began with");
    server.sql("cloud", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'bodkin %'");
    eventually(|| !["", &*first].contains(&&*serials()), || format!("{first} stays"));
    opened.close();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).expect("rights are set");
    let told = refused("guarded", "localhost", &shows);
    assert!(told.contains("chmod 600"), "{told}");

    // Nobody says no TLS on the server's behalf.
    server.restart_with(&["listen_addresses=127.0.0.1".to_owned(), format!("port={port}")]);
    for query in [verified(&right), "sslmode=require".to_owned()] {
        let told = refused("bodkin", "localhost", &query);
        assert!(told.contains("server does not support TLS"), "{told}");
    }
    share(&url("bodkin", "127.0.0.1", "sslmode=disable")).expect("it is asked for");
}
