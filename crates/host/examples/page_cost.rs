//! What a page of the Service Registry costs: rows a second over one HTTP connection, from a registry of 100,000 services.
//!
//! `cargo run --release -p bodkin-host --example page_cost`

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Instant,
};

use bodkin_arrowhead::{
    form::{ServiceRegistryRequest, SystemRequest},
    name::NamingRules,
    service_registry::Registration,
    system::CoreSystemNames,
};
use bodkin_host::{HostConfig, Server};
use bodkin_store::Store;

const SERVICES: usize = 100_000;
/// Operations that wait for the database at the same time.
const WAITING_MAX: usize = 10_000;

fn main() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let started = Instant::now();
    fill(&runtime, data.path());
    println!("{SERVICES} services registered in {:.1} s", started.elapsed().as_secs_f64());
    let started = Instant::now();
    let server = runtime.block_on(Server::start(&HostConfig::on_loopback(data.path()))).expect("it starts");
    println!("started in {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
    let mut client = Client { stream: TcpStream::connect(server.addresses[0]).expect("a connection"), received: Vec::new() };
    for (parameters, items, pages) in [
        ("", 10, 10_000),
        ("", 100, 1000),
        ("", 1000, 100),
        ("&direction=DESC", 100, 1000),
        ("&sort_field=updatedAt", 1000, 20),
        ("&sort_field=updatedAt&direction=DESC", 100, 20),
    ] {
        measure(&mut client, parameters, items, pages);
    }
    drop(client);
    runtime.block_on(server.stop());
}

fn measure(client: &mut Client, parameters: &str, items: usize, pages: usize) {
    let started = Instant::now();
    let mut bytes = 0;
    // Evenly from the first page to the last.
    let step = (SERVICES / items / pages).max(1);
    for page in 0..pages {
        bytes += client.get(&format!("/serviceregistry/mgmt?page={}&item_per_page={items}{parameters}", page * step));
    }
    let seconds = started.elapsed().as_secs_f64();
    let rows = (pages * items) as f64;
    println!("{items:>5} a page {parameters:<40} {:>9.0} rows/s, {:>4} bytes a row", rows / seconds, bytes / (pages * items));
}

fn fill(runtime: &tokio::runtime::Runtime, data: &std::path::Path) {
    let opened = Store::open(data).expect("an empty store");
    let store = opened.store.clone();
    runtime.block_on(async move {
        let mut waiting = tokio::task::JoinSet::new();
        for index in 0..SERVICES {
            let (store, registration) = (store.clone(), registration(index));
            waiting.spawn(async move { store.write(|draft| draft.register(registration), |_, _| ()).await });
            if waiting.len() >= WAITING_MAX {
                waiting.join_next().await.expect("some are waiting").expect("no panic").expect("registered");
            }
        }
        while let Some(registered) = waiting.join_next().await {
            registered.expect("no panic").expect("registered");
        }
    });
    opened.close();
}

fn registration(index: usize) -> Registration {
    let form = ServiceRegistryRequest {
        service_definition: Some(format!("service-{}", index % 1000)),
        provider_system: Some(SystemRequest {
            system_name: Some(format!("provider-{index}")),
            address: Some(format!("10.{}.{}.{}", index >> 16, index >> 8 & 255, index & 255)),
            port: Some(8080),
            ..SystemRequest::default()
        }),
        service_uri: Some(format!("/service/{index}")),
        interfaces: Some(vec![Some("HTTP-INSECURE-JSON".into())]),
        ..ServiceRegistryRequest::default()
    };
    Registration::parse(form, CoreSystemNames::Refused, &NamingRules::default(), "page_cost").expect("a good form")
}

struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    /// The length of the answer's body, which is read and not looked at.
    fn get(&mut self, target: &str) -> usize {
        let address: SocketAddr = self.stream.peer_addr().expect("it is connected");
        let request = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        self.stream.write_all(request.as_bytes()).expect("it is sent");
        self.received.clear();
        let mut block = [0; 64 * 1024];
        loop {
            let count = self.stream.read(&mut block).expect("an answer");
            assert!(count > 0, "the connection was closed");
            self.received.extend_from_slice(&block[..count]);
            let Some(head) = self.received.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
            let text = std::str::from_utf8(&self.received[..head]).expect("a head is text");
            assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
            let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length").parse().expect("a number");
            if self.received.len() == head + 4 + length {
                return length;
            }
        }
    }
}
