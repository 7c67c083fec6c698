//! Authorization: who may use what (reference section 4).

mod check;
mod rule;
pub mod token;
mod token_request;

pub use self::{check::*, rule::*, token_request::*};
