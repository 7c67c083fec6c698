//! `bodkin model fleet`: many edges that forward events to JetStream, and which part of that is full first.

use std::thread;

use bodkin_simulator::fleet::{ClusterTerms, EdgeTerms, Fleet, FleetReport, Line, NoFleet};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::{
    DONE, FAILED, USAGE,
    cli::{details::Details, printer::Printer, table::Table, write_out},
};

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;

/// Options of `bodkin model fleet`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "What a batch costs at each place is asked for; the defaults are assumptions of the size that a small server has, and no measurement.\n\
    Exit codes: 0 everything keeps up, 1 something is asked for more than it can do, 2 a number cannot be."
)]
pub struct FleetOptions {
    /// Edges, all alike
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    edges: u32,
    /// Topics of each
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    topics: u32,
    /// Milliseconds between two events of a topic
    #[arg(long, value_name = "MS", default_value_t = 1_000)]
    period_ms: u64,
    /// Bytes of an event in a batch
    #[arg(long, value_name = "BYTES", default_value_t = 128)]
    event_bytes: u32,
    /// Bytes at which a batch is sent
    #[arg(long, value_name = "BYTES", default_value_t = 65_536)]
    batch_bytes: u32,
    /// Milliseconds after which a batch is sent
    #[arg(long, value_name = "MS", default_value_t = 10)]
    batch_ms: u64,
    /// Batches of an edge that may be under way
    #[arg(long, value_name = "N", default_value_t = 64)]
    window: u32,
    /// Processor time of an edge for an event, in nanoseconds
    #[arg(long, value_name = "NS", default_value_t = 500)]
    event_ns: u64,
    /// Processor time of an edge for a batch, in microseconds
    #[arg(long, value_name = "US", default_value_t = 20)]
    edge_batch_us: u64,
    /// Megabits a second of an edge's uplink
    #[arg(long, value_name = "MBIT", default_value_t = 100)]
    uplink_mbit: u64,
    /// Milliseconds from an edge to the servers' site
    #[arg(long, value_name = "MS", default_value_t = 10)]
    uplink_ms: u64,
    /// Megabits a second of the line that all edges share at the site
    #[arg(long, value_name = "MBIT", default_value_t = 10_000)]
    site_mbit: u64,
    /// Servers
    #[arg(long, value_name = "N", default_value_t = 3)]
    servers: u32,
    /// Streams, spread over the servers
    #[arg(long, value_name = "N", default_value_t = 3)]
    streams: u32,
    /// Servers that have each stream
    #[arg(long, value_name = "N", default_value_t = 3)]
    replicas: u32,
    /// Cores of each server
    #[arg(long, value_name = "N", default_value_t = 2)]
    server_cores: u32,
    /// Processor time of a server for a batch, in microseconds
    #[arg(long, value_name = "US", default_value_t = 40)]
    server_batch_us: u64,
    /// Processor time of a server for a KiB of it, in microseconds
    #[arg(long, value_name = "US", default_value_t = 1)]
    server_kib_us: u64,
    /// Microseconds until a server's disk has synced a batch (sync_interval: always); 0: nobody waits for it
    #[arg(long, value_name = "US", default_value_t = 200)]
    sync_us: u64,
    /// Seconds to simulate
    #[arg(long, value_name = "S", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Decides all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// A fleet with one thing changed, and what it would do.
struct Variant {
    change: String,
    fleet: Fleet,
}

#[derive(Serialize)]
struct VariantReport {
    change: String,
    first_limit: &'static str,
    load: f64,
    edges_max: u64,
    p99_ms: f64,
}

impl FleetOptions {
    fn fleet(&self) -> Fleet {
        let line = |mbit: u64, ms: u64| Line { bytes_per_s: mbit.saturating_mul(125_000), delay_ns: ms.saturating_mul(MS) };
        let edge = EdgeTerms {
            topics: self.topics,
            period_ns: self.period_ms.saturating_mul(MS),
            event_bytes: self.event_bytes,
            batch_bytes_max: self.batch_bytes,
            batch_delay_ns: self.batch_ms.saturating_mul(MS),
            window: self.window,
            event_ns: self.event_ns,
            batch_ns: self.edge_batch_us * US,
            uplink: line(self.uplink_mbit, self.uplink_ms),
        };
        let cluster = ClusterTerms {
            servers: self.servers,
            streams: self.streams,
            replicas: self.replicas,
            cores: self.server_cores,
            batch_ns: self.server_batch_us * US,
            kib_ns: self.server_kib_us * US,
            sync_ns: self.sync_us * US,
            site: line(self.site_mbit, 0),
            between_ns: 200 * US,
        };
        Fleet { edges: self.edges, edge, cluster }
    }
}

/// What could be changed, each by itself.
fn variants(fleet: &Fleet) -> Vec<Variant> {
    let Fleet { edge, cluster, .. } = *fleet;
    let with_edge = |change: String, edge: EdgeTerms| Variant { change, fleet: Fleet { edge, ..*fleet } };
    let with_cluster = |change: String, cluster: ClusterTerms| Variant { change, fleet: Fleet { cluster, ..*fleet } };
    let (delay_ns, servers) = (10 * edge.batch_delay_ns, 3 * cluster.servers);
    vec![
        Variant { change: "as it is".to_owned(), fleet: *fleet },
        with_edge(format!("batches of {} ms", delay_ns / MS), EdgeTerms { batch_delay_ns: delay_ns, ..edge }),
        with_cluster(
            format!("{servers} servers and as many streams"),
            ClusterTerms { servers, streams: cluster.streams.max(servers), ..cluster },
        ),
        with_cluster("one replica".to_owned(), ClusterTerms { replicas: 1, ..cluster }),
        with_cluster("disks that sync in a tenth".to_owned(), ClusterTerms { sync_ns: cluster.sync_ns / 10, ..cluster }),
        with_cluster("nobody waits for disks".to_owned(), ClusterTerms { sync_ns: 0, ..cluster }),
        with_cluster(format!("{} cores a server", 4 * cluster.cores), ClusterTerms { cores: 4 * cluster.cores, ..cluster }),
    ]
}

/// Simulates and prints; gives the exit code.
pub fn run(options: &FleetOptions, printer: Printer) -> anyhow::Result<u8> {
    let fleet = options.fleet();
    let variants = variants(&fleet);
    let time_ns = options.seconds * 1_000 * MS;
    if let Err(mistake) = fleet.check() {
        eprintln!("bodkin: {mistake}");
        return Ok(USAGE);
    }
    let reports = thread::scope(|scope| {
        let runs: Vec<_> = variants.iter().map(|variant| scope.spawn(move || variant.fleet.run(options.seed, time_ns))).collect();
        runs.into_iter().map(|run| run.join().expect("a run does not panic")).collect::<Vec<Result<FleetReport, NoFleet>>>()
    });
    // A change that cannot be, such as more servers than there may be, is left out.
    let found: Vec<(&Variant, FleetReport)> =
        variants.iter().zip(reports).filter_map(|(variant, report)| Some((variant, report.ok()?))).collect();
    let (_, whole) = &found[0];
    let rows: Vec<VariantReport> = found.iter().map(|(variant, report)| row(variant, report)).collect();
    if printer.is_json() {
        printer.document(&document(whole, &rows))?;
    } else {
        print(&fleet, whole, &rows, printer)?;
    }
    Ok(if whole.loads[0].load < 1.0 { DONE } else { FAILED })
}

fn row(variant: &Variant, report: &FleetReport) -> VariantReport {
    let first = report.loads[0];
    VariantReport {
        change: variant.change.clone(),
        first_limit: first.station,
        load: first.load,
        edges_max: report.edges_max(variant.fleet.edges),
        p99_ms: report.latency.p99_ns as f64 / MS as f64,
    }
}

fn document(whole: &FleetReport, rows: &[VariantReport]) -> serde_json::Value {
    let ms = |ns: u64| ns as f64 / MS as f64;
    json!({
        "made_per_s": whole.made_per_s,
        "acknowledged_per_s": whole.acknowledged_per_s,
        "latency_ms": {"p50": ms(whole.latency.p50_ns), "p99": ms(whole.latency.p99_ns), "max": ms(whole.latency.max_ns)},
        "growth_events": whole.growth,
        "loads": whole.loads.iter().map(|load| json!({"station": load.station, "load": load.load})).collect::<Vec<_>>(),
        "variants": rows,
    })
}

fn print(fleet: &Fleet, whole: &FleetReport, rows: &[VariantReport], printer: Printer) -> anyhow::Result<()> {
    let ms = |ns: u64| format!("{:.1} ms", ns as f64 / MS as f64);
    let details = Details::default()
        .with("edges", fleet.edges)
        .with("events made", format!("{:.0}/s", whole.made_per_s))
        .with("acknowledged", format!("{:.0}/s", whole.acknowledged_per_s))
        .with(
            "event to acknowledgement",
            format!("p50 {}, p99 {}, longest {}", ms(whole.latency.p50_ns), ms(whole.latency.p99_ns), ms(whole.latency.max_ns)),
        )
        .with(if whole.growth < 0 { "fewer waiting at the end" } else { "more waiting at the end" }, whole.growth.unsigned_abs());
    write_out(&format!("{details}\n"))?;
    let mut loads = Table::new(&["PART", "LOAD OF THE FULLEST", ""]);
    for load in &whole.loads {
        let told = if load.load >= 1.0 { "falls behind" } else { "" };
        loads.push([load.station.to_owned(), format!("{:.2} %", load.load * 100.0), told.to_owned()]);
    }
    printer.table(&loads, "no parts")?;
    write_out("\n")?;
    let mut table = Table::new(&["CHANGE", "FULL FIRST", "LOAD", "EDGES THAT IT CARRIES", "P99"]);
    for row in rows {
        let load = format!("{:.2} %", row.load * 100.0);
        table.push([row.change.clone(), row.first_limit.to_owned(), load, row.edges_max.to_string(), format!("{:.1} ms", row.p99_ms)]);
    }
    printer.table(&table, "no changes")?;
    Ok(())
}
