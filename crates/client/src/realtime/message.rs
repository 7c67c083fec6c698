//! What a broker sends: commands of one frame, events of three, or of four if they have metadata.

use bodkin_broker::wire::{ClientFrame, EventHeader};
use bodkin_zmtp::Message;

use super::session_end::SessionEnd;

/// A message that was read.
pub(super) enum Incoming<'b> {
    Command(ClientFrame<'b>),
    Event { topic: &'b str, payload: &'b [u8], header: EventHeader, metadata: Option<&'b str> },
}

impl<'b> Incoming<'b> {
    pub fn read(message: &Message<'b>) -> Result<Self, SessionEnd> {
        if let Some([command]) = message.split() {
            return Ok(Self::Command(ClientFrame::decode(command)?));
        }
        let (topic, payload, header, metadata) = match (message.split(), message.split()) {
            (Some([topic, payload, header]), _) => (topic, payload, header, None),
            (None, Some([topic, payload, header, metadata])) => (topic, payload, header, Some(metadata)),
            (None, None) => return Err(SessionEnd::Frames { frames: message.frame_count() }),
        };
        let topic = std::str::from_utf8(topic).map_err(|_| SessionEnd::EventType)?;
        let metadata = metadata.map(std::str::from_utf8).transpose().map_err(|_| SessionEnd::Metadata)?;
        Ok(Self::Event { topic, payload, header: EventHeader::decode(header)?, metadata })
    }
}
