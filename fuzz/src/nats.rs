//! What a NATS server sends, and the batches of a stream.

use std::{collections::BTreeSet, time::Duration};

use bodkin_nats::{
    client::Options,
    forwarder::{Forwarder, LANES_MAX, Setup, lane_subject},
    intake::{ACK_PENDING_MAX, Intake, IntakeSetup, Memory, Told},
    jetstream::{Api, last_message, publish_ack, stream_info},
    lane::{Backlog, Batch, MemoryBacklog, Put, Record, Records, Terms},
    protocol::{Credentials, Decoder, Headers, Limits, Operation, Subject},
};

/// Small, so that it is met.
const LIMITS: Limits = Limits { message_bytes_max: 256 };
/// What a forwarder may have to write at the most: it answers pings, and has a request under way for each lane.
const OUT_BYTES_MAX: usize = 64 * 1024;

/// What is read, a piece's length, then the stream: however it is cut, the same operations come out of it, and a forwarder and an intake go on or end whatever the server says. A batch that is read is written as the same.
pub fn nats(bytes: &[u8]) {
    let [what, piece, stream @ ..] = bytes else { return };
    match what % 4 {
        0 => {
            let whole = operations(stream, stream.len());
            for piece in [1, usize::from(*piece)] {
                assert_eq!(operations(stream, piece), whole, "in pieces of {piece}");
            }
        }
        1 => forwarder(stream),
        2 => batch(stream),
        _ => intake(stream, *piece),
    }
}

/// A line for each operation, and one for the fault.
fn operations(stream: &[u8], piece: usize) -> Vec<String> {
    let (mut decoder, mut lines) = (Decoder::new(LIMITS), Vec::new());
    for mut part in stream.chunks(piece.max(1)) {
        loop {
            match decoder.receive(&mut part) {
                Ok(Some(operation)) => lines.push(seen(&operation)),
                Ok(None) => break,
                Err(fault) => {
                    assert_eq!(decoder.receive(&mut &b"PING\r\n"[..]), Err(fault.clone()), "something is read behind a fault");
                    lines.push(fault.to_string());
                    return lines;
                }
            }
        }
        assert!(part.is_empty(), "bytes are left");
    }
    lines
}

fn seen(operation: &Operation) -> String {
    if let Operation::Message(message) = operation {
        assert!(message.payload.len() <= LIMITS.message_bytes_max, "a message beyond its limit");
        if let Ok(headers) = &message.headers {
            let mut written = Vec::new();
            headers.write(&mut written);
            assert_eq!(Headers::read(&written).as_ref(), Ok(headers), "they are written as other ones");
        }
        let _ = (publish_ack(&message.payload), last_message(&message.payload), stream_info(&message.payload));
    }
    format!("{operation:?}")
}

/// A forwarder with an event hears anything: it goes on or ends, writes no more than it is made to, and gives up no event that was not acknowledged.
fn forwarder(stream: &[u8]) {
    let setup = Setup {
        api: Api::new(None).expect("no domain"),
        stream: "F".to_owned(),
        create: None,
        answer_wait_max: Duration::from_secs(5),
        look_every: Duration::from_secs(1),
    };
    let terms = Terms {
        stream: "F".to_owned(),
        subject: lane_subject("fleet", "e", "l").expect("a subject"),
        epoch: 2,
        batch_bytes_max: 4096,
        batch_wait_max: Duration::ZERO,
        rest_least: Duration::from_millis(1),
        rest_most: Duration::from_secs(1),
    };
    let (mut forwarder, mut backlogs) = (Forwarder::new(setup, vec![terms]).expect("subjects"), [MemoryBacklog::new(1, 4096)]);
    let event = Record::Event { topic: "t", publisher: 1, incarnation: 1, sequence: 1, created_ns: 1, payload: b"x" };
    forwarder.grown(0, backlogs[0].put(event).expect("there is room"), Duration::ZERO);
    forwarder.connected(options(), Duration::ZERO);
    let (mut out, mut told) = (Vec::new(), Vec::new());
    // A line at a time, with steps between them: so what is said is an answer to what was asked.
    for (place, line) in stream.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let now = Duration::from_millis(10 * place as u64);
        if forwarder.receive(line, now, &mut backlogs, &mut told).is_err() || forwarder.step(now, &mut backlogs, &mut told).is_err() {
            break;
        }
        forwarder.take_out(&mut out);
    }
    assert!(out.len() <= stream.len() * LANES_MAX + OUT_BYTES_MAX, "{} bytes are answered", out.len());
    assert_eq!(backlogs[0].end(), 2);
    forwarder.disconnected();
}

fn options() -> Options {
    Options {
        name: "e".to_owned(),
        credentials: Credentials::None,
        inbox: Subject::new("_INBOX.r").expect("a subject"),
        is_encrypted: false,
        greeting_wait_max: Duration::from_secs(60),
        silence_max: Duration::from_secs(60),
    }
}

/// An intake hears anything: it goes on or ends, keeps no more than a consumer may have under way twice over, gives no message of a stream twice, and writes no more than it is made to. What it gives is done
/// `behind` messages later.
fn intake(stream: &[u8], behind: u8) {
    let setup = IntakeSetup {
        api: Api::new(None).expect("no domain"),
        stream: "C".to_owned(),
        consumer: IntakeSetup::consumer("e", vec!["c.e.*".to_owned()]),
        creates: true,
        rewinds: true,
        process: None,
        taken_max: 8,
        look_every: Duration::from_secs(1),
    };
    let mut intake = Intake::new(setup).expect("subjects");
    intake.connected(options(), Subject::new("_INBOX.p").expect("a subject"), Duration::ZERO);
    let (mut out, mut told) = (Vec::new(), Vec::new());
    let (mut given, mut under_way) = (BTreeSet::new(), BTreeSet::new());
    for (place, line) in stream.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let now = Duration::from_millis(200 * place as u64);
        let received = intake.receive(line, now, &mut told);
        for told in told.drain(..) {
            match told {
                Told::Stream(_) => {
                    intake.remembers(Memory::new(Some(2), [5]), 0);
                    given.clear();
                    under_way.clear();
                }
                Told::Take(delivery) => {
                    assert!(delivery.sequence > 2 && delivery.sequence != 5, "{} was taken before", delivery.sequence);
                    assert!(given.insert(delivery.sequence), "{} is given twice", delivery.sequence);
                    under_way.insert(delivery.sequence);
                }
                _ => {}
            }
        }
        assert_eq!(intake.taken(), under_way.len());
        assert!(under_way.len() <= 2 * ACK_PENDING_MAX.unsigned_abs() as usize, "{} messages are under way", under_way.len());
        while under_way.len() > behind.into() {
            intake.done(under_way.pop_first().expect("there is one"));
        }
        let Ok(()) = received else { break };
        let Ok(next) = intake.step(now, &mut told) else { break };
        // Until nothing is due any more: whoever carries it asks so.
        let (mut next, mut steps) = (next, 0);
        while next <= now {
            steps += 1;
            assert!(steps < 100, "something is due without end");
            let Ok(again) = intake.step(now, &mut told) else { return };
            next = again;
        }
        intake.take_out(&mut out);
    }
    assert!(out.len() <= stream.len() * 1024 + OUT_BYTES_MAX, "{} bytes are answered", out.len());
    intake.disconnected();
}

fn batch(bytes: &[u8]) {
    let mut batch = Batch::new(bytes.len());
    for record in Records::new(bytes) {
        let Ok(record) = record else { return };
        assert_eq!(batch.put(record), Put::In);
    }
    assert_eq!(batch.bytes(), bytes, "a batch has another form");
}
