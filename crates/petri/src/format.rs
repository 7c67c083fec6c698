//! Files: what a net is read from and written to. All of them work on text; the caller has the files.

mod attributes;
pub mod drawing;
mod encoding;
pub mod json;
pub mod pnml;
pub(crate) mod xml;
pub mod xpn;

pub use self::{encoding::decoded, xml::XmlError};
