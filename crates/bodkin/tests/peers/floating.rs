//! An address that moves between two hosts, to whichever node answers its own host's probe: curl, which knows this one address, goes on through it. Hosts are network namespaces on
//! one bridge, so that a host can die with its cable.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::crash::has_namespaces;
use crate::support::arrowhead::{event, service, system};
use crate::support::cloud::BINARY;
use crate::support::patience::{eventually, eventually_some};
use crate::support::skip;

/// The one address that the client knows.
const FLOATING: &str = "10.201.0.10";
const CLIENT: &str = "client";
const FIRST: &str = "first";
const SECOND: &str = "second";
const ADDRESSES: [(&str, &str); 3] = [(CLIENT, "10.201.0.1"), (FIRST, "10.201.0.2"), (SECOND, "10.201.0.3")];
const WITNESS: &str = "10.201.0.1:8480";
const PAIR: &str = "10.201.0.3:8481";
/// Between two probes of each host.
const PROBE_EVERY: Duration = Duration::from_millis(100);
const CONFIG: &str = "listen = \"0.0.0.0\"\ndomain_name = \"10.201.0.10\"\n[platform]\nlease_ms = 400\nheartbeat_ms = 50\ndrift_ppm = 200\ndetect_jitter_ms = 100\nredirect_ms = 50\n";

/// The namespaces; gone when dropped.
struct Hosts {
    prefix: String,
}

impl Hosts {
    fn lay() -> Self {
        let hosts = Self { prefix: format!("bodkin-{}-floating", std::process::id()) };
        for (host, _) in ADDRESSES {
            hosts.ip(&["netns", "add", &hosts.namespace(host)]);
            hosts.inside(host, &["link", "set", "lo", "up"]);
        }
        hosts.inside(CLIENT, &["link", "add", "bridge", "type", "bridge"]);
        for (host, address) in ADDRESSES {
            let interface = if host == CLIENT { "bridge" } else { "cable" };
            if host != CLIENT {
                let far = hosts.namespace(host);
                hosts.inside(CLIENT, &["link", "add", host, "type", "veth", "peer", "name", interface, "netns", &far]);
                hosts.inside(CLIENT, &["link", "set", host, "master", "bridge", "up"]);
            }
            hosts.inside(host, &["address", "add", &format!("{address}/24"), "dev", interface]);
            hosts.inside(host, &["link", "set", interface, "up"]);
        }
        // Nobody announces the move here (keepalived does): whom an address belongs to is asked anew when it is silent.
        let asks = "cd /proc/sys/net/ipv4/neigh/bridge && echo 300 >base_reachable_time_ms && echo 1 >delay_first_probe_time";
        assert!(hosts.run(CLIENT, "sh", &["-c", asks]).status.success());
        hosts
    }

    fn namespace(&self, host: &str) -> String {
        format!("{}-{host}", self.prefix)
    }

    #[track_caller]
    fn ip(&self, arguments: &[&str]) {
        let output = Command::new("ip").args(arguments).output().expect("there is an ip");
        assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    #[track_caller]
    fn inside(&self, host: &str, arguments: &[&str]) {
        self.ip(&[&["-n", self.namespace(host).as_str()], arguments].concat());
    }

    /// A program on a host. It becomes the child itself.
    fn command(&self, host: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host), program]).stdin(Stdio::null());
        command
    }

    fn run(&self, host: &str, program: &str, arguments: &[&str]) -> Output {
        self.command(host, program).args(arguments).output().expect("it starts")
    }

    /// What curl gets on a host; nothing if it reaches nobody, or an error is answered.
    fn curl(&self, host: &str, url: &str, body: Option<&Value>) -> Option<String> {
        let body = body.map(Value::to_string);
        let mut arguments = vec!["--silent", "--fail", "--max-time", "2", url];
        arguments.extend(body.iter().flat_map(|body| ["--header", "Content-Type: application/json", "--data", body]));
        let output = self.run(host, "curl", &arguments);
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What the client's curl gets from the one address, in time.
    #[track_caller]
    fn reached(&self, port_and_path: &str, body: Option<&Value>) -> String {
        let url = format!("http://{FLOATING}:{port_and_path}");
        eventually_some(|| self.curl(CLIENT, &url, body)).unwrap_or_else(|| panic!("{url} does not answer"))
    }

    /// Gives the address to each host whose own node is ready, and takes it from every other one, until it is enough.
    fn move_address(&self, is_enough: &AtomicBool) {
        let mut has = [false; 2];
        while !is_enough.load(SeqCst) {
            for (host, has) in [FIRST, SECOND].into_iter().zip(&mut has) {
                let is_ready = self.curl(host, "http://127.0.0.1:8440/readyz", None).is_some();
                if is_ready != *has {
                    let word = if is_ready { "add" } else { "delete" };
                    self.inside(host, &["address", word, &format!("{FLOATING}/24"), "dev", "cable"]);
                    *has = is_ready;
                }
            }
            thread::sleep(PROBE_EVERY);
        }
    }

    /// Starts a node with its data in its directory.
    fn start(&self, place: &Path, host: &str) -> Running {
        let mut command = self.command(host, BINARY);
        match host {
            FIRST => command.args(["up", "--role", "primary", "--peer", PAIR, "--witness", WITNESS]),
            SECOND => command.args(["backup", "--pair-listen", PAIR, "--witness", WITNESS]),
            _ => command.args(["witness", "--witness-listen", WITNESS]),
        };
        command.args(["--insecure", "--config"]).arg(place.join("bodkin.toml")).arg("--data").arg(place.join(host));
        let log = fs::File::options().append(true).create(true).open(place.join(format!("{host}.log"))).expect("a log");
        Running(command.stdout(log.try_clone().expect("a log")).stderr(log).spawn().expect("the binary starts"))
    }

    /// Waits until a node leads and has its Backup in sync.
    #[track_caller]
    fn protected(&self, host: &str, place: &Path) {
        let is_protected = || self.curl(host, "http://127.0.0.1:8440/metrics", None)?.contains("\nbodkin_pair_protected 1\n").then_some(());
        let log = |host: &str| fs::read_to_string(place.join(format!("{host}.log"))).unwrap_or_default();
        assert!(eventually_some(is_protected).is_some(), "{host} is not protected; {}\n{}", log(FIRST), log(SECOND));
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for (host, _) in ADDRESSES {
            // One that was not made is not there.
            let _ = Command::new("ip").args(["netns", "delete", &self.namespace(host)]).stderr(Stdio::null()).status();
        }
    }
}

/// A process; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Has the thread that moves the address end, whatever becomes of the test.
struct Enough<'e>(&'e AtomicBool);

impl Drop for Enough<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn who_knows_one_address_goes_on_when_it_moves_to_the_node_that_leads() {
    const NAME: &str = "who_knows_one_address_goes_on_when_it_moves_to_the_node_that_leads";
    if !has_namespaces() {
        return skip::note(NAME, "network namespaces cannot be made here");
    }
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip::note(NAME, "no curl is installed");
    }
    let place = tempfile::tempdir().expect("a directory");
    fs::write(place.path().join("bodkin.toml"), CONFIG).expect("written");
    let (hosts, is_enough) = (Hosts::lay(), AtomicBool::new(false));
    thread::scope(|scope| {
        let _enough = Enough(&is_enough);
        scope.spawn(|| hosts.move_address(&is_enough));
        let _witness = hosts.start(place.path(), CLIENT);
        let second = hosts.start(place.path(), SECOND);
        let first = hosts.start(place.path(), FIRST);
        hosts.protected(FIRST, place.path());
        let register = |name: &str| hosts.reached("8443/serviceregistry/register", Some(&service(name, system("sensor", 9000))));
        let went_on = |name: &str, since: Instant| {
            register(name);
            println!("{name}: the one address took a registration {:?} behind the fault", since.elapsed());
            hosts.reached("8455/eventhandler/publish", Some(&event("hot", system("sensor", 9000), name)));
            let known = hosts.reached("8443/serviceregistry/mgmt", None);
            for registered in ["before", name] {
                assert!(known.contains(registered), "{registered} was registered: {known}");
            }
            assert!(known.contains(&format!("\"{FLOATING}\"")), "core systems are registered at the one address: {known}");
            for (_, own) in ADDRESSES {
                assert!(!known.contains(&format!("\"{own}\"")), "no node is registered at its own address: {known}");
            }
        };
        went_on("before", Instant::now());

        // The process dies; its host gives the address up.
        let since = Instant::now();
        drop(first);
        went_on("killed", since);

        // It comes back, and then the host that leads loses its cable, and dies.
        let _first = hosts.start(place.path(), FIRST);
        hosts.protected(SECOND, place.path());
        let since = Instant::now();
        hosts.inside(CLIENT, &["link", "set", SECOND, "down"]);
        drop(second);
        went_on("lost", since);
        assert!(eventually(|| hosts.curl(FIRST, "http://127.0.0.1:8440/readyz", None).is_some()));
    });
}
