//! Turns of the work with RSA keys that messages between clouds need: as many at the same time as there are processors, in the order in which they are asked for
//! (decision 116).

use std::{num::NonZero, sync::LazyLock, thread::available_parallelism};

use tokio::{
    sync::Semaphore,
    task::{JoinError, spawn_blocking},
};

/// A place for each processor, of the whole process.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(processors()));

fn processors() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Seals or opens, off the threads that carry others, when it is its turn. Whoever does not wait any more has given up the turn, unless it has come.
///
/// # Errors
/// The runtime stops.
pub(crate) async fn in_turn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    let place = PLACES.acquire().await.expect("the places are never closed");
    spawn_blocking(move || {
        let done = work();
        drop(place);
        done
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn no_more_work_is_done_at_the_same_time_than_there_are_processors() {
        let (at_work, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let mut all = JoinSet::new();
        for number in 0..100 {
            let (at_work, most) = (at_work.clone(), most.clone());
            all.spawn(in_turn(move || {
                most.fetch_max(at_work.fetch_add(1, SeqCst) + 1, SeqCst);
                std::thread::yield_now();
                at_work.fetch_sub(1, SeqCst);
                number
            }));
        }
        let mut done: Vec<i32> = all.join_all().await.into_iter().map(|done| done.expect("nothing stops here")).collect();
        done.sort_unstable();
        assert_eq!(done, (0..100).collect::<Vec<_>>());
        assert!((1..=processors()).contains(&most.load(SeqCst)), "{most:?} at the same time");
    }
}
