//! What is read from keys and values, and what is told about wrong ones.

use super::*;

/// `key value` a word each, as a format would hand them over: quoted texts, booleans, anything else a number.
fn fields(line: &str) -> Vec<(&str, Field<'_>)> {
    let mut words = line.split_whitespace();
    std::iter::from_fn(|| {
        let (key, value) = (words.next()?, words.next()?);
        let field = match value {
            "true" | "false" => Field::Boolean(value == "true"),
            "[]" => Field::Other,
            _ => value.strip_prefix('\'').map_or(Field::Number(value), Field::Text),
        };
        Some((key, field))
    })
    .collect()
}

fn topic(line: &str) -> TopicForm {
    read_topic(fields(line), &Platform::default()).unwrap_or_else(|errors| panic!("{line}: {errors:?}"))
}

fn platform(line: &str) -> Platform {
    read_platform(fields(line)).unwrap_or_else(|errors| panic!("{line}: {errors:?}"))
}

#[track_caller]
fn refused<T>(read: Result<T, Vec<FormError>>, expected: &[&str]) {
    let told: Vec<String> = read.err().unwrap_or_default().iter().map(FormError::to_string).collect();
    assert_eq!(told, expected);
}

#[test]
fn a_topic_with_every_key() {
    let read = topic(
        "period_ms 100 deadline_us 50000.5 loss_tolerance 3 shed_max 1 retention 2 mark_every 4 jitter_ms 0.25 level 7 publisher_broker_us 1 \
        broker_subscriber_min_ms 1 broker_subscriber_max_s 0.02 replica_cost_us 3 dispatch_cost_us 2.001 coverage 'host durable true fleet true \
        publishers 5 required_for_max_s 60 count 1000",
    );
    let expected = TopicSpec {
        period: Period::Every(Nanos::from_millis(100)),
        deadline: Nanos::new(50_000_500).into(),
        loss_tolerance: LossTolerance::AtMost(3),
        shed_max: 1,
        retention: 2,
        mark_every: NonZeroU32::new(4).expect("four"),
        jitter: Nanos::from_micros(250),
        level: Level::new(7).expect("the last"),
        publisher_broker: Nanos::from_micros(1),
        broker_subscriber_min: Nanos::from_millis(1),
        broker_subscriber_max: Nanos::from_millis(20),
        replica_cost: Nanos::from_micros(3),
        dispatch_cost: Nanos::new(2_001),
        coverage: Coverage::Host,
        durable: true,
        fleet: true,
        publishers: NonZeroU32::new(5).expect("five"),
        required_for_max: Nanos::from_millis(60_000),
    };
    assert_eq!(read, TopicForm { spec: expected, count: 1_000 });
}

#[test]
fn topic_overrides_the_platforms_longest_wait() {
    let platform = platform("required_for_max_s 30");
    let wait = |line: &str| read_topic(fields(line), &platform).expect("it is right").spec.required_for_max;
    assert_eq!([wait("period_s 1"), wait("period_s 1 required_for_max_ms 5")], [Nanos::from_millis(30_000), Nanos::from_millis(5)]);
    refused(read_platform(fields("required_for_max_s 86401")), &["required_for_max_s must be at most 86400 s"]);
}

#[test]
fn what_is_left_out_is_best_effort() {
    let read = topic("period_s 1");
    assert_eq!(read, TopicForm { spec: TopicSpec::best_effort(Period::Every(Nanos::from_millis(1_000))), count: 1 });
    assert_eq!(topic("period_s 1 deadline_ms inf loss_tolerance 'inf"), read);
    assert_eq!(topic("period_ms inf gap_min_ms 5").spec.period, Period::Rare { gap_min: Nanos::from_millis(5) });
    assert_eq!(topic("period_s 1 broker_subscriber_min_ms 2").spec.broker_subscriber_max, Nanos::from_millis(2));
    let far = Platform { publisher_broker_min: Nanos::from_millis(3), ..Platform::default() };
    let read = read_topic(fields("period_s 1"), &far).expect("it is right");
    assert_eq!(read.spec.publisher_broker, Nanos::from_millis(3));
}

#[test]
fn a_platform_states_its_fail_over_or_has_the_one_that_is_shipped() {
    assert_eq!(platform(""), Platform { lease: LeaseTimes::SHIPPED, ..Platform::default() });
    assert_eq!(platform("cores 2").lease, LeaseTimes::SHIPPED);
    assert_eq!((platform("failover_ms 50").lease, platform("failover_ms 50").failover()), (LeaseTimes::default(), Nanos::from_millis(50)));
    let computed = platform("lease_ms 20 heartbeat_ms 5 drift_ppm 200 detect_jitter_ms 6 redirect_ms 4");
    assert_eq!((computed.failover, computed.failover()), (None, Nanos::from_micros(35_004)));
}

#[test]
fn a_wrong_key_or_value_is_told_as_it_was_written() {
    let cases: &[(&str, &[&str])] = &[
        ("", &["period_ms is missing"]),
        ("period_ms 0", &["period_ms must be greater than 0"]),
        ("period_us -1", &["period_us must be greater than 0"]),
        ("period 5", &["period needs its unit: period_us, period_ms or period_s", "period_ms is missing"]),
        ("period_ms 5 period_us 5", &["period_us says again what period_ms says"]),
        ("period_ms 'soon", &["period_ms must be a number or inf"]),
        ("period_ms 0.0000001", &["period_ms must be a whole number of nanoseconds: it has more decimals than that"]),
        ("period_ms inf", &["gap_min_ms is missing: rare events (period = inf) are policed by their least gap"]),
        ("period_ms inf gap_min_us 0", &["gap_min_us must be greater than 0"]),
        ("period_ms 5 gap_min_us 2", &["gap_min_us goes with period = inf only: otherwise the period is the least gap"]),
        ("period_ms 5 periode_ms 5 retention -1", &["periode_ms is no key here", "retention must be 0 to 4294967295"]),
        ("period_ms 5 lease_ms 5", &["lease_ms is no key here"]),
        ("period_ms 5 retention 1.5", &["retention must be a whole number"]),
        ("period_ms 5 mark_every 0", &["mark_every must be 1 to 4294967295"]),
        ("period_ms 5 level 8", &["level must be 0 to 7"]),
        ("period_ms 5 jitter_ms inf", &["jitter_ms must be a number, not inf"]),
        ("period_ms 5 deadline_ms true", &["deadline_ms must be a number or inf"]),
        ("period_ms 5 deadline_ms -3", &["deadline_ms must be greater than 0; leave it out where there is none"]),
        ("period_ms 5 deadline_us 0", &["deadline_us must be greater than 0; leave it out where there is none"]),
        ("period_ms 5 jitter_ms -1", &["jitter_ms must not be negative"]),
        ("period_ms 5 shed_max 4 loss_tolerance 3", &["shed_max must be 0 to 3"]),
        ("period_ms 5 deadline_s 1e9", &["deadline_s must be at most 366 days"]),
        ("period_ms 5 loss_tolerance 'some", &["loss_tolerance must be a whole number or inf"]),
        ("period_ms 5 coverage 'weak", &["coverage must be \"acknowledged\" or \"host\""]),
        ("period_ms 5 durable 1", &["durable must be true or false"]),
        ("period_ms 5 count 0 publishers 0", &["publishers must be 1 to 10000", "count must be 1 to 1000000"]),
        ("period_ms 5 count []", &["count must be a whole number"]),
        (
            "period_ms 5 broker_subscriber_min_ms 2 broker_subscriber_max_us 1",
            &["broker_subscriber_max_us must be at least broker_subscriber_min, which is 2 ms"],
        ),
    ];
    for (line, expected) in cases {
        refused(read_topic(fields(line), &Platform::default()), expected);
    }
    let far = Platform { publisher_broker_min: Nanos::from_millis(3), ..Platform::default() };
    let nearer = read_topic(fields("period_ms 5 publisher_broker_ms 1"), &far);
    refused(nearer, &["publisher_broker_ms must be at least publisher_broker_min, which is 3 ms"]);
    let cases: &[(&str, &[&str])] = &[
        ("lease_ms -1", &["lease_ms must not be negative"]),
        ("cores 0 drift_ppm 1e6", &["drift_ppm must be 0 to 100000", "cores must be 1 to 1024"]),
        ("load_max_percent 100", &["load_max_percent must be 1 to 99"]),
        ("period_ms 1", &["period_ms is no key here"]),
    ];
    for (line, expected) in cases {
        refused(read_platform(fields(line)), expected);
    }
}

#[test]
fn every_key_is_named_for_who_looks_for_the_nearest() {
    let all = |read: &dyn Fn(&str) -> bool, keys: &[String]| keys.iter().all(|key| read(key));
    let topic: Vec<String> = topic_keys().collect();
    let platform: Vec<String> = platform_keys().collect();
    let unknown = |errors: Vec<FormError>| errors.iter().any(|error| error.problem == FormProblem::Unknown);
    let known = |key: &str| !read_topic([(key, Field::Other)], &Platform::default()).err().is_some_and(unknown);
    assert!(all(&known, &topic) && topic.len() == 20, "{topic:?}");
    let known = |key: &str| !read_platform([(key, Field::Other)]).err().is_some_and(unknown);
    assert!(all(&known, &platform) && platform.len() == 16, "{platform:?}");
}

#[test]
fn a_wish_is_read_to_the_nanosecond_and_says_what_it_leaves_open() {
    let read = |text| read_wish(fields(text)).map_err(|errors| errors.iter().map(FormError::to_string).collect::<Vec<_>>());
    assert_eq!(read(""), Ok(Wish::default()));
    let wish = Wish { deadline: Some(Nanos::new(50_500)), loss_tolerance: Some(LossTolerance::AtMost(3)) };
    assert_eq!(read("deadline_us 50.5 loss_tolerance 3"), Ok(wish));
    assert_eq!(read("loss_tolerance inf"), Ok(Wish { deadline: None, loss_tolerance: Some(LossTolerance::Any) }));
    assert_eq!(read("deadline_ms inf"), Err(vec!["deadline_ms must be a number, not inf".to_owned()]));
    assert_eq!(read("deadline_ms 1 deadline_us 1"), Err(vec!["deadline_us says again what deadline_ms says".to_owned()]));
    assert_eq!(read("deadline_ms 0"), Err(vec!["deadline_ms must be greater than 0; leave it out where there is none".to_owned()]));
    assert_eq!(read("deadline_s 1e9"), Err(vec!["deadline_s must be at most 366 days".to_owned()]));
    assert_eq!(read("period_ms 1"), Err(vec!["period_ms is no key here".to_owned()]));
}
