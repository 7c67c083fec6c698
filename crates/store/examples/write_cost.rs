//! What a change costs: registrations a second, by how many callers ask at once. Each is new, and each is answered when it is on the disk.
//!
//! `cargo run --release -p bodkin-store --example write_cost -- [REGISTRATIONS] [DIRECTORY]`

use std::{env, path::PathBuf, time::Instant};

use bodkin_arrowhead::{
    form::{ServiceRegistryRequest, SystemRequest},
    name::NamingRules,
    service_registry::Registration,
    system::CoreSystemNames,
};
use bodkin_store::Store;

/// Callers that wait at once.
const CALLERS: [usize; 3] = [1, 16, 512];
/// Providers that the registrations are spread over.
const PROVIDERS: usize = 100;

fn main() {
    let mut arguments = env::args().skip(1);
    let registrations = arguments.next().map_or(20_000, |number| number.parse().expect("a number of registrations"));
    let directory = arguments.next().map_or_else(env::temp_dir, PathBuf::from);
    for callers in CALLERS {
        // One caller waits for each sync by itself.
        let registrations = if callers == 1 { registrations / 10 } else { registrations };
        println!("{callers} at once: {:.0} registrations/s", rate(&directory, registrations, callers));
    }
}

/// Registrations a second on a database that is empty at first.
fn rate(directory: &std::path::Path, registrations: usize, callers: usize) -> f64 {
    let place = tempfile::tempdir_in(directory).expect("a directory for the database");
    let opened = Store::open(place.path()).expect("it opens");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let each = registrations / callers;
    let begun = Instant::now();
    runtime.block_on(async {
        let mut tasks = Vec::with_capacity(callers);
        for caller in 0..callers {
            let store = opened.store.clone();
            tasks.push(tokio::task::spawn(async move {
                for number in caller * each..(caller + 1) * each {
                    let registration = registration(number);
                    store.write(move |draft| draft.register(registration).map(drop), |_, ()| ()).await.expect("it is registered");
                }
            }));
        }
        for task in tasks {
            task.await.expect("the caller runs to its end");
        }
    });
    let rate = (each * callers) as f64 / begun.elapsed().as_secs_f64();
    assert_eq!(opened.store.snapshot().entries().len(), each * callers);
    drop(runtime);
    opened.close();
    rate
}

fn registration(number: usize) -> Registration {
    let form = ServiceRegistryRequest {
        service_definition: Some(format!("service-{}", number / PROVIDERS)),
        provider_system: Some(SystemRequest {
            system_name: Some(format!("provider-{}", number % PROVIDERS)),
            address: Some("127.0.0.1".into()),
            port: Some(9000),
            ..Default::default()
        }),
        interfaces: Some(vec![Some("HTTP-INSECURE-JSON".into())]),
        ..Default::default()
    };
    Registration::parse(form, CoreSystemNames::Refused, &NamingRules::default(), "/cost").expect("the form is whole")
}
