//! Topics as they are declared: what is promised to their subscribers ([`TopicSpec`]), and what that may count on ([`Platform`]).
//!
//! [`form`] reads both from keys and values; [`timing`](crate::timing) says which deadlines follow, and whether they can be met.

pub mod form;
mod number;
mod platform;
mod spec;

pub use self::{
    number::{NumberError, parse_span, parse_whole},
    platform::{LeaseTimes, Platform},
    spec::{Coverage, Level, LossTolerance, Period, Problem, REQUIRED_FOR_MAX, SpecFault, TIME_MAX, TopicSpec},
};
