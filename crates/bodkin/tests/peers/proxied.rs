//! Event streams through HTTP proxies with default settings, which buffer answers that do not forbid it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Connection;
use crate::support::patience::eventually;
use crate::support::ports::{HeldOffset, held_offset};
use crate::support::skip;
use crate::support::sse::EventStream;
use crate::support::stream::Told;

/// A proxy process in front of a cloud; killed when dropped.
struct Proxy {
    process: Child,
    offset: HeldOffset,
    _directory: TempDir,
}

impl Proxy {
    /// Starts `program` with the configuration that `configure` returns, and waits until the proxy answers.
    ///
    /// `configure` receives the proxy's directory and pairs of addresses: the proxy's own and the cloud's.
    fn start(program: &Path, file_flag: &[&str], cloud: &Cloud, configure: impl Fn(&Path, &[(SocketAddr, SocketAddr)]) -> String) -> Self {
        let (offset, directory) = (held_offset(), TempDir::new().expect("a temporary directory"));
        let pairs = [System::EventHandler, System::Monitor].map(|system| (address(&offset, system), cloud.address(system)));
        let file = directory.path().join("proxy.conf");
        std::fs::write(&file, configure(directory.path(), &pairs)).expect("the configuration is written");
        let mut command = Command::new(program);
        command.args(file_flag).arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.spawn().expect("the proxy starts");
        let proxy = Self { process, offset, _directory: directory };
        let answers = || {
            let answer =
                Connection::open(proxy.address(System::EventHandler)).and_then(|mut to| to.request("GET", "/eventhandler/echo", &[], None));
            answer.is_ok_and(|answer| answer.status == 200)
        };
        assert!(eventually(answers), "{} does not answer", program.display());
        proxy
    }

    fn address(&self, system: System) -> SocketAddr {
        address(&self.offset, system)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn address(offset: &HeldOffset, system: System) -> SocketAddr {
    let port = if matches!(system, System::Monitor) { 8440 } else { 8455 };
    SocketAddr::from(([127, 0, 0, 1], port + offset.get()))
}

fn installed(name: &str) -> Option<PathBuf> {
    ["/usr/sbin", "/usr/bin", "/usr/local/sbin"].map(|folder| Path::new(folder).join(name)).into_iter().find(|path| path.is_file())
}

/// Fails if an event or a part of the overview does not arrive through the proxy while its stream stays open.
fn assert_streams_arrive(cloud: &Cloud, proxy: &Proxy) {
    let published = event("unbuffered", system("proxied", 1), "21");
    let streams =
        ["/eventhandler/subscription?eventtype=unbuffered", "/eventhandler/events?event_type=unbuffered", "/api/v1/events?type=unbuffered"];
    for target in streams {
        let stream = EventStream::open(proxy.address(System::EventHandler), target, &[]);
        stream.wait_until(|told| told.contains(&Told::Comment(" subscribed".into())), &format!("first comment of {target}"));
        cloud.publish(&published);
        stream.wait_for(1);
    }
    let live = EventStream::open(proxy.address(System::Monitor), "/api/v1/live?of=/api/v1/overview", &[]);
    live.wait_for(1);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn event_streams_arrive_through_nginx() {
    let Some(program) = installed("nginx") else { return skip::note("event_streams_arrive_through_nginx", "no nginx") };
    let cloud = Launch::new().start();
    cloud.register_system("proxied", 1);
    let proxy = Proxy::start(&program, &["-c"], &cloud, |directory, pairs| {
        let directory = directory.display();
        let server =
            |(own, to): &(SocketAddr, SocketAddr)| format!("server {{ listen {own}; location / {{ proxy_pass http://{to}; }} }}\n");
        let servers: String = pairs.iter().map(server).collect();
        let folders: String =
            ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|name| format!("{name}_temp_path {directory}/{name};\n")).concat();
        format!(
            "daemon off; master_process off; pid {directory}/nginx.pid; error_log {directory}/error.log;\n\
             events {{ worker_connections 64; }}\nhttp {{ access_log off;\n{folders}{servers}}}\n"
        )
    });
    assert_streams_arrive(&cloud, &proxy);
    // The proxy forwards the header that forbids others to keep or change the answer.
    let mut connection = Connection::open(proxy.address(System::EventHandler)).expect("nginx accepts");
    connection.send_request("GET", "/eventhandler/events?event_type=unbuffered", &[], None).expect("the request is sent");
    let head = connection.read_head().expect("a head");
    assert!(head.headers.contains(&("Cache-Control".into(), "no-cache, no-transform".into())), "{head:?}");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn event_streams_arrive_through_haproxy() {
    let Some(program) = installed("haproxy") else { return skip::note("event_streams_arrive_through_haproxy", "no haproxy") };
    let cloud = Launch::new().start();
    cloud.register_system("proxied", 1);
    let proxy = Proxy::start(&program, &["-db", "-f"], &cloud, |_, pairs| {
        let listen =
            |(at, (own, to)): (usize, &(SocketAddr, SocketAddr))| format!("listen port{at}\n    bind {own}\n    server cloud {to}\n");
        let listens: String = pairs.iter().enumerate().map(listen).collect();
        format!("defaults\n    mode http\n    timeout connect 5s\n    timeout client 1m\n    timeout server 1m\n{listens}")
    });
    assert_streams_arrive(&cloud, &proxy);
}
