//! The test against the formula at every instant, and against schedules that are played through.

use proptest::prelude::*;

use super::*;

fn task(deadline: i64, period: i64, cost: i64) -> Task {
    Task {
        deadline: Nanos::new(deadline).into(),
        level: Level::default(),
        job: Job::Dispatch,
        period: Nanos::new(period),
        jitter: Nanos::ZERO,
        transit_spread: Nanos::ZERO,
        cost: Nanos::new(cost),
    }
}

fn one(task: Task) -> Class {
    Class { task, count: 1 }
}

fn overrun(classes: &[Class], blocking: i64) -> Option<(i64, i64)> {
    let overrun = first_overrun(classes, Nanos::new(blocking))?;
    assert!(overrun.is_exact);
    Some((overrun.at.get(), overrun.demand.get()))
}

#[test]
fn jobs_that_fit_exactly_fit() {
    assert_eq!(overrun(&[one(task(10, 20, 10))], 0), None);
    assert_eq!(overrun(&[one(task(10, 20, 11))], 0), Some((10, 11)));
    assert_eq!(overrun(&[one(task(10, 20, 9))], 1), None);
    assert_eq!(overrun(&[one(task(10, 20, 9))], 2), Some((10, 11)));
    assert_eq!(overrun(&[], 5), None);
}

#[test]
fn a_job_that_is_due_later_may_be_in_the_way() {
    let (short, long) = (task(4, 10, 2), task(100, 100, 3));
    assert_eq!(overrun(&[one(short), one(long)], 0), Some((4, 5)));
    assert_eq!(overrun(&[one(task(5, 10, 2)), one(long)], 0), None);
    let endless = Task { deadline: Span::Infinite, ..long };
    assert_eq!(overrun(&[one(short), one(endless)], 0), Some((4, 5)), "what has no deadline is in the way as well");
    assert_eq!(overrun(&[one(endless)], 0), None);
}

#[test]
fn the_first_overrun_may_be_far_from_the_first_deadline() {
    // 3 of 5 and 4 of 11, due late: 4 at 6, then 3 more each 5 from 5 on.
    assert_eq!(overrun(&[one(task(5, 5, 3)), one(task(11, 11, 4))], 0), Some((5, 7)));
    assert_eq!(overrun(&[one(task(7, 5, 3)), one(task(13, 11, 4))], 0), None);
    assert_eq!(overrun(&[Class { task: task(50, 60, 1), count: 50 }], 0), None, "all due together");
    assert_eq!(overrun(&[Class { task: task(50, 60, 1), count: 51 }], 0), Some((50, 51)));
}

#[test]
fn declared_jitter_brings_jobs_together() {
    let jittery = Task { jitter: Nanos::new(10), ..task(10, 10, 4) };
    assert_eq!(overrun(&[one(jittery)], 0), None);
    assert_eq!(overrun(&[one(Task { cost: Nanos::new(6), ..jittery })], 0), Some((10, 12)));
}

#[test]
fn a_job_without_cost_still_has_to_come_to_its_turn() {
    assert_eq!(overrun(&[one(task(1, 10, 0)), one(task(9, 10, 1))], 0), None);
    assert_eq!(overrun(&[one(task(1, 10, 0)), one(task(9, 10, 2))], 0), Some((1, 2)));
}

#[test]
fn a_more_urgent_level_is_served_first_whatever_its_deadline() {
    let (urgent, lesser) = (Level::new(0).expect("first"), Level::new(1).expect("second"));
    let relaxed = Task { level: urgent, ..task(1_000, 10, 5) };
    let tight = Task { level: lesser, ..task(7, 100, 2) };
    assert_eq!(overrun(&[one(relaxed), one(Task { level: urgent, ..tight })], 0), None, "5 in the way and 2");
    // Behind the urgent level: 5 at 0, and then 2.
    let behind = |deadline: i64, cost: i64| Task { deadline: Nanos::new(deadline).into(), cost: Nanos::new(cost), ..tight };
    assert_eq!(overrun(&[one(relaxed), one(behind(6, 2))], 0), Some((6, 7)));
    assert_eq!(overrun(&[one(relaxed), one(behind(7, 2))], 0), None);
    assert_eq!(overrun(&[one(relaxed), one(behind(11, 5))], 0), None, "done when the next urgent one arrives");
    assert_eq!(overrun(&[one(relaxed), one(behind(11, 6))], 0), Some((11, 16)), "behind the next urgent one");
    let spread = Task { transit_spread: Nanos::new(4), ..relaxed };
    assert_eq!(overrun(&[one(spread), one(behind(7, 1))], 0), None);
    assert_eq!(overrun(&[one(spread), one(behind(7, 2))], 0), Some((7, 12)), "two that arrive 6 apart are both in front");
    let (at, demand) =
        overrun(&[one(Task { level: urgent, ..task(4, 100, 2) }), one(Task { level: lesser, ..relaxed })], 0).expect("blocked");
    assert_eq!((at, demand), (4, 7), "a lesser job is in the way once");
}

#[test]
fn a_walk_that_would_be_too_long_ends_as_an_overrun() {
    let coarse = one(task(1_450_000_000, 3_000_000_000, 1_400_000_000));
    let fine = one(Task { jitter: Nanos::new(1_700_000_000), ..task(2_900_000_000, 2, 1) });
    let found = Walk::behind(Vec::new(), 1_000).first_overrun(&[coarse, fine], Nanos::ZERO, Nanos::ZERO);
    let (at, demand, is_exact) = found.expect("told as one");
    assert!(!is_exact && demand > at, "{demand} of {at}");
    assert!(at > Nanos::new(2_900_000_000) && at < Nanos::new(2_900_003_000), "{at}");
}

/// The formula as it is written, at `t`, for the tasks of one level.
fn demand_at(classes: &[Class], blocking: i64, t: i64) -> i64 {
    let finite = |class: &Class| class.task.deadline.finite().map(Nanos::get);
    let due = classes.iter().filter_map(|class| {
        let passed = t - finite(class)?;
        (passed >= 0)
            .then(|| ((passed + class.task.jitter.get()) / class.task.period.get() + 1) * class.task.cost.get() * class.count as i64)
    });
    let later = classes.iter().filter(|class| finite(class).is_none_or(|deadline| deadline > t)).map(|class| class.task.cost.get());
    due.sum::<i64>() + later.max().unwrap_or(0) + blocking
}

/// Small tasks of one level, in even numbers, so that a job that is begun one unit earlier is begun before.
fn classes() -> impl Strategy<Value = Vec<Class>> {
    let class =
        (1i64..12, 2i64..12, 0i64..4, 1i64..4, 1u64..3, any::<bool>()).prop_map(|(deadline, period, jitter, cost, count, is_bound)| {
            let bound = task(2 * deadline * cost, 2 * period * cost, 2 * cost);
            let deadline = if is_bound { bound.deadline } else { Span::Infinite };
            Class { task: Task { jitter: Nanos::new(2 * jitter), deadline, ..bound }, count }
        });
    prop::collection::vec(class, 1..4).prop_filter("less than a core", |classes| load(classes) <= Load::percent(97))
}

fn load(classes: &[Class]) -> Load {
    classes.iter().map(Class::load).sum()
}

/// A job of a schedule.
#[derive(Clone, Copy, Debug)]
struct Released {
    at: i64,
    due: i64,
    cost: i64,
    level: Level,
}

/// Whether all jobs are done in time, by non-preemptive EDF inside levels, with one stall at the first decision from `stalls_at` on.
fn all_in_time(mut jobs: Vec<Released>, stalls_at: i64, stall: i64) -> bool {
    let (mut now, mut stall) = (jobs.iter().map(|job| job.at).min().unwrap_or(0), Some(stall));
    while !jobs.is_empty() {
        if now >= stalls_at {
            now += stall.take().unwrap_or(0);
        }
        let waiting = jobs.iter().enumerate().filter(|(_, job)| job.at <= now);
        match waiting.min_by_key(|(_, job)| (job.level, job.due)).map(|(index, _)| index) {
            Some(index) => {
                let job = jobs.swap_remove(index);
                now += job.cost;
                if now > job.due {
                    return false;
                }
            }
            None => now = jobs.iter().map(|job| job.at).min().expect("there is one"),
        }
    }
    true
}

/// Far enough for everything these small tasks can do.
const HORIZON: i64 = 600;

fn due(task: &Task, released: i64) -> i64 {
    task.deadline.finite().map_or(i64::MAX, |deadline| released + deadline.get())
}

/// The jobs of one task from `start` on: as close together as they may be, each later by what `slack` gives.
fn releases(task: &Task, start: i64, mut slack: impl FnMut() -> i64) -> Vec<Released> {
    let (mut jobs, mut nominal) = (Vec::new(), start);
    while nominal < start + HORIZON {
        let earliest = start.max(nominal - task.jitter.get());
        jobs.push(Released { at: earliest, due: due(task, earliest), cost: task.cost.get(), level: task.level });
        nominal += task.period.get() + slack();
    }
    jobs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Exactly where the formula first says so, or nowhere.
    #[test]
    fn the_first_overrun_is_that_of_the_formula(classes in classes(), blocking in 0i64..5) {
        let found = overrun(&classes, blocking);
        let first_due = classes.iter().filter_map(|class| class.task.deadline.finite()).min();
        let expected = first_due.and_then(|first| (first.get()..5_000).find(|t| demand_at(&classes, blocking, *t) > *t));
        prop_assert_eq!(found, expected.map(|t| (t, demand_at(&classes, blocking, t))));
    }

    /// What passes meets every deadline, whenever jobs come and the machine stalls; also on several levels.
    #[test]
    fn what_passes_is_never_late(
        classes in classes(),
        levels in prop::collection::vec(0u8..3, 4),
        blocking in 0i64..5,
        starts in prop::collection::vec(0i64..30, 8),
        slack in prop::collection::vec(prop_oneof![3 => Just(0i64), 1 => 0i64..9], 64),
        stalls_at in 0i64..40,
    ) {
        let classes: Vec<Class> = classes
            .iter()
            .zip(levels)
            .map(|(class, level)| Class { task: Task { level: Level::new(level).expect("of three"), ..class.task }, ..*class })
            .collect();
        prop_assume!(first_overrun(&classes, Nanos::new(blocking)).is_none());
        let mut slack = slack.iter().copied().cycle();
        let streams = classes.iter().flat_map(|class| std::iter::repeat_n(class.task, class.count as usize));
        let jobs: Vec<Released> =
            streams.zip(&starts).flat_map(|(task, start)| releases(&task, *start, || slack.next().expect("endless"))).collect();
        prop_assert!(all_in_time(jobs, stalls_at, blocking), "{:?}", classes);
    }

    /// What does not pass is late where the longest of the later jobs is begun just before all others come at once.
    #[test]
    fn what_does_not_pass_can_be_late(classes in classes(), blocking in (0i64..3).prop_map(|half| 2 * half)) {
        let Some((at, _)) = overrun(&classes, blocking) else { return Ok(()) };
        let later = classes.iter().enumerate().filter(|(_, class)| class.task.deadline > Nanos::new(at).into());
        let in_front = later.max_by_key(|(_, class)| class.task.cost).map(|(index, _)| index);
        let mut jobs = Vec::new();
        for (index, class) in classes.iter().enumerate() {
            for stream in 0..class.count {
                let is_begun = in_front == Some(index) && stream == 0;
                jobs.extend(releases(&class.task, if is_begun { -1 } else { 0 }, || 0).into_iter().take(if is_begun { 1 } else { usize::MAX }));
            }
        }
        prop_assert!(!all_in_time(jobs, 0, blocking), "{:?} at {}", classes, at);
    }
}
