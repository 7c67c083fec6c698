//! The addresses of subscribers that are registered by a host name.
//!
//! The system's resolver blocks a thread for as long as it likes, and goes on when nobody waits for it any more. Its threads are
//! those that read the event log and the database's files, so names that do not resolve must not take them all.

use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::Arc,
};

use tokio::sync::Semaphore;

/// Names that are looked up at the same time, an eighth of tokio's blocking threads; the others wait.
const LOOKUPS_MAX: usize = 64;

type Resolver = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// The places of those who look names up.
#[derive(Clone, Debug)]
pub struct Lookups {
    places: Arc<Semaphore>,
    resolver: Resolver,
}

impl Default for Lookups {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(LOOKUPS_MAX)), resolver: |host, port| Ok((host, port).to_socket_addrs()?.collect()) }
    }
}

impl Lookups {
    /// The addresses of a host, which may be an address itself. Waits for a place and for the resolver; give it a time limit.
    pub async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let place = self.places.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (host, resolver) = (host.to_owned(), self.resolver);
        let looked_up = tokio::task::spawn_blocking(move || {
            let found = resolver(&host, port);
            // Here and not when the caller has had enough: the thread is taken until now.
            drop(place);
            found
        });
        looked_up.await.unwrap_or_else(|_| Err(io::Error::other("the local cloud is shutting down")))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Condvar, Mutex},
        time::Duration,
    };

    use tokio::time::timeout;

    use super::*;

    const PORT: u16 = 80;
    static ANSWERS: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

    /// Finds nothing before it is let.
    fn slow(_: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        drop(ANSWERS.1.wait_while(ANSWERS.0.lock().unwrap(), |answers| !*answers));
        Ok(vec![SocketAddr::from(([192, 0, 2, 1], port))])
    }

    #[test]
    fn names_that_do_not_resolve_take_no_more_than_their_threads() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4).build().unwrap();
        let lookups = Lookups { places: Arc::new(Semaphore::new(3)), resolver: slow };
        let soon = Duration::from_millis(20);
        runtime.block_on(async {
            for _ in 0..10 {
                assert!(timeout(soon, lookups.addresses("nowhere.example", PORT)).await.is_err());
            }
            assert_eq!(lookups.places.available_permits(), 0, "who has given up still has a thread");
            let address = lookups.addresses("192.0.2.7", PORT).await.unwrap();
            assert_eq!(address, ["192.0.2.7:80".parse().unwrap()], "an address needs none");
            tokio::task::spawn_blocking(|| *ANSWERS.0.lock().unwrap() = true).await.expect("a thread is left to others");
            ANSWERS.1.notify_all();
            assert_eq!(lookups.addresses("somewhere.example", PORT).await.unwrap(), ["192.0.2.1:80".parse().unwrap()]);
            let all = timeout(Duration::from_secs(10), lookups.places.acquire_many(3)).await;
            assert!(all.is_ok(), "every thread is given back");
        });
    }

    #[test]
    fn a_name_is_looked_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let found = runtime.block_on(Lookups::default().addresses("localhost", PORT)).unwrap();
        assert!(found.iter().any(|address| address.ip().is_loopback() && address.port() == PORT), "{found:?}");
    }
}
