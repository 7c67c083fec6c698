//! Operators that fail, in graphs that run: what stands still, what goes on, and what is told.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_broker::graph::{Emission, Fault, Inputs, Operator, Shape, Trigger};
use bodkin_host::{
    HostConfig, Port, Server,
    graph::{DeclaredGraph, DeclaredGraphs, contain::is_contained},
};
use bodkin_operators::{
    Keys,
    catalogue::{Input, Kind, Made, Misfit},
    file,
    parameters::Parameters,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Tells endless steps to end, so that the test's process does: those of each test.
static ARE_OVER: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

fn wait(are_over: &AtomicBool) {
    while !are_over.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Gives what it takes; panics at 1, and does not end at 2 and 3.
struct Moody;

const KINDS: &[Kind] = &[Kind { name: "moody", inputs: 1..=1, trigger: Trigger::All, make }];

fn make(_: &mut Parameters, _: &[Input]) -> Result<Made, Misfit> {
    Ok(Made::new(Moody, Shape::NUMBER))
}

impl Operator for Moody {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        let payload = inputs.all()[0].payload;
        match f64::from_le_bytes(payload.try_into().expect("one number")) {
            1.0 => panic!("the operator is in a bad mood"),
            2.0 => wait(&ARE_OVER[0]),
            3.0 => wait(&ARE_OVER[1]),
            _ => {}
        }
        out.extend_from_slice(payload);
        Ok(Emission::Emit)
    }
}

/// From `NAME-in` to `NAME-out`, and from `NAME-in-2` to `NAME-out-2`, each by a core.
fn graph(name: &str) -> DeclaredGraph {
    let way = |end: &str| {
        format!(
            "[[supplier]]\ntopic = \"{name}-in{end}\"\nshape = \"f64\"\nperiod_ms = 1\n\
            [[operator]]\nname = \"moody{end}\"\nkind = \"moody\"\ninputs = [\"{name}-in{end}\"]\n[[output]]\ntopic = \"{name}-out{end}\"\nfrom = \"moody{end}\"\n"
        )
    };
    let text = format!("[graph]\nname = \"{name}\"\ncores = 2\n{}{}", way(""), way("-2"));
    let file = file::parse(&text, KINDS, |name| Ok(name.to_uppercase())).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    DeclaredGraph { place: name.to_owned(), file }
}

struct Cloud {
    server: Server,
    runtime: tokio::runtime::Runtime,
    _data: tempfile::TempDir,
}

impl Cloud {
    fn start(graphs: &[&str]) -> Self {
        // Whoever asks for the stack of every panic would wait for that of an operator's longer than for a step that does not end.
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| if is_contained() { eprintln!("{panic}") } else { told(panic) }));
        let data = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let graphs = DeclaredGraphs::new(graphs.iter().map(|name| graph(name)).collect(), Keys::default(), 1 << 16).unwrap();
        let config = HostConfig { graphs: Arc::new(graphs), ..HostConfig::on_loopback(data.path()) };
        let server = runtime.block_on(Server::start(&config)).unwrap();
        let cloud = Self { server, runtime, _data: data };
        let sensor = r#"{"systemName":"sensor","address":"127.0.0.1","port":1}"#;
        let registered = cloud.ask(Port::System(CoreSystem::ServiceRegistry), "POST", "/serviceregistry/register-system", sensor);
        assert!(registered.starts_with("HTTP/1.1 201"), "{registered}");
        cloud
    }

    fn address(&self, port: Port) -> SocketAddr {
        let at = Port::ALL.iter().position(|other| *other == port).expect("it is a port");
        self.server.addresses[at]
    }

    fn ask(&self, port: Port, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address(port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn publish(&self, event_type: &str, payload: &str) {
        let body = format!(
            r#"{{"eventType":"{event_type}","payload":"{payload}","source":{{"systemName":"sensor","address":"127.0.0.1","port":1}}}}"#
        );
        let answer = self.ask(Port::System(CoreSystem::EventHandler), "POST", "/eventhandler/publish", &body);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// Waits until an answer of the monitor's has this in it.
    #[track_caller]
    fn wait_for(&self, path: &str, expected: &str) {
        let begun = Instant::now();
        loop {
            let answer = self.ask(Port::Monitor, "GET", path, "");
            if answer.contains(expected) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "no {expected} in {answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Listens to an event type; gives the next line of data.
    fn listen(&self, event_type: &str) -> impl FnMut() -> String + use<> {
        let mut stream = TcpStream::connect(self.address(Port::System(CoreSystem::EventHandler))).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET /eventhandler/subscription?eventtype={event_type} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines().map(|line| line.expect("the stream goes on"));
        lines.find(|line| line.is_empty()).expect("a head");
        move || lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).expect("the stream goes on")
    }

    fn stop(self) {
        let Self { server, runtime, _data } = self;
        drop(runtime.block_on(server.stop()));
    }
}

#[test]
fn a_panic_stops_its_graph_and_nothing_else() {
    let cloud = Cloud::start(&["bad", "good"]);
    let (mut bad, mut good) = (cloud.listen("bad-out"), cloud.listen("good-out"));
    cloud.publish("bad-in", "5");
    assert_eq!(bad(), "5.0");
    cloud.publish("bad-in", "1");
    cloud.wait_for("/metrics", "\nbodkin_graph_suspended{graph=\"bad\"} 1\n");
    cloud.publish("bad-in", "6");
    cloud.publish("good-in", "7");
    assert_eq!(good(), "7.0");
    for line in [
        "bodkin_graph_suspended{graph=\"good\"} 0",
        "bodkin_graph_published_total{graph=\"bad\"} 1",
        "bodkin_graph_published_total{graph=\"good\"} 1",
        "bodkin_graph_refused_total{graph=\"bad\"} 1",
        "bodkin_graph_failed_total{graph=\"bad\"} 1",
    ] {
        cloud.wait_for("/metrics", &format!("\n{line}\n"));
    }
    cloud.wait_for("/readyz", "ready");
    cloud.stop();
}

#[test]
fn steps_that_do_not_end_stop_their_graphs_and_the_second_makes_the_process_unready() {
    let cloud = Cloud::start(&["first", "second", "third"]);
    cloud.publish("first-in", "2");
    cloud.wait_for("/metrics", "\nbodkin_graph_suspended{graph=\"first\"} 1\n");
    cloud.wait_for("/readyz", "HTTP/1.1 200");
    cloud.publish("second-in", "2");
    cloud.wait_for("/metrics", "\nbodkin_graph_suspended{graph=\"second\"} 1\n");
    cloud.wait_for("/readyz", "HTTP/1.1 503");
    let mut third = cloud.listen("third-out");
    cloud.publish("third-in", "-3.5");
    assert_eq!(third(), "-3.5", "what has a thread goes on");
    ARE_OVER[0].store(true, Relaxed);
    cloud.stop();
}

#[test]
fn two_steps_of_a_graph_that_do_not_end_count_as_two() {
    let cloud = Cloud::start(&["both"]);
    cloud.publish("both-in", "3");
    cloud.publish("both-in-2", "3");
    cloud.wait_for("/metrics", "\nbodkin_graph_suspended{graph=\"both\"} 1\n");
    cloud.wait_for("/readyz", "HTTP/1.1 503");
    ARE_OVER[1].store(true, Relaxed);
    cloud.stop();
}
