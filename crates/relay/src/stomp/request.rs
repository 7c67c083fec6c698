//! The frames that a client sends.

use super::{
    frame::{Command, Frame},
    heart_beat::HeartBeat,
};
use crate::Destination;

/// Name and password for a broker that asks for them besides the certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    name: String,
    passcode: String,
}

/// A name or password that CONNECT cannot say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neither a broker's user nor its password can have line ends or zero bytes")]
pub struct LoginError;

impl Login {
    /// Takes both.
    pub fn new(name: &str, passcode: &str) -> Result<Self, LoginError> {
        let can_be_said = [name, passcode].into_iter().all(|text| Frame::can_say(Command::Connect, text));
        if can_be_said { Ok(Self { name: name.to_owned(), passcode: passcode.to_owned() }) } else { Err(LoginError) }
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Opens a session at the broker's default host.
pub fn connect(client_id: u64, heart_beat: HeartBeat, login: Option<&Login>) -> Frame {
    let frame = Frame::new(Command::Connect).with("accept-version", "1.2").with("host", "/");
    let frame = frame.with("client-id", &format!("bodkin-{client_id:016x}")).with("heart-beat", &heart_beat.value());
    match login {
        Some(Login { name, passcode }) => frame.with("login", name).with("passcode", passcode),
        None => frame,
    }
}

/// Listens to a destination under a number of the caller's. The broker sends as many messages as `prefetch` says and then waits for [`ack`], each
/// of which stands for one message: that is the backpressure of a tunnel. RECEIPT says that it listens.
pub fn subscribe(subscription: u64, destination: &Destination, prefetch: u32, receipt: u64) -> Frame {
    let frame = Frame::new(Command::Subscribe).with("id", &subscription.to_string()).with("destination", &destination.to_string());
    let frame = frame.with("ack", "client-individual").with("activemq.prefetchSize", &prefetch.to_string());
    frame.with("receipt", &receipt.to_string())
}

/// Listens no more.
pub fn unsubscribe(subscription: u64) -> Frame {
    Frame::new(Command::Unsubscribe).with("id", &subscription.to_string())
}

/// A message was taken; `ack` is what it came with.
///
/// # Panics
/// If it has a zero byte in it, which no message comes with.
pub fn ack(ack: &str) -> Frame {
    Frame::new(Command::Ack).with("id", ack)
}

/// Sends a text, which arrives as JMS' TextMessage. With a number the broker answers RECEIPT when it has it.
///
/// # Panics
/// If the text has a zero byte in it; sealed messages and control messages have none.
pub fn send_text(destination: &Destination, text: &str, receipt: Option<u64>) -> Frame {
    assert!(!text.contains('\0'), "a text message has no zero bytes");
    let mut frame = Frame::new(Command::Send).with("destination", &destination.to_string()).with("amq-msg-type", "text");
    if let Some(receipt) = receipt {
        frame = frame.with("receipt", &receipt.to_string());
    }
    frame.body = text.as_bytes().to_vec();
    frame
}

/// Ends the session; the broker answers RECEIPT when it has taken everything in front of it.
pub fn disconnect(receipt: u64) -> Frame {
    Frame::new(Command::Disconnect).with("receipt", &receipt.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(frame: Frame, expected: &str) {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[test]
    fn every_request_is_written_as_brokers_read_it() {
        let queue = Destination::queue("REQ-gatekeeper.c.o.arrowhead.eu-abc").unwrap();
        let heart_beat = HeartBeat { sends_ms: 10_000, wants_ms: 10_000 };
        let connected = "CONNECT\naccept-version:1.2\nhost:/\nclient-id:bodkin-00000000000000ff\nheart-beat:10000,10000\n";
        check(connect(255, heart_beat, None), &format!("{connected}\n\0"));
        // CONNECT has no escapes: a colon in a value is itself.
        let login = Login::new("admin", r"a:b\c").unwrap();
        check(connect(255, heart_beat, Some(&login)), &format!("{connected}login:admin\npasscode:a:b\\c\n\n\0"));
        check(
            subscribe(7, &queue, 4, 2),
            "SUBSCRIBE\nid:7\ndestination:/queue/REQ-gatekeeper.c.o.arrowhead.eu-abc\nack:client-individual\nactivemq.prefetchSize:4\nreceipt:2\n\n\0",
        );
        check(unsubscribe(7), "UNSUBSCRIBE\nid:7\n\n\0");
        check(ack("ID:host-1:2"), "ACK\nid:ID\\chost-1\\c2\n\n\0");
        let sent = "SEND\ndestination:/queue/REQ-gatekeeper.c.o.arrowhead.eu-abc\namq-msg-type:text\n";
        check(send_text(&queue, "eyJ.é", None), &format!("{sent}\neyJ.é\0"));
        check(send_text(&queue, "", Some(3)), &format!("{sent}receipt:3\n\n\0"));
        check(disconnect(9), "DISCONNECT\nreceipt:9\n\n\0");
    }

    #[test]
    fn a_login_cannot_say_more_than_itself() {
        for (name, passcode) in [("a\nhost:b", "c"), ("a", "c\r"), ("a\0", "c")] {
            assert_eq!(Login::new(name, passcode), Err(LoginError), "{name:?} {passcode:?}");
        }
        assert!(!format!("{:?}", Login::new("a", "secret").unwrap()).contains("secret"));
    }
}
