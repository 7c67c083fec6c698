//! A place that serves one batch after the other, on one or several cores.

/// It serves in the order of arrival: whoever comes is begun as soon as a core is free.
#[derive(Clone, Debug)]
pub(super) struct Station {
    /// When each core is free.
    free_ns: Vec<u64>,
    /// What was asked of it since the count began.
    pub offered_ns: u64,
}

impl Station {
    /// One with so many cores.
    pub fn of(cores: u32) -> Self {
        Self { free_ns: vec![0; cores as usize], offered_ns: 0 }
    }

    /// Serves what comes now for so long; gives when that is over. Times do not go back.
    pub fn serve(&mut self, now_ns: u64, service_ns: u64) -> u64 {
        let free = self.free_ns.iter_mut().min().expect("a station has a core");
        *free = now_ns.max(*free) + service_ns;
        *free
    }

    /// Share of its time that was asked for; above 1 it falls behind.
    pub fn load(&self, within_ns: u64) -> f64 {
        self.offered_ns as f64 / (within_ns as f64 * self.free_ns.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_waits_for_the_core_that_is_free_first() {
        let mut station = Station::of(2);
        assert_eq!([station.serve(0, 10), station.serve(0, 30), station.serve(5, 10), station.serve(40, 1)], [10, 30, 20, 41]);
    }
}
