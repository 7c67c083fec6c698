//! How long tokens take, computed: against closed forms, against Little's law and against the simulator, which has the order of tokens in its own way.

mod nets;

use bodkin_petri::{
    distribution::{Distribution, Erlang, Exponential, HyperExponential, Uniform},
    measure::Measure,
    net::{Firing, Net, Servers, Transition},
    simulate::{self, Tag, TagStart, simulate},
    solve::{
        self, When,
        response::{Begin, Question, ResponseTime},
    },
    states::STATES_MAX_DEFAULT,
};
use nets::{exponential, net, timed};

const ERROR: f64 = 1e-9;
const TIMES: [f64; 7] = [0.0, 0.1, 0.5, 1.0, 3.0, 10.0, 40.0];

fn exponential_law(rate: f64) -> Distribution {
    Distribution::Exponential(Exponential::new(rate).expect("it is right"))
}

fn erlang_law(shape: u32, rate: f64) -> Distribution {
    Distribution::Erlang(Erlang::new(shape, rate).expect("it is right"))
}

fn servers(count: u32) -> Servers {
    Servers::Count(count.try_into().expect("not 0"))
}

fn immediate(name: &str, inputs: &[usize], outputs: &[usize]) -> Transition {
    let timed = exponential(name, 1.0, inputs, outputs);
    Transition { firing: Firing::Immediate { priority: 1, weight: 1.0 }, ..timed }
}

/// A queue with room for `room` and these servers; `done` counts nothing, it hands the room back at once.
fn queue(arrival: f64, service: Distribution, count: u32, room: u32) -> Net {
    let transitions = vec![
        exponential("arrive", arrival, &[0], &[1]),
        timed("serve", service, servers(count), &[1], &[2]),
        immediate("leave", &[2], &[0]),
    ];
    net("queue", &[("room", room), ("waiting", 0), ("done", 0)], transitions)
}

fn question<'a>(net: &'a Net, from: &str, to: &str, begin: Begin) -> Question<'a> {
    let place = |name: &str| net.place(name).unwrap_or_else(|| panic!("no place {name}"));
    Question { net, from: place(from), to: place(to), begin, error: ERROR, states_max: STATES_MAX_DEFAULT }
}

fn followed(net: &Net, from: &str, to: &str, begin: Begin) -> ResponseTime {
    ResponseTime::new(&question(net, from, to, begin)).unwrap_or_else(|error| panic!("{}: {error}", net.name()))
}

#[track_caller]
fn assert_near(found: f64, expected: f64, error: f64, what: &str) {
    assert!((found - expected).abs() <= error, "{what}: {found} is {:e} from {expected}, allowed {error:e}", (found - expected).abs());
}

/// The distribution function is this one, and the mean that of it, up to the bounds told and to `truncated`, which the net itself is off.
#[track_caller]
fn assert_law(found: &ResponseTime, function: impl Fn(f64) -> f64, mean: f64, truncated: f64) {
    let shares = found.shares(&TIMES).expect("they can be computed");
    assert!(shares.error <= ERROR);
    for (time, share) in TIMES.iter().zip(&shares.values) {
        assert_near(*share, function(*time), shares.error + truncated + 1e-12, &format!("by {time}"));
    }
    let (value, off) = found.mean().expect("it has a mean");
    assert!(off < 1e-6 * value, "{off} is a bound worth telling of {value}");
    assert_near(value, mean, off + 1e3 * truncated + 1e-12 * mean, "the mean");
}

fn erlang(shape: u32, rate: f64, time: f64) -> f64 {
    let (mut term, mut sum) = ((-rate * time).exp(), 0.0);
    for stage in 0..shape {
        sum += term;
        term *= rate * time / f64::from(stage + 1);
    }
    1.0 - sum
}

#[test]
fn one_server_answers_in_an_exponential_time() {
    for (arrival, service) in [(0.3, 1.0), (0.5, 1.0), (1.2, 2.0)] {
        let found = followed(&queue(arrival, exponential_law(service), 1, 60), "waiting", "done", Begin::LongRun);
        let rate: f64 = service - arrival;
        assert_law(&found, |time| 1.0 - (-rate * time).exp(), 1.0 / rate, 2.0 * (arrival / service).powi(60));
        assert_near(found.rate.expect("of the long run"), arrival, 1e-9, "tokens come");
        let quantile = found.quantiles(&[0.5, 0.99]).expect("there are some")[1];
        let expected = 100_f64.ln() / rate;
        assert!(quantile.low - 1e-5 <= expected && expected <= quantile.high + 1e-5, "{quantile:?} and {expected}");
    }
}

#[test]
fn what_is_turned_away_for_want_of_room_is_not_followed() {
    let (arrival, room) = (0.9_f64, 4);
    let weights: Vec<f64> = (0..room).map(|length| arrival.powi(length)).collect();
    let sum: f64 = weights.iter().sum();
    let mixed = |of: &dyn Fn(u32) -> f64| (1..).zip(&weights).map(|(shape, weight)| weight / sum * of(shape)).sum::<f64>();
    let found = followed(&queue(arrival, exponential_law(1.0), 1, room as u32), "waiting", "done", Begin::LongRun);
    assert_law(&found, |time| mixed(&|shape| erlang(shape, 1.0, time)), mixed(&f64::from), 0.0);
}

#[test]
fn several_servers_answer_in_the_time_of_erlang() {
    for (arrival, count) in [(0.7, 2), (1.7, 3), (3.0, 5)] {
        let found = followed(&queue(arrival, exponential_law(1.0), count, 80), "waiting", "done", Begin::LongRun);
        let (load, servers) = (arrival, f64::from(count));
        let term = |customers: u32| (1..=customers).map(|number| load / f64::from(number)).product::<f64>();
        let all_busy = term(count) * servers / (servers - load);
        let waits = all_busy / ((0..count).map(term).sum::<f64>() + all_busy);
        let spare = servers - 1.0 - load;
        let function = |time: f64| 1.0 - (-time).exp() * (1.0 + waits * (1.0 - (-spare * time).exp()) / spare);
        assert_law(&found, function, 1.0 + waits / (servers - load), 10.0 * (load / servers).powi(70));
    }
}

#[test]
fn two_queues_in_a_row_add_two_independent_times() {
    let (arrival, first, second) = (0.4, 1.0, 1.5);
    let transitions = vec![
        exponential("arrive", arrival, &[0], &[1]),
        exponential("first", first, &[1], &[2]),
        exponential("second", second, &[2], &[3]),
        immediate("leave", &[3], &[0]),
    ];
    let tandem = net("tandem", &[("room", 30), ("one", 0), ("two", 0), ("done", 0)], transitions);
    let (a, b) = (first - arrival, second - arrival);
    let function = |time: f64| 1.0 - (b * (-a * time).exp() - a * (-b * time).exp()) / (b - a);
    assert_law(&followed(&tandem, "one", "done", Begin::LongRun), function, 1.0 / a + 1.0 / b, 60.0 * 0.4_f64.powi(30));
}

#[test]
fn of_a_first_marking_the_last_token_waits_for_all_before_it() {
    let waiting = |count| net("waiting", &[("queue", count), ("done", 0)], vec![exponential("serve", 2.0, &[0], &[1])]);
    for count in [1, 2, 7] {
        let net = waiting(count);
        let found = followed(&net, "queue", "done", Begin::First);
        assert_law(&found, |time| erlang(count, 2.0, time), f64::from(count) / 2.0, 0.0);
        assert_eq!((found.rate, found.states()), (None, count as usize + 1));
    }
    let told = ResponseTime::new(&question(&waiting(0), "queue", "done", Begin::First)).expect_err("nobody is there").to_string();
    assert!(told.contains("place queue: it holds no token at time 0"), "{told}");
}

/// As many are there as come in the time that one stays, whatever the order and the law.
#[test]
fn means_are_those_of_little() {
    let mixed = HyperExponential::new(vec![(0.3, Exponential::new(0.4).expect("right")), (0.7, Exponential::new(3.0).expect("right"))]);
    for service in [erlang_law(3, 4.0), exponential_law(1.3), Distribution::HyperExponential(mixed.expect("right"))] {
        for count in [1, 2] {
            let net = queue(0.8, service.clone(), count, 6);
            let measures = ["waiting", "throughput(arrive)"].map(|text| Measure::parse(text, &net).expect(text)).into();
            let answer = solve::solve(&solve::Question { measures, ..solve::Question::new(&net, When::Steady) }).expect("it is solved");
            let [length, rate] = answer.values[0][net.places().len()..] else { panic!("two measures") };
            let found = followed(&net, "waiting", "done", Begin::LongRun);
            assert_near(found.rate.expect("of the long run"), rate, 1e-9, "tokens come");
            assert_near(found.mean().expect("it has one").0, length / rate, 1e-8, &format!("{service:?}, {count} servers"));
        }
    }
}

/// Clocks of several stages, several servers, a choice, and a server that is a token.
#[test]
fn the_simulator_says_the_same() {
    let one_by_one = queue(0.8, erlang_law(3, 2.0), 2, 5);
    let at_the_machine = net(
        "machine",
        &[("thinking", 4), ("queue", 0), ("machine", 1), ("busy", 0), ("checking", 0), ("done", 0)],
        vec![
            timed("think", exponential_law(0.5), Servers::Infinite, &[0], &[1]),
            immediate("take", &[1, 2], &[3]),
            timed("work", erlang_law(2, 3.0), Servers::SINGLE, &[3], &[4, 2]),
            timed("check", exponential_law(1.0), Servers::Infinite, &[4], &[5]),
            immediate("again", &[5], &[0]),
        ],
    );
    for (net, from, to) in [(one_by_one, "waiting", "done"), (at_the_machine, "queue", "done")] {
        let times = vec![0.5, 1.0, 2.0, 4.0, 8.0];
        let place = |name: &str| net.place(name).expect(name);
        let tag = Tag::new(TagStart::Arrival(place(from)), place(to));
        // So long that those at the begin, who find nobody there, count little.
        let question =
            simulate::Question { instants: [times.clone(), vec![2_000.0]].concat(), measures: Vec::new(), target: None, tag: Some(tag) };
        let options = simulate::Options { runs: 64, seed: 7, threads: 2, confidence: 0.9999, ..simulate::Options::default() };
        let simulated = simulate(&net, &question, &options).expect("it is simulated").response.expect("there are some");
        let found = followed(&net, from, to, Begin::LongRun);
        let shares = found.shares(&times).expect("they are computed").values;
        for ((time, share), drawn) in times.iter().zip(&shares).zip(&simulated.cdf) {
            let room = 1e-3;
            assert!(drawn.low - room <= *share && *share <= drawn.high + room, "{}: by {time} {share}, drawn {drawn:?}", net.name());
        }
        let mean = found.mean().expect("it has one").0;
        assert!(simulated.mean.low * 0.995 <= mean && mean <= simulated.mean.high * 1.005, "{mean}, drawn {:?}", simulated.mean);
    }
}

#[test]
fn what_the_order_of_tokens_does_not_tell_is_refused() {
    let places = [("a", 1), ("queue", 0), ("server", 1), ("busy", 0), ("done", 0)];
    let refused = |transitions: Vec<Transition>, from: &str, expected: &str| {
        let net = net("refused", &places, transitions);
        let told = ResponseTime::new(&question(&net, from, "done", Begin::LongRun)).expect_err(expected).to_string();
        assert!(told.contains(expected), "{told}");
    };
    let arrive = || exponential("arrive", 1.0, &[0], &[1]);
    let back = || exponential("back", 1.0, &[4], &[0]);
    let serve = || exponential("serve", 1.0, &[3], &[4, 2]);
    // The server's token has the time of the one before, and would go first.
    refused(
        vec![arrive(), immediate("take", &[2, 1], &[3]), serve(), back()],
        "queue",
        "transition take: the times of tokens of server and queue",
    );
    let lost = exponential("impatient", 1.0, &[1], &[]);
    refused(
        vec![arrive(), exponential("serve", 1.0, &[1], &[4]), lost, back()],
        "queue",
        "transition impatient: it takes tokens of queue off the way",
    );
    let twice = vec![
        arrive(),
        exponential("fork", 1.0, &[1], &[2, 3]),
        exponential("one", 1.0, &[2], &[4]),
        exponential("other", 1.0, &[3], &[4]),
        back(),
    ];
    refused(twice, "queue", "transition fork: it takes or gives several tokens");
    let uniform = Distribution::Uniform(Uniform::new(0.0, 1.0).expect("right"));
    refused(
        vec![arrive(), timed("serve", uniform, Servers::SINGLE, &[1], &[4]), back()],
        "queue",
        "transition serve: its delay is not made of exponential stages",
    );
    refused(vec![exponential("serve", 1.0, &[1], &[4]), back()], "queue", "no token comes in the long run");
    refused(vec![arrive(), back()], "done", "begins and ends in one place");
}
