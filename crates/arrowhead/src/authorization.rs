//! Authorization: who may use what (reference section 4).

mod check;
mod rule;

pub use self::{check::*, rule::*};
