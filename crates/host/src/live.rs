//! `GET /api/v1/live`: what a dashboard would ask again and again, as one event stream of what has changed.
//!
//! Each part is the answer to a `GET` of its path by the same caller, with the same rights. It is sent at the begin, and again when it has become another. However many listen,
//! an answer is made once a period ([`Board`]).

mod board;

pub use self::board::{Board, Line, Reader, question};
use crate::{
    answer::{self, Answer},
    request::{Method, Request},
};

/// Streams at the same time: half of the connections that the port has in insecure mode, so that whoever watches otherwise gets through.
pub const STREAMS_MAX: usize = 32;
/// Longest body of a part; a longer one is told as too long, and is to be asked for by itself.
pub const PART_BYTES_MAX: usize = 8 << 20;
/// Seconds after which something is said although nothing has changed: who hears nothing for longer knows that the connection is dead.
pub const SILENCE_S_MAX: u64 = 5;

/// What may be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it is by itself.
    pub path: &'static str,
    /// Between two looks at it, in seconds.
    pub period_s: u64,
}

const fn part(path: &'static str, period_s: u64) -> Part {
    Part { path, period_s }
}

/// Every part: lists that pages show whole, and no others.
pub const PARTS: &[Part] = &[
    part("/api/v1/overview", 1),
    part("/api/v1/nodes", 2),
    part("/api/v1/nodes/events", 2),
    part("/api/v1/topics", 2),
    part("/api/v1/graphs", 2),
    part("/api/v1/event-types", 2),
    part("/api/v1/subscriptions", 2),
    part("/api/v1/streams", 5),
    part("/api/v1/platform", 5),
    part("/api/v1/stages", 5),
    part("/api/v1/event-log", 5),
    part("/api/v1/services", 5),
    part("/api/v1/dead-letters", 5),
    part("/api/v1/onboarding/grants", 5),
    part("/api/v1/certificates", 10),
    part("/api/v1/clouds", 5),
    part("/api/v1/relays", 5),
    part("/api/v1/clouds/heard-events", 5),
    part("/api/v1/gateway-sessions", 2),
    part("/api/v1/fleet", 2),
    part("/api/v1/models", 10),
    part("/api/v1/reports", 10),
    part("/serviceregistry/mgmt", 5),
    part("/serviceregistry/mgmt/systems", 5),
    part("/authorization/mgmt/intracloud", 5),
    part("/authorization/mgmt/intercloud", 5),
    part("/orchestrator/mgmt/store", 5),
    part("/orchestrator/mgmt/store/flexible", 5),
];

/// Some of [`PARTS`], a bit each; an answer has room for them where it would have none for a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(u32);

const _: () = assert!(PARTS.len() <= u32::BITS as usize, "there is a bit for each part");

impl Parts {
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// In the order of [`PARTS`].
    pub fn iter(self) -> impl Iterator<Item = &'static Part> {
        self.places().map(|at| &PARTS[at])
    }

    /// Where they are in [`PARTS`].
    fn places(self) -> impl Iterator<Item = usize> {
        (0..PARTS.len()).filter(move |at| self.0 & (1 << at) != 0)
    }
}

/// The answer to a request for a stream: its parts, or what is wrong.
pub fn answer(request: &Request) -> Answer {
    let asked = request.parameter("of").unwrap_or_default();
    let mut parts = Parts::default();
    for path in asked.split(',').map(str::trim).filter(|path| !path.is_empty()) {
        let Some(at) = PARTS.iter().position(|part| part.path == path) else {
            let known: Vec<&str> = PARTS.iter().map(|part| part.path).collect();
            return Answer::problem(400, &format!("of names paths of {}, and not '{path}'.", known.join(", ")));
        };
        parts.0 |= 1 << at;
    }
    if parts.is_empty() {
        return Answer::problem(400, "of is empty: name what is to be heard, such as of=/api/v1/overview,/api/v1/topics.");
    }
    let live = if request.method == Method::Head { Parts::default() } else { parts };
    Answer { content_type: Some(answer::EVENT_STREAM), live, ..Answer::empty(200) }
}

/// The answer to one stream too many.
pub fn too_many() -> Answer {
    Answer::problem(503, &format!("{STREAMS_MAX} live streams are open. Ask for each path by itself, or close one."))
}

/// What one listener has been told.
#[derive(Debug)]
pub struct Live {
    /// Parts by their places in [`PARTS`].
    parts: Vec<Told>,
    spoke_at: u64,
}

#[derive(Debug)]
struct Told {
    at: usize,
    /// Of the period in which it was looked at last.
    period: Option<u64>,
    /// Of what was told of it last.
    mark: Option<u64>,
}

/// A look at a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The part's place in [`PARTS`].
    pub at: usize,
    /// The second that its answer may not be older than.
    pub since: u64,
    /// The second that it is.
    pub now: u64,
}

impl Live {
    /// Nothing yet, in a second of the [`Board`]'s.
    pub fn new(parts: Parts, second: u64) -> Self {
        Self { parts: parts.places().map(|at| Told { at, period: None, mark: None }).collect(), spoke_at: second }
    }

    /// The parts to look at in this second: at first they are all, as they are now; afterwards each has its seconds, which are others than its neighbours', so that
    /// not all is made at once.
    pub fn due(&mut self, now: u64) -> Vec<Look> {
        let due = |told: &mut Told| {
            let (at, Part { period_s, .. }) = (told.at, PARTS[told.at]);
            let (period, within) = ((now + at as u64) / period_s, (now + at as u64) % period_s);
            match told.period.replace(period) {
                None => Some(Look { at, since: now, now }),
                Some(before) if before == period => None,
                Some(_) => Some(Look { at, since: now.saturating_sub(within), now }),
            }
        };
        self.parts.iter_mut().filter_map(due).collect()
    }

    /// Whether a part has to be told: it has become another. It counts as told then.
    pub fn is_new(&mut self, at: usize, line: &Line, second: u64) -> bool {
        let told = self.parts.iter_mut().find(|told| told.at == at).expect("only parts that were asked for are looked at");
        let is_new = told.mark.replace(line.mark) != Some(line.mark);
        if is_new {
            self.spoke_at = second;
        }
        is_new
    }

    /// A sign of life, where nothing was said for long.
    pub fn sign_of_life(&mut self, second: u64) -> &'static [u8] {
        if second.saturating_sub(self.spoke_at) < SILENCE_S_MAX {
            return b"";
        }
        self.spoke_at = second;
        b"event: silence\ndata: {}\n\n"
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use bodkin_arrowhead::caller::Caller;

    use super::*;
    use crate::document;

    pub fn request(of: &str) -> Request {
        Request {
            caller: Caller::Anonymous,
            sender: None,
            method: Method::Get,
            path: "/api/v1/live".into(),
            query: vec![("of".into(), of.into())],
            url: "http://h:8440/api/v1/live".into(),
            content_type: String::new(),
            bearer: None,
            if_none_match: None,
            accepts_html: false,
            is_forged: false,
            trace: None,
            says_empty: false,
            body: Vec::new(),
        }
    }

    #[test]
    fn a_stream_has_the_parts_that_are_named_once_each() {
        let answer_to = |of: &str| answer(&request(of));
        let parts = answer_to("/api/v1/topics, /api/v1/overview,/api/v1/topics").live;
        assert_eq!(parts.iter().map(|part| part.path).collect::<Vec<_>>(), ["/api/v1/overview", "/api/v1/topics"]);
        for (of, told) in [("", "is empty"), (" , ", "is empty"), ("/metrics", "not '/metrics'"), ("/api/v1/live", "not '/api/v1/live'")] {
            let refused = answer_to(of);
            assert_eq!((refused.status, refused.live.is_empty()), (400, true), "{of}");
            assert!(String::from_utf8(refused.body).unwrap().contains(told), "{of}");
        }
    }

    #[test]
    fn every_part_can_be_asked_for_by_itself() {
        for part in PARTS.iter().filter(|part| part.path.starts_with("/api/v1/")) {
            assert!(document::methods_at(part.path).contains(&Method::Get), "{}", part.path);
        }
        assert!(PARTS.iter().all(|part| part.period_s > 0));
    }

    fn line(mark: u64) -> Line {
        Line { mark, bytes: (*b"").into() }
    }

    #[test]
    fn at_first_everything_is_due_and_then_each_part_in_its_own_seconds() {
        let all = Parts((1 << PARTS.len()) - 1);
        let mut live = Live::new(all, 7);
        assert_eq!(live.due(7), (0..PARTS.len()).map(|at| Look { at, since: 7, now: 7 }).collect::<Vec<_>>());
        assert_eq!(live.due(7), [], "once a second is enough");
        let mut looked = vec![Vec::new(); PARTS.len()];
        let mut most = 0;
        for second in 8..68 {
            let due = live.due(second);
            most = most.max(due.len());
            for Look { at, since, now } in due {
                assert_eq!((since, now), (second, second), "it is due when its period begins");
                looked[at].push(second);
            }
        }
        for (part, seconds) in PARTS.iter().zip(&looked) {
            assert_eq!(seconds.len() as u64, 60 / part.period_s, "{}", part.path);
            assert!(seconds.windows(2).all(|pair| pair[1] - pair[0] == part.period_s), "{}: {seconds:?}", part.path);
        }
        assert!(most <= PARTS.len() / 2, "{most} at once");
    }

    #[test]
    fn listeners_look_in_the_same_seconds_whenever_they_came_and_who_is_late_takes_what_the_others_have() {
        let at = PARTS.iter().position(|part| part.period_s == 5).unwrap();
        let (mut early, mut late) = (Live::new(Parts(1 << at), 0), Live::new(Parts(1 << at), 3));
        early.due(0);
        late.due(3);
        let begin = (4..9)
            .find(|second| early.due(*second) == [Look { at, since: *second, now: *second }])
            .expect("it is due in each five seconds");
        assert_eq!(late.due(begin + 2), [Look { at, since: begin, now: begin + 2 }], "what was made in this period will do");
        assert_eq!(late.due(begin + 3), []);
    }

    #[test]
    fn only_what_has_changed_is_told_and_silence_does_not_last() {
        let mut live = Live::new(Parts(1), 0);
        let mut second = |second, mark| (live.is_new(0, &line(mark), second), live.sign_of_life(second));
        assert_eq!(second(0, 1), (true, &b""[..]));
        assert_eq!(second(1, 1), (false, &b""[..]));
        assert_eq!(second(2, 2), (true, &b""[..]));
        let silent: Vec<u8> = (3..=2 + SILENCE_S_MAX).flat_map(|at| second(at, 2).1).copied().collect();
        assert_eq!(silent, b"event: silence\ndata: {}\n\n");
    }
}
