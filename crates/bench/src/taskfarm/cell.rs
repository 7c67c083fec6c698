//! A run: a master and its workers on one channel, on a clock that stands still while they compute in no time.

use std::collections::VecDeque;
use std::path::Path;

use anyhow::{Context, bail};

use super::channel::{Channel, Told, Usage};
use super::station::{Does, Said, Station};
use crate::draws::Draws;

/// What a station's processor takes to bring a frame from its radio through its stack, or the other way: the frame's way over SPI, 6LoWPAN and TCP.
const HANDLING_US: u64 = 1000;
/// Stations are switched on within so long, the master first.
const SWITCH_ON_US: u64 = 100_000;
/// How long a run may last.
const RUN_US_MAX: u64 = 1_200_000_000;

/// A station's call: its program, and its arguments.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    pub program: &'a Path,
    pub arguments: Vec<String>,
}

/// What a station has done in a run.
#[derive(Debug, Clone)]
pub struct Ended {
    pub said: Said,
    pub usage: Usage,
    /// What its processor has worked.
    pub busy_us: u64,
}

enum Doing {
    Waiting { until_us: u64 },
    Sending,
    Computing { until_us: u64 },
    Ended { said: Said },
}

struct Member {
    station: Station,
    doing: Doing,
    /// Frames that have come, and when the processor has them.
    inbox: VecDeque<(u64, Vec<u8>)>,
    busy_us: u64,
}

impl Member {
    /// When it goes on, unless something else happens first.
    fn due_us(&self) -> Option<u64> {
        match &self.doing {
            Doing::Waiting { until_us } => Some(self.inbox.front().map_or(*until_us, |(at_us, _)| (*at_us).min(*until_us))),
            Doing::Computing { until_us } => Some(*until_us),
            Doing::Sending | Doing::Ended { .. } => None,
        }
    }
}

/// Runs the stations to their end, the first one as the master: what each has done.
///
/// # Errors
/// A station fails, or they do not come to an end.
pub fn run(calls: &[Call<'_>], loss: f64, seed: u64) -> anyhow::Result<Vec<Ended>> {
    let mut draws = Draws::new(seed);
    let mut channel = Channel::new(calls.len(), loss, Draws::new(draws.next()));
    let mut members = Vec::with_capacity(calls.len());
    for (number, call) in calls.iter().enumerate() {
        let mut station = Station::start(call.program, &call.arguments, u16::try_from(number + 1)?, draws.next())?;
        let on_us = if number == 0 { 0 } else { draws.below(SWITCH_ON_US) };
        if station.does()? != (Does::Wait { until_us: 0 }) {
            bail!("a station does not wait until it is switched on");
        }
        channel.switch(number, true);
        members.push(Member { station, doing: Doing::Waiting { until_us: on_us }, inbox: VecDeque::new(), busy_us: 0 });
    }
    let mut cell = Cell { channel, members, now_us: 0, told: Vec::new() };
    while cell.step()? {}
    let Cell { channel, members, .. } = cell;
    let ended = |(number, member): (usize, Member)| {
        let Doing::Ended { said } = member.doing else { bail!("the cell has stopped, but station {number} has not ended") };
        Ok(Ended { said, usage: channel.usage(number), busy_us: member.busy_us })
    };
    members.into_iter().enumerate().map(ended).collect()
}

struct Cell {
    channel: Channel,
    members: Vec<Member>,
    now_us: u64,
    told: Vec<Told>,
}

impl Cell {
    /// Lets happen what is next; false: nothing is.
    fn step(&mut self) -> anyhow::Result<bool> {
        let due = self.members.iter().enumerate().filter_map(|(number, member)| Some((member.due_us()?, number))).min();
        let happens = self.channel.next_us();
        if self.now_us > RUN_US_MAX {
            let left = self.members.iter().enumerate().filter(|(_, member)| !matches!(member.doing, Doing::Ended { .. }));
            let left: Vec<usize> = left.map(|(number, _)| number).collect();
            bail!("after {} s of its own time the run has not ended: stations {left:?} go on", self.now_us / 1_000_000);
        }
        match (happens, due) {
            (Some(at_us), due) if due.is_none_or(|(due_us, _)| at_us <= due_us) => self.let_happen(at_us),
            (_, Some((due_us, number))) => {
                self.now_us = due_us.max(self.now_us);
                self.go_on(number)?;
            }
            (_, None) => return Ok(false),
        }
        Ok(true)
    }

    fn let_happen(&mut self, at_us: u64) {
        self.now_us = at_us;
        let mut told = std::mem::take(&mut self.told);
        self.channel.step(&mut told);
        for told in told.drain(..) {
            match told {
                // It goes on at once, and hears nothing before it waits.
                Told::Free { station } => self.members[station].doing = Doing::Computing { until_us: at_us },
                Told::Heard { station, frame } => {
                    let member = &mut self.members[station];
                    member.busy_us += HANDLING_US;
                    member.inbox.push_back((at_us + HANDLING_US, frame));
                }
            }
        }
        self.told = told;
    }

    /// Lets a station run until it says what it does next.
    fn go_on(&mut self, number: usize) -> anyhow::Result<()> {
        let now_us = self.now_us;
        let member = &mut self.members[number];
        let may_hear = matches!(member.doing, Doing::Waiting { .. });
        let frame =
            if may_hear && member.inbox.front().is_some_and(|(at_us, _)| *at_us <= now_us) { member.inbox.pop_front() } else { None };
        member.station.go_on(now_us, frame.as_ref().map(|(_, frame)| &frame[..]))?;
        member.doing = match member.station.does()? {
            Does::Wait { until_us } => Doing::Waiting { until_us: until_us.max(now_us) },
            Does::Compute { us } => {
                member.busy_us += us;
                Doing::Computing { until_us: now_us + us }
            }
            Does::Send { frame } => {
                member.busy_us += HANDLING_US;
                self.channel.send(number, frame, now_us + HANDLING_US);
                Doing::Sending
            }
            Does::End => {
                self.channel.switch(number, false);
                // A failure ends the run: nobody has what it had, and others may wait for it.
                let said = member.station.said().with_context(|| format!("station {number}, after {} s", now_us / 1_000_000))?;
                Doing::Ended { said }
            }
        };
        Ok(())
    }
}
