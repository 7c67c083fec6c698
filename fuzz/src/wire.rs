//! Headers, commands and the replica link, as a peer sends them.

use std::time::Duration;

use bodkin_broker::{
    Instant, Node,
    member::{Input, Member, MemberConfig, Mode, Output},
    wire::{Ballot, ClientFrame, EventHeader, LinkFrame, Record, link_frame},
};

/// The first byte of a record in the present form; earlier releases have smaller ones.
const RECORD_FORM: u8 = 3;

/// A byte that says what follows: 0 a header, 1 a command, 2 a member's record, 3 to 5 frames of the replica link to the first or second candidate or the witness.
pub fn wire(bytes: &[u8]) {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    let mut again = Vec::new();
    match kind % 6 {
        0 => {
            let Ok(header) = EventHeader::decode(bytes) else { return };
            header.encode(&mut again);
        }
        1 => {
            let Ok(frame) = ClientFrame::decode(bytes) else { return };
            frame.encode(&mut again);
        }
        2 => {
            let Ok(record) = Record::decode(bytes) else { return };
            record.encode(&mut again);
            if bytes[0] < RECORD_FORM {
                assert_eq!(Record::decode(&again), Ok(record), "an earlier record is written in the present form");
                return;
            }
        }
        node => return link(Node::ALL[usize::from(node) - 3], bytes),
    }
    assert_eq!(again, bytes, "what is read has one form only");
}

/// Frames of one peer to a member of a new pair, which may ask for votes.
fn link(node: Node, mut received: &[u8]) {
    let lease = Duration::from_millis(20);
    let config = MemberConfig::new(node, Mode::Majority, lease, Duration::from_millis(5), 200).expect("good times");
    let mut member = Member::new(config, Record::NEW, Instant::from_nanos(0));
    let now = Instant::from_nanos(60_000_000);
    let from = if node == Node::First { Node::Second } else { Node::First };
    // The second candidate of a new pair lacks everything, until the others say that it does not.
    let mut may_lead = node == Node::First;
    while let Ok(Some((frame, rest))) = link_frame(received) {
        let Ok(decoded) = LinkFrame::decode(frame) else { return };
        let mut again = Vec::new();
        decoded.encode(&mut again);
        assert_eq!(again, received[..received.len() - rest.len()], "what is read has one form only");
        received = rest;
        let LinkFrame::Ballot(ballot) = decoded else { continue };
        if let Ballot::RenewRequest { standing, .. } | Ballot::VoteRequest { standing, .. } | Ballot::Grant { standing, .. } = ballot {
            may_lead |= node != Node::Witness && standing.out != Some(node);
        }
        step(&mut member, now, Input::Received { from, ballot });
        let is_voted_for = may_lead && matches!(ballot, Ballot::Vote { .. });
        assert!(is_voted_for || member.leading().is_none(), "{node:?} leads by {ballot:?}");
        if member.leading().is_some() {
            return;
        }
    }
}

/// Takes an input, and everything that it has written reaches the disk.
fn step(member: &mut Member, now: Instant, input: Input) {
    let mut outputs = Vec::new();
    member.step(now, input, &mut outputs);
    while outputs.iter().any(|output| matches!(output, Output::Persist(_))) {
        outputs.clear();
        member.step(now, Input::Persisted, &mut outputs);
    }
}
