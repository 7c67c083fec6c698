//! Places that other clouds have together, of which no cloud has all: one that asks for more than its share leaves room for the others.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many places, and how many of them one cloud may have. Clouds are told apart by their names, which their operator and ours have agreed on; keys a cloud could tell a new one of each time.
#[derive(Debug)]
pub struct Shares {
    all: Arc<Semaphore>,
    places_max: usize,
    of_one_max: usize,
    /// Those that have places, or wait for one.
    clouds: Mutex<BTreeMap<String, Weak<Semaphore>>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _of_one: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The cloud has its share: so many.
    OfOne(usize),
    /// All are taken: so many.
    OfAll(usize),
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfOne(count) => write!(f, "{count} of one cloud's"),
            Self::OfAll(count) => write!(f, "{count}"),
        }
    }
}

impl Shares {
    /// So many places, of which one cloud has at most so many.
    pub fn new(places_max: usize, of_one_max: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(places_max)), places_max, of_one_max, clouds: Mutex::default() }
    }

    /// A place for a cloud; whoever waits has its turn in order, of its cloud first and then of all.
    pub async fn take(&self, cloud: &str) -> Place {
        let open = "it is never closed";
        let of_one = self.of(cloud).acquire_owned().await.expect(open);
        Place { _of_one: of_one, _of_all: self.all.clone().acquire_owned().await.expect(open) }
    }

    /// A place for a cloud, if there is one now.
    ///
    /// # Errors
    /// Which limit is reached.
    pub fn try_take(&self, cloud: &str) -> Result<Place, Full> {
        let of_one = self.of(cloud).try_acquire_owned().map_err(|_| Full::OfOne(self.of_one_max))?;
        let of_all = self.all.clone().try_acquire_owned().map_err(|_| Full::OfAll(self.places_max))?;
        Ok(Place { _of_one: of_one, _of_all: of_all })
    }

    /// Why whoever waits for a place of a cloud waits.
    pub fn full(&self, cloud: &str) -> Full {
        if self.of(cloud).available_permits() == 0 { Full::OfOne(self.of_one_max) } else { Full::OfAll(self.places_max) }
    }

    /// Those of one cloud.
    fn of(&self, cloud: &str) -> Arc<Semaphore> {
        let mut clouds = self.clouds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = clouds.get(cloud).and_then(Weak::upgrade) {
            return known;
        }
        // No more than have or want a place.
        clouds.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.of_one_max));
        clouds.insert(cloud.to_owned(), Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn one_cloud_leaves_room_for_the_others() {
        let shares = Shares::new(5, 4);
        let greedy: Vec<Place> = (0..4).map(|_| shares.try_take("greedy").unwrap()).collect();
        assert_eq!((shares.try_take("greedy").unwrap_err(), shares.full("greedy")), (Full::OfOne(4), Full::OfOne(4)));
        let modest = shares.try_take("modest").unwrap();
        assert_eq!((shares.try_take("third").unwrap_err(), shares.full("third")), (Full::OfAll(5), Full::OfAll(5)));
        assert!(timeout(Duration::from_millis(20), shares.take("third")).await.is_err(), "it waits");
        drop(modest);
        timeout(Duration::from_secs(60), shares.take("third")).await.expect("there is room");
        drop(greedy);
        assert_eq!(shares.all.available_permits(), 5, "all come back");
    }

    #[tokio::test]
    async fn who_waits_for_its_own_clouds_places_takes_no_other_clouds() {
        let shares = Arc::new(Shares::new(2, 1));
        let first = shares.take("greedy").await;
        let waiting = tokio::spawn({
            let shares = shares.clone();
            async move { shares.take("greedy").await }
        });
        timeout(Duration::from_secs(60), shares.take("modest")).await.expect("another cloud has room");
        drop(first);
        timeout(Duration::from_secs(60), waiting).await.expect("its turn comes").unwrap();
    }

    #[test]
    fn clouds_that_are_gone_are_forgotten() {
        let shares = Shares::new(2, 1);
        for cloud in 0..100 {
            drop(shares.try_take(&cloud.to_string()).unwrap());
        }
        assert!(shares.clouds.lock().unwrap().len() <= 1);
    }
}
