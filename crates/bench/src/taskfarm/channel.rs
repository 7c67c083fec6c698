//! A half-duplex radio channel that all stations of a cell hear: whose frame is on the air, which arrive, and when senders are done.
//!
//! Stations are numbered from 0; their short addresses are one more. A sender waits a random time, assesses the channel, sends when it is free, and sends again
//! what is not acknowledged (unslotted CSMA/CA, IEEE 802.15.4-2011, 5.1.1.4 and 5.1.6.4). Two frames that are on the air at the same time are both lost. Besides, each
//! frame and each acknowledgement is lost with a probability of its own. Between a frame's end and its acknowledgement the channel is silent for longer than an
//! assessment lasts, so that who begins to assess just then collides with the acknowledgement, as on a real channel.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::frame::{self, To};
use super::radio::{
    ACK_OCTETS, ACK_WAIT_US, ASSESSMENT_US, BACKOFF_US, BUSY_MAX, BUSY_ROUNDS_MAX, EXPONENT_MAX, EXPONENT_MIN, PHYSICAL_OCTETS,
    RETRIES_MAX, TURNAROUND_US, air_us, least_us, pause_us,
};
use crate::draws::Draws;

/// What stations are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The station's frame is sent, or given up: its radio is free.
    Free { station: usize },
    /// The station has received a frame.
    Heard { station: usize, frame: Vec<u8> },
}

/// What a station has had of the channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// TCP segments that its frames began, and those with data.
    pub segments: u64,
    /// See `segments`.
    pub data_segments: u64,
    /// Frames on the air, those sent again too, without acknowledgements.
    pub frames: u64,
    /// Frames that were sent again.
    pub repeated: u64,
    /// Frames given up: the channel was busy for too long, or nobody acknowledged them.
    pub given_up: u64,
    /// Octets on the air, acknowledgements and what is in front of a frame included.
    pub octets: u64,
    /// How long it was on the air.
    pub air_us: u64,
    /// What its frames would have taken without random delays, losses and pauses, their acknowledgements included.
    pub least_us: u64,
}

/// A frame that a station wants to be rid of.
#[derive(Debug)]
struct Outgoing {
    frame: Vec<u8>,
    to: Option<To>,
    busy: u32,
    exponent: u32,
    retries: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Assess(usize),
    Assessed(usize),
    Transmit(usize),
    Silence(usize),
    Acknowledge {
        from: usize,
        to: usize,
    },
    /// No acknowledgement has come to the try of this number.
    Missed {
        station: usize,
        attempt: u64,
    },
    Pause(usize),
}

#[derive(Debug)]
struct Transmission {
    station: usize,
    /// Of an acknowledgement: whom it is for.
    acknowledges: Option<usize>,
    is_lost: bool,
}

/// The channel.
#[derive(Debug)]
pub struct Channel {
    now_us: u64,
    happenings: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    /// Happenings so far: those of one instant come in the order in which they were planned.
    planned: u64,
    on_air: Vec<Transmission>,
    silent_since_us: u64,
    outgoing: Vec<Option<Outgoing>>,
    attempts: Vec<u64>,
    is_on: Vec<bool>,
    usage: Vec<Usage>,
    loss: f64,
    draws: Draws,
}

impl Channel {
    /// A silent channel between so many stations, on which this share of frames is lost, beside collisions. All radios are off.
    pub fn new(stations: usize, loss: f64, draws: Draws) -> Self {
        Self {
            now_us: 0,
            happenings: BinaryHeap::new(),
            planned: 0,
            on_air: Vec::new(),
            silent_since_us: 0,
            outgoing: std::iter::repeat_with(|| None).take(stations).collect(),
            attempts: vec![0; stations],
            is_on: vec![false; stations],
            usage: vec![Usage::default(); stations],
            loss,
            draws,
        }
    }

    /// Switches a station's radio on or off.
    pub fn switch(&mut self, station: usize, is_on: bool) {
        self.is_on[station] = is_on;
    }

    /// What a station has had so far.
    pub fn usage(&self, station: usize) -> Usage {
        self.usage[station]
    }

    /// A station whose radio is free sends a frame, from `at_us` on.
    pub fn send(&mut self, station: usize, frame: Vec<u8>, at_us: u64) {
        assert!(self.outgoing[station].is_none(), "station {station} has one buffer");
        let usage = &mut self.usage[station];
        if let Some(segment) = frame::segment(&frame) {
            usage.segments += 1;
            usage.data_segments += u64::from(segment.has_data);
        }
        usage.least_us += least_us(frame.len());
        let to = frame::to(&frame);
        self.outgoing[station] = Some(Outgoing { frame, to, busy: 0, exponent: EXPONENT_MIN, retries: 0 });
        self.back_off(station, at_us);
    }

    /// When something happens next.
    pub fn next_us(&self) -> Option<u64> {
        self.happenings.peek().map(|Reverse((at_us, _, _))| *at_us)
    }

    /// Lets that happen, and says what stations are told.
    pub fn step(&mut self, told: &mut Vec<Told>) {
        let Some(Reverse((at_us, _, happening))) = self.happenings.pop() else { return };
        self.now_us = at_us;
        match happening {
            Happening::Assess(station) => self.plan(ASSESSMENT_US, Happening::Assessed(station)),
            Happening::Assessed(station) => {
                if self.on_air.is_empty() && self.silent_since_us + ASSESSMENT_US <= at_us {
                    self.plan(TURNAROUND_US, Happening::Transmit(station));
                } else {
                    self.found_busy(station);
                }
            }
            // Its radio may be acknowledging just now.
            Happening::Transmit(station) if self.is_on_air(station) => self.found_busy(station),
            Happening::Transmit(station) => self.transmit(station),
            Happening::Silence(station) => self.silence(station, told),
            Happening::Acknowledge { from, to } => {
                if self.is_on[from] && !self.is_on_air(from) {
                    self.put_on_air(from, Some(to), ACK_OCTETS);
                }
            }
            Happening::Missed { station, attempt } => {
                if self.attempts[station] == attempt {
                    self.send_again(station);
                }
            }
            Happening::Pause(station) => {
                self.outgoing[station] = None;
                told.push(Told::Free { station });
            }
        }
    }

    fn plan(&mut self, in_us: u64, happening: Happening) {
        self.planned += 1;
        self.happenings.push(Reverse((self.now_us + in_us, self.planned, happening)));
    }

    fn is_on_air(&self, station: usize) -> bool {
        self.on_air.iter().any(|transmission| transmission.station == station)
    }

    fn outgoing(&mut self, station: usize) -> &mut Outgoing {
        self.outgoing[station].as_mut().expect("a station without a frame does not compete for the channel")
    }

    fn back_off(&mut self, station: usize, at_us: u64) {
        let exponent = self.outgoing(station).exponent;
        let delay_us = self.draws.below(1 << exponent) * BACKOFF_US;
        self.plan(at_us.saturating_sub(self.now_us) + delay_us, Happening::Assess(station));
    }

    fn found_busy(&mut self, station: usize) {
        let outgoing = self.outgoing(station);
        outgoing.busy += 1;
        outgoing.exponent = (outgoing.exponent + 1).min(EXPONENT_MAX);
        if outgoing.busy > BUSY_MAX * BUSY_ROUNDS_MAX {
            self.give_up(station);
        } else {
            self.back_off(station, self.now_us);
        }
    }

    fn give_up(&mut self, station: usize) {
        self.usage[station].given_up += 1;
        self.plan(0, Happening::Pause(station));
    }

    fn transmit(&mut self, station: usize) {
        let octets = self.outgoing(station).frame.len() as u64;
        self.usage[station].frames += 1;
        self.put_on_air(station, None, octets);
    }

    fn put_on_air(&mut self, station: usize, acknowledges: Option<usize>, octets: u64) {
        self.on_air.iter_mut().for_each(|other| other.is_lost = true);
        let is_lost = !self.on_air.is_empty() || self.draws.chance(self.loss);
        self.on_air.push(Transmission { station, acknowledges, is_lost });
        let usage = &mut self.usage[station];
        usage.octets += octets + PHYSICAL_OCTETS;
        usage.air_us += air_us(octets);
        self.plan(air_us(octets), Happening::Silence(station));
    }

    /// A station's frame or acknowledgement is over.
    fn silence(&mut self, station: usize, told: &mut Vec<Told>) {
        let at = self.on_air.iter().position(|transmission| transmission.station == station).expect("what ends was on the air");
        let Transmission { acknowledges, is_lost, .. } = self.on_air.swap_remove(at);
        self.silent_since_us = self.now_us;
        match acknowledges {
            Some(sender) if is_lost || !self.is_on[sender] => {}
            Some(sender) => self.sent(sender),
            None => self.frame_ended(station, is_lost, told),
        }
    }

    fn frame_ended(&mut self, station: usize, is_lost: bool, told: &mut Vec<Told>) {
        let (frame, to) = {
            let outgoing = self.outgoing(station);
            (outgoing.frame.clone(), outgoing.to)
        };
        match to {
            Some(To::One(address)) => {
                let receiver = usize::from(address).checked_sub(1).filter(|receiver| self.is_on.get(*receiver) == Some(&true));
                if let Some(receiver) = receiver.filter(|_| !is_lost) {
                    told.push(Told::Heard { station: receiver, frame });
                    self.plan(TURNAROUND_US, Happening::Acknowledge { from: receiver, to: station });
                }
                let attempt = self.attempts[station];
                self.plan(ACK_WAIT_US, Happening::Missed { station, attempt });
            }
            Some(To::All) | None => {
                let others = (0..self.is_on.len()).filter(|other| *other != station && self.is_on[*other] && !is_lost && to.is_some());
                told.extend(others.map(|station| Told::Heard { station, frame: frame.clone() }));
                self.sent(station);
            }
        }
    }

    /// A frame needs no further try.
    fn sent(&mut self, station: usize) {
        self.attempts[station] += 1;
        let pause_us = pause_us(self.outgoing(station).frame.len());
        self.plan(pause_us, Happening::Pause(station));
    }

    fn send_again(&mut self, station: usize) {
        self.attempts[station] += 1;
        let outgoing = self.outgoing(station);
        if outgoing.retries == RETRIES_MAX {
            return self.give_up(station);
        }
        outgoing.retries += 1;
        outgoing.busy = 0;
        outgoing.exponent = EXPONENT_MIN;
        self.usage[station].repeated += 1;
        self.back_off(station, self.now_us);
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
