//! What a broker sends: commands of one frame, events of three.

use bodkin_broker::wire::{ClientFrame, EventHeader};
use bodkin_zmtp::Message;

use super::session_end::SessionEnd;

/// A message that was read.
pub(super) enum Incoming<'b> {
    Command(ClientFrame<'b>),
    Event { topic: &'b str, payload: &'b [u8], header: EventHeader },
}

impl<'b> Incoming<'b> {
    pub fn read(message: &Message<'b>) -> Result<Self, SessionEnd> {
        if let Some([command]) = message.split() {
            return Ok(Self::Command(ClientFrame::decode(command)?));
        }
        let Some([topic, payload, header]) = message.split() else {
            return Err(SessionEnd::Frames { frames: message.frame_count() });
        };
        let topic = std::str::from_utf8(topic).map_err(|_| SessionEnd::EventType)?;
        Ok(Self::Event { topic, payload, header: EventHeader::decode(header)? })
    }
}
