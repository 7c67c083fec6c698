//! Authorization: who may use what (reference section 4).

mod check;
mod explain;
mod rule;
pub mod token;
mod token_request;

pub use self::{check::*, explain::*, rule::*, token_request::*};
