//! Certificates for many systems at once, on all cores.

use std::{
    num::NonZeroUsize,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use bodkin_arrowhead::utc::UtcTime;

use crate::{
    authority::Authority,
    directory::{Result, TrustDirectory},
    file::Sync as FileSync,
    issuance::{Found, Order, Standing},
};

/// Orders that one thread takes at a time: the lock and the ledger are asked for once for each such part.
const PART: usize = 16;

/// How far a batch is, or what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Issued.
    pub issued: usize,
    /// There already, and good.
    pub kept: usize,
}

impl TrustDirectory {
    /// Fills all orders, on all cores; what is there and good is kept, so that an interrupted batch goes on where it was. The files are
    /// not synced: after a loss of power run it again. `told` hears how far it is.
    pub fn ensure_all(&self, orders: &[Order], now: UtcTime, told: &(dyn Fn(Progress) + Sync)) -> Result<Progress> {
        let batch = Batch {
            directory: self,
            standing: self.standing(now)?,
            authority: self.authority()?,
            orders,
            now,
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            progress: Mutex::default(),
        };
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| batch.work(told))).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
        })?;
        Ok(*batch.progress.lock().expect("no worker panics"))
    }
}

struct Batch<'a> {
    directory: &'a TrustDirectory,
    standing: Standing,
    authority: Authority,
    orders: &'a [Order],
    now: UtcTime,
    /// The first order that no worker has taken.
    next: AtomicUsize,
    /// One worker's error ends them all.
    failed: AtomicBool,
    progress: Mutex<Progress>,
}

impl Batch<'_> {
    fn work(&self, told: &(dyn Fn(Progress) + Sync)) -> Result<()> {
        while !self.failed.load(Ordering::Relaxed) {
            let from = self.next.fetch_add(PART, Ordering::Relaxed);
            let Some(part) = self.orders.get(from..).filter(|rest| !rest.is_empty()) else { return Ok(()) };
            let done = self.part(&part[..part.len().min(PART)]).inspect_err(|_| self.failed.store(true, Ordering::Relaxed))?;
            let mut progress = self.progress.lock().expect("no worker panics");
            progress.issued += done.issued;
            progress.kept += done.kept;
            told(*progress);
        }
        Ok(())
    }

    fn part(&self, orders: &[Order]) -> Result<Progress> {
        let mut issued = Vec::with_capacity(orders.len());
        for order in orders {
            if let Found::Wanting(key) = self.standing.look(order)? {
                issued.push((order, order.issue(&self.authority, key, self.now)?));
            }
        }
        let delivered: Vec<_> = issued.iter().map(|(order, identity)| (*order, identity)).collect();
        if !delivered.is_empty() {
            self.directory.deliver(&delivered, self.now, FileSync::Later)?;
        }
        Ok(Progress { issued: issued.len(), kept: orders.len() - issued.len() })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bodkin_arrowhead::name::SystemName;

    use super::*;
    use crate::{
        example::{self, DAY, directory, now},
        issuance::KeyChoice,
    };

    fn orders(directory: &TrustDirectory, count: usize) -> Vec<Order> {
        let order = |number: usize| Order {
            system: SystemName::parse(&format!("load-{number}")).unwrap(),
            alternative_names: Vec::new(),
            lifetime: DAY,
            folder: Some(directory.systems()),
            key: KeyChoice::Shared(example::key()),
        };
        (0..count).map(order).collect()
    }

    #[test]
    fn an_interrupted_batch_goes_on_where_it_was() {
        let (_place, directory) = directory();
        let orders = orders(&directory, 3 * PART + 1);
        let first = directory.ensure_all(&orders[..PART + 2], now(), &|_| {}).unwrap();
        assert_eq!(first, Progress { issued: PART + 2, kept: 0 });
        // Not synced before the power went.
        fs::write(directory.system_files(&orders[3].system).0, "").unwrap();
        fs::remove_file(directory.system_files(&orders[5].system).1).unwrap();
        let heard = Mutex::new(0);
        let second = directory.ensure_all(&orders, now(), &|progress| *heard.lock().unwrap() = progress.issued + progress.kept).unwrap();
        assert_eq!(second, Progress { issued: 2 * PART + 1, kept: PART });
        assert_eq!(*heard.lock().unwrap(), orders.len());
        for order in &orders {
            let identity = directory.identity(&order.system).unwrap();
            assert_eq!(identity.certificate().system().unwrap().system, order.system);
        }
        assert_eq!(directory.ledger().unwrap().issued().len(), orders.len() + 2);
    }

    #[test]
    fn the_first_mistake_ends_it() {
        let (_place, directory) = directory();
        let mut orders = orders(&directory, 2 * PART);
        orders[1].alternative_names.push("no name".to_owned());
        assert!(directory.ensure_all(&orders, now(), &|_| {}).unwrap_err().to_string().contains("no name"));
    }
}
