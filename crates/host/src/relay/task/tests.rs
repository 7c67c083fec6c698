//! Links to a broker that speaks STOMP by a script, and to places where nobody is.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{
    super::{
        Heard, Relays,
        lab::{Cloud, SOON, heard, message, until},
    },
    *,
};

/// A broker by a script.
struct Broker {
    listener: TcpListener,
    relays: Relays,
    place: RelayPlace,
}

impl Broker {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = RelayPlace {
            address: "127.0.0.1".into(),
            port: listener.local_addr().unwrap().port(),
            secure: false,
            authentication_info: None,
        };
        Self { listener, relays: Cloud::new("one").relays(), place }
    }

    /// The next connection, behind its CONNECT.
    async fn accept(&self) -> Script {
        let (stream, _) = timeout(SOON, self.listener.accept()).await.expect("it is connected to soon").unwrap();
        let mut script = Script { stream, read: Vec::new() };
        assert!(script.frame().await.starts_with("CONNECT\naccept-version:1.2\n"));
        script.say("CONNECTED\nversion:1.2\nheart-beat:0,0\n\n\0").await;
        script
    }
}

struct Script {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Script {
    async fn say(&mut self, bytes: &str) {
        self.stream.write_all(bytes.as_bytes()).await.unwrap();
    }

    /// The client's next frame, soon.
    async fn frame(&mut self) -> String {
        let reading = async {
            loop {
                if let Some(end) = self.read.iter().position(|byte| *byte == 0) {
                    let frame: Vec<u8> = self.read.drain(..=end).collect();
                    return String::from_utf8(frame).unwrap().trim_start_matches('\n').to_owned();
                }
                assert_ne!(self.stream.read_buf(&mut self.read).await.unwrap(), 0, "the client has closed");
            }
        };
        timeout(SOON, reading).await.expect("a frame comes soon")
    }

    /// The next frame is a SUBSCRIBE, which is confirmed; gives its number.
    async fn subscribed(&mut self, destination: &str) -> String {
        let frame = self.frame().await;
        assert!(frame.starts_with("SUBSCRIBE\n") && frame.contains(&format!("destination:{destination}\n")), "{frame}");
        let header = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).expect("the header is there").to_owned();
        self.say(&format!("RECEIPT\nreceipt-id:{}\n\n\0", header("receipt:"))).await;
        header("id:")
    }

    async fn message(&mut self, subscription: &str, ack: &str, text: &str) {
        self.say(&format!("MESSAGE\nsubscription:{subscription}\nack:{ack}\nmessage-id:1\ndestination:/queue/q\n\n{text}\0\n")).await;
    }
}

fn queue() -> Destination {
    Destination::queue("q").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_brokers_messages_are_acknowledged_when_they_are_taken() {
    let broker = Broker::new().await;
    let link = broker.relays.link(&broker.place);
    let (listening, mut script) = tokio::join!(async { link.listen(&queue()).await.unwrap() }, async {
        let mut script = broker.accept().await;
        let subscription = script.subscribed("/queue/q").await;
        script.message(&subscription, "a1", "first").await;
        script.message(&subscription, "a2", "second").await;
        script
    });
    let mut messages = listening;
    assert_eq!(link.state(), LinkState::Open(Protocol::Stomp));
    assert_eq!(message(&mut messages).await, "first");
    assert_eq!(script.frame().await, "ACK\nid:a1\n\n\0");
    link.send(&queue(), "out".into()).await.unwrap();
    assert_eq!(script.frame().await, "SEND\ndestination:/queue/q\namq-msg-type:text\n\nout\0", "the second was not taken");
    assert_eq!(message(&mut messages).await, "second");
    assert_eq!(script.frame().await, "ACK\nid:a2\n\n\0");
    drop(messages);
    assert!(script.frame().await.starts_with("UNSUBSCRIBE\n"));
    broker.relays.keep(|_| false);
    assert!(script.frame().await.starts_with("DISCONNECT\n"), "it says that it goes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ack_of_a_connection_that_broke_is_not_sent_by_the_next() {
    let broker = Broker::new().await;
    let link = broker.relays.link(&broker.place);
    let (messages, mut script) = tokio::join!(async { link.listen(&queue()).await.unwrap() }, async {
        let mut script = broker.accept().await;
        let subscription = script.subscribed("/queue/q").await;
        script.message(&subscription, "old", "first").await;
        script
    });
    let mut messages = messages;
    // It has come before the connection breaks, and is taken behind that.
    script.say("\n").await;
    link.send(&queue(), "x".into()).await.unwrap();
    script.frame().await;
    until("the message has come", || !messages.delivered.is_empty()).await;
    drop(script);
    let mut script = broker.accept().await;
    let subscription = script.subscribed("/queue/q").await;
    assert_eq!(message(&mut messages).await, "first");
    assert_eq!(heard(&mut messages).await, Ok(Heard::Interrupted));
    script.message(&subscription, "new", "second").await;
    assert_eq!(message(&mut messages).await, "second");
    assert_eq!(script.frame().await, "ACK\nid:new\n\n\0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_refuses_or_speaks_something_else_is_told_of_in_its_words() {
    let broker = Broker::new().await;
    let link = broker.relays.link(&broker.place);
    let listens = async { link.listen(&queue()).await.map(drop) };
    let (refused, _script) = tokio::join!(listens, async {
        let mut script = broker.accept().await;
        let frame = script.frame().await;
        let receipt = frame.lines().find_map(|line| line.strip_prefix("receipt:")).unwrap();
        script.say(&format!("ERROR\nreceipt-id:{receipt}\nmessage:User bodkin is not authorized to read from q\n\n\0")).await;
        script
    });
    let error = refused.unwrap_err();
    assert!(matches!(&error, RelayError::Refused { words, .. } if words.contains("not authorized")), "{error}");

    let sends = async { link.send(&queue(), "x".into()).await };
    let (refused, ()) = tokio::join!(sends, async {
        let (mut stream, _) = broker.listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        // Whoever closes on what it has not read resets the connection, and takes its words back.
        let _ = timeout(SOON, stream.read_to_end(&mut Vec::new())).await;
    });
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("is it a STOMP port?"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nobody_is_it_is_told_at_once_and_tried_again_when_somebody_asks() {
    let broker = Broker::new().await;
    let place = broker.place.clone();
    drop(broker.listener);
    let link = broker.relays.link(&place);
    let begun = Instant::now();
    for _ in 0..3 {
        let error = link.send(&queue(), "x".into()).await.unwrap_err();
        assert!(matches!(&error, RelayError::Down { .. }), "{error}");
    }
    // Not more often than each second, but not put off either.
    let took = begun.elapsed();
    assert!((RETRY_MIN..SOON).contains(&took), "{took:?}");
    // It may be trying once more just now.
    until("it is told why", || matches!(link.state(), LinkState::Down(reason) if reason.contains("refused"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_reads_nothing_holds_up_who_sends_and_whoever_gives_up_sends_nothing() {
    let broker = Broker::new().await;
    let link = broker.relays.link(&broker.place);
    let script = async { broker.accept().await };
    let piece = "x".repeat(1024 * 1024);
    let sends = async {
        let mut sent = 0;
        while timeout(Duration::from_secs(1), link.send(&queue(), piece.clone())).await.is_ok() {
            sent += 1;
            assert!(sent < 200, "nobody holds it up");
        }
        sent
    };
    let (mut script, sent) = tokio::join!(script, sends);
    let mut came = 0;
    while came < sent {
        assert!(script.frame().await.starts_with("SEND\n"));
        came += 1;
    }
    link.send(&queue(), "last".into()).await.unwrap();
    assert!(script.frame().await.ends_with("\n\nlast\0"), "what was given up has not gone");
}
