//! For how long other clouds are asked.

use std::time::Duration;

use tokio::time::Instant;

/// Silent clouds that one request waits for, each an equal share of its time; what is left is never split further, so that whoever is asked has time to answer.
const SILENT_MAX: u32 = 8;

/// The time that all other clouds have together that one request asks: that of one dialogue, in which a cloud has [`neighbor_timeout`](crate::Limits::neighbor_timeout)
/// to be heard and as long to answer. It is made once for a request, and parts of it are handed on.
#[derive(Clone, Copy, Debug)]
pub struct AskingTime {
    until: Instant,
    /// Of the request.
    whole: Duration,
    /// The shortest part of it that a cloud is asked in.
    least: Duration,
}

impl AskingTime {
    /// That of a request which comes now; `patience` is what each step of a dialogue may take.
    pub fn begin(patience: Duration) -> Self {
        Self::begin_at(Instant::now(), patience)
    }

    fn begin_at(now: Instant, patience: Duration) -> Self {
        let whole = patience * 2;
        // Half of the time may be gone for finding out whom to ask.
        Self { until: now + whole, whole, least: whole / SILENT_MAX / 2 }
    }

    /// How long it was at the request's beginning.
    pub fn whole(&self) -> Duration {
        self.whole
    }

    /// When it is over.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// When a wait is over that begins now and may last so long at the most.
    pub(super) fn wait(&self, at_most: Duration) -> Instant {
        self.until.min(Instant::now() + at_most)
    }

    /// Half of what is left: for finding out whom to go on with, so that there is time for that.
    pub fn half(&self) -> Self {
        self.half_at(Instant::now())
    }

    fn half_at(&self, now: Instant) -> Self {
        Self { until: now + self.left_at(now) / 2, ..*self }
    }

    /// The next cloud's part, where so many are still to be asked one after the other, the next among them; `None`: there is not enough left to ask anybody.
    pub fn share(&self, clouds: usize) -> Option<Self> {
        self.share_at(Instant::now(), clouds)
    }

    fn share_at(&self, now: Instant, clouds: usize) -> Option<Self> {
        let left = self.left_at(now);
        let part = (left / u32::try_from(clouds.max(1)).unwrap_or(u32::MAX)).max(self.least);
        // In a part it may be found out first whether there is anything to ask for.
        (left >= self.least).then(|| Self { until: now + part, least: part / 4, ..*self })
    }

    fn left_at(&self, now: Instant) -> Duration {
        self.until.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn all_clouds_have_the_time_of_one_together() {
        let begun = Instant::now();
        let time = AskingTime::begin_at(begun, PATIENCE);
        // Who is found in half of it is negotiated with in the other half.
        let looking = time.half_at(begun);
        assert_eq!((looking.left_at(begun), looking.whole()), (PATIENCE, PATIENCE * 2));
        let found = begun + PATIENCE;
        assert_eq!((looking.left_at(found), time.left_at(found)), (Duration::ZERO, PATIENCE));
        assert_eq!(time.share_at(found, 3).unwrap().left_at(found), PATIENCE / 3);
        let later = found + PATIENCE / 3;
        assert_eq!(time.share_at(later, 2).unwrap().left_at(later), PATIENCE / 3);
        assert_eq!(time.share_at(later, 1).unwrap().left_at(later), PATIENCE * 2 / 3, "the last one has what is left");
        // A wait is no longer than it may be, and ends with the time.
        assert!(time.wait(Duration::ZERO) < time.until && time.wait(PATIENCE * 3) == time.until);
    }

    #[test]
    fn who_is_asked_has_time_to_answer_and_the_others_are_not_asked() {
        let mut now = Instant::now();
        let time = AskingTime::begin_at(now, PATIENCE).half_at(now);
        let mut asked = 0;
        while let Some(share) = time.share_at(now, 1_000 - asked) {
            assert_eq!(share.left_at(now), PATIENCE / SILENT_MAX);
            now = share.until;
            asked += 1;
        }
        assert_eq!((asked, time.left_at(now)), (8, Duration::ZERO));
        assert!(time.share_at(now, 1).is_none());
    }

    #[test]
    fn in_a_part_of_the_time_a_cloud_is_looked_for_and_then_asked() {
        let now = Instant::now();
        let part = AskingTime::begin_at(now, PATIENCE).share_at(now, 1_000).unwrap();
        let found = part.half_at(now).until;
        let asking = part.share_at(found, 1).unwrap();
        assert_eq!((part.left_at(now), asking.left_at(found)), (PATIENCE / SILENT_MAX, PATIENCE / SILENT_MAX / 2));
    }
}
