//! Messages of one length that come back as they are: what goes through a chain of bare hops.

use super::dialect::{Dialect, Heard};

/// One end of a chain.
pub struct Echo {
    message: Vec<u8>,
    is_ready: bool,
}

impl Echo {
    /// Messages of this length.
    pub fn new(message_bytes: usize) -> Self {
        Self { message: vec![0; message_bytes.max(1)], is_ready: false }
    }
}

impl Dialect for Echo {
    fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.message);
    }

    fn subscribe(&mut self, _: &str, _: &mut Vec<u8>) {}

    fn settle(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.message);
    }

    fn publish(&mut self, _: &str, payload: &[u8], out: &mut Vec<u8>) {
        let length = payload.len().min(self.message.len());
        self.message[..length].copy_from_slice(&payload[..length]);
        out.extend_from_slice(&self.message);
    }

    fn receive(&mut self, input: &mut [u8], _: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) -> anyhow::Result<usize> {
        let whole = input.len() / self.message.len();
        for _ in 0..whole {
            // The first one shows that every hop is there.
            if std::mem::replace(&mut self.is_ready, true) { heard(Heard::Acknowledged(1)) } else { heard(Heard::Ready) }
        }
        Ok(whole * self.message.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_whole_is_an_acknowledgement() {
        let (mut echo, mut out, mut told) = (Echo::new(20), Vec::new(), Vec::new());
        echo.open(&mut out);
        echo.publish("T", b"0123456789abcdef", &mut out);
        assert_eq!((out.len(), &out[20..36]), (40, &b"0123456789abcdef"[..]));
        let taken = echo.receive(&mut out[..39], &mut Vec::new(), &mut |heard| told.push(format!("{heard:?}"))).unwrap();
        assert_eq!((taken, told), (20, vec!["Ready".to_string()]));
    }
}
