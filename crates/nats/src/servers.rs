//! Which server of a list is connected to next, and when.

use std::time::Duration;

/// Servers that a list may have.
pub const SERVERS_MAX: usize = 32;

/// How long is waited between tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Behind the first round in which no server was reached.
    pub least: Duration,
    /// It doubles each round up to this.
    pub most: Duration,
}

impl Default for Pause {
    fn default() -> Self {
        Self { least: Duration::from_millis(250), most: Duration::from_secs(10) }
    }
}

/// A list of servers, tried one after the other: without a pause up to its end, then with one in front of each round.
#[derive(Clone, Debug)]
pub struct Servers {
    servers: usize,
    pause: Pause,
    /// The next one.
    next: usize,
    /// Tries since the last connection that was of use.
    tries: u32,
    /// What each is called, as far as it was connected to.
    names: Vec<Option<String>>,
    /// The server that was looked for last, and how often since it was found.
    sought: (String, usize),
}

impl Servers {
    /// So many, of which the first is the first that is tried.
    ///
    /// # Panics
    /// There are none, or more than [`SERVERS_MAX`].
    pub fn new(servers: usize, pause: Pause) -> Self {
        assert!((1..=SERVERS_MAX).contains(&servers), "{servers} servers");
        Self { servers, pause, next: 0, tries: 0, names: vec![None; servers], sought: Default::default() }
    }

    /// A connection has ended, or there was none yet: the place in the list of the server that is tried next, and how long to wait before. `random` spreads those who lost the same server:
    /// they wait half the pause to all of it.
    pub fn next(&mut self, random: u32) -> (usize, Duration) {
        let server = self.next;
        self.next = (server + 1) % self.servers;
        let rounds = self.tries / self.servers as u32;
        let begins_round = self.tries.is_multiple_of(self.servers as u32);
        self.tries = self.tries.saturating_add(1);
        if rounds == 0 || !begins_round {
            return (server, Duration::ZERO);
        }
        let whole = self.pause.least.saturating_mul(1 << (rounds - 1).min(20)).min(self.pause.most);
        (server, whole / 2 + (whole / 2).mul_f64(f64::from(random) / f64::from(u32::MAX)))
    }

    /// A connection was of use: pauses begin anew. The server that it was to is the last of the next round.
    pub fn reached(&mut self) {
        self.tries = 0;
    }

    /// The server at this place, which is connected to and of use, is called `name`, and another one may lead what is spoken of. True: leave it; [`Self::next`] gives the leader's place, or that of a server whose
    /// name is not known yet, without a pause. It is false where no other one can be the leader, and where the leader was looked for as often as there are servers and not found.
    pub fn seeks(&mut self, at: usize, name: &str, leader: &str) -> bool {
        self.names[at] = Some(name.to_owned());
        if name == leader || self.sought.0 != leader {
            self.sought = (leader.to_owned(), 0);
        }
        let known = || self.names.iter().position(|known| known.as_deref() == Some(leader));
        let place = known().or_else(|| self.names.iter().position(Option::is_none));
        let Some(place) = place.filter(|place| *place != at && self.sought.1 < self.servers) else { return false };
        self.sought.1 += 1;
        (self.next, self.tries) = (place, 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_no_pause_and_rounds_have_longer_ones() {
        let mut servers = Servers::new(3, Pause { least: Duration::from_millis(100), most: Duration::from_millis(300) });
        let tries: Vec<_> = (0..15).map(|_| servers.next(u32::MAX)).map(|(server, wait)| (server, wait.as_millis())).collect();
        let pauses: Vec<_> = tries.iter().map(|(_, wait)| *wait).collect();
        assert_eq!(pauses, [0, 0, 0, 100, 0, 0, 200, 0, 0, 300, 0, 0, 300, 0, 0]);
        assert!(tries.iter().enumerate().all(|(number, (server, _))| *server == number % 3));
        servers.reached();
        assert_eq!(servers.next(0), (0, Duration::ZERO));
    }

    #[test]
    fn those_who_lost_the_same_server_do_not_come_back_at_once() {
        let mut servers = Servers::new(1, Pause::default());
        servers.next(0);
        assert_eq!(servers.clone().next(0).1, Duration::from_millis(125));
        assert_eq!(servers.next(u32::MAX).1, Duration::from_millis(250));
        for _ in 0..100_000 {
            assert!(servers.next(7).1 <= Duration::from_secs(10));
        }
    }

    /// Connects as often as it is told to seek; gives the places that it was at. Servers are called by their places; those in `away` are not there.
    fn way(servers: &mut Servers, from: usize, leader: &str, away: &[usize]) -> Vec<usize> {
        let mut way = vec![from];
        while servers.seeks(way[way.len() - 1], &way[way.len() - 1].to_string(), leader) {
            let there =
                (0..).map(|_| servers.next(0)).inspect(|(_, pause)| assert_eq!(*pause, Duration::ZERO)).find(|(at, _)| !away.contains(at));
            way.push(there.expect("one is there").0);
            assert!(way.len() < 20, "{way:?}");
        }
        way
    }

    #[test]
    fn the_leader_is_found_and_then_gone_to_at_once() {
        let mut servers = Servers::new(3, Pause::default());
        assert_eq!(way(&mut servers, 0, "2", &[]), [0, 1, 2]);
        assert_eq!(way(&mut servers, 0, "2", &[]), [0, 2], "its place is known");
        assert_eq!(way(&mut servers, 2, "2", &[]), [2]);
        assert_eq!(way(&mut servers, 2, "1", &[]), [2, 1], "another one leads");
        assert_eq!(way(&mut servers, 0, "somebody", &[]), [0], "all are known, and it is none of them");
    }

    #[test]
    fn a_leader_that_is_not_reached_is_not_looked_for_without_an_end() {
        let mut servers = Servers::new(3, Pause::default());
        let met = way(&mut servers, 0, "2", &[2]);
        assert!(met.len() <= 4 && !met.contains(&2), "{met:?}");
        assert_eq!(way(&mut servers, 1, "2", &[2]), [1]);
        assert_eq!(way(&mut servers, 1, "0", &[2]), [1, 0], "a new one is");
        let mut alone = Servers::new(1, Pause::default());
        assert_eq!(way(&mut alone, 0, "hub", &[]), [0], "a leaf node's own server is the only one");
    }
}
