//! A connection with a server whose bytes are written by hand.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const INFO: &str = "INFO {\"server_name\":\"n1\",\"headers\":true,\"max_payload\":100}\r\n";

fn subject(name: &str) -> Subject {
    Subject::new(name).expect("a subject")
}

fn client() -> Client {
    let options = Options {
        name: "edge-7".to_owned(),
        credentials: Credentials::Token("word".to_owned()),
        inbox: subject("_INBOX.r"),
        is_encrypted: false,
        greeting_wait_max: 2 * SECOND,
        silence_max: 10 * SECOND,
    };
    Client::new(options, Duration::ZERO)
}

fn hears(client: &mut Client, bytes: &str, now: Duration) -> Result<Vec<Event>, Fault> {
    let mut events = Vec::new();
    client.receive(bytes.as_bytes(), now, &mut events).map(|()| events)
}

fn says(client: &mut Client) -> String {
    let mut out = Vec::new();
    client.take_out(&mut out);
    String::from_utf8(out).expect("text")
}

fn open() -> Client {
    let mut client = client();
    assert_eq!(hears(&mut client, INFO, Duration::ZERO), Ok(Vec::new()));
    assert_eq!(hears(&mut client, "PONG\r\n", Duration::ZERO), Ok(vec![Event::Open]));
    says(&mut client);
    client
}

#[test]
fn it_says_who_it_is_and_is_open_behind_the_pong() {
    let mut client = client();
    assert_eq!(says(&mut client), "", "the server speaks first");
    assert_eq!(client.request(&subject("a"), &Headers::default(), b"", Duration::ZERO, SECOND), Err(NotTaken::Closed));
    assert_eq!(hears(&mut client, INFO, Duration::ZERO), Ok(Vec::new()));
    let said = says(&mut client);
    assert!(said.starts_with("CONNECT {") && said.contains("\"auth_token\":\"word\""), "{said}");
    assert!(said.ends_with("}\r\nSUB _INBOX.r.* 1\r\nPING\r\n"), "{said}");
    assert!(!client.is_open());
    assert_eq!(hears(&mut client, "PONG\r\n", Duration::ZERO), Ok(vec![Event::Open]));
    assert!(client.is_open());
}

#[test]
fn a_request_has_one_answer_and_what_nobody_asked_for_is_passed_over() {
    let mut client = open();
    let mut ask = |name: &str| client.request(&subject(name), &Headers::default(), b"?", Duration::ZERO, SECOND).expect("it is taken");
    let (first, second, third) = (ask("a"), ask("b"), ask("c"));
    assert_eq!(says(&mut client), "PUB a _INBOX.r.1 1\r\n?\r\nPUB b _INBOX.r.2 1\r\n?\r\nPUB c _INBOX.r.3 1\r\n?\r\n");
    let answers = "MSG _INBOX.r.2 1 2\r\nno\r\nMSG _INBOX.r.2 1 2\r\nno\r\nMSG _INBOX.r.9 1 1\r\nx\r\nMSG _INBOX.r.x 1 1\r\nx\r\nMSG other 1 1\r\nx\r\n\
                   HMSG _INBOX.r.1 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n";
    let events = hears(&mut client, answers, Duration::ZERO).expect("it goes on");
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(matches!(&events[0], Event::Answer(request, message) if *request == second && message.payload == b"no"));
    assert_eq!(events[1], Event::NobodyListens(first));
    let mut events = Vec::new();
    assert_eq!(client.beat(Duration::from_millis(999), &mut events), Ok(SECOND));
    assert_eq!(events, []);
    client.beat(SECOND, &mut events).expect("it goes on");
    assert_eq!(events, [Event::NoAnswer(third)]);
    assert_eq!(hears(&mut client, "MSG _INBOX.r.3 1 2\r\nno\r\n", SECOND), Ok(Vec::new()), "it was given up");
}

#[test]
fn what_is_listened_to_is_heard_and_what_is_published_waits_for_no_answer() {
    let mut client = client().listening_below(subject("cloud.events"));
    assert_eq!(client.publish(&subject("cloud.events.a"), &Headers::default(), b"x"), Err(NotTaken::Closed));
    hears(&mut client, INFO, Duration::ZERO).expect("it goes on");
    assert!(says(&mut client).contains("SUB _INBOX.r.* 1\r\nSUB cloud.events.* 2\r\nPING\r\n"));
    hears(&mut client, "PONG\r\n", Duration::ZERO).expect("it goes on");
    client.publish(&subject("cloud.events.a"), &Headers::default().with("N", 7), b"x").expect("it is taken");
    assert_eq!(says(&mut client), "HPUB cloud.events.a 18 19\r\nNATS/1.0\r\nN: 7\r\n\r\nx\r\n");
    let events = hears(&mut client, "MSG cloud.events.b 2 2\r\nhi\r\n", Duration::ZERO).expect("it goes on");
    assert!(
        matches!(&events[..], [Event::Heard(0, message)] if message.subject == "cloud.events.b" && message.payload == b"hi"),
        "{events:?}"
    );
}

#[test]
fn whose_a_message_is_says_the_number_of_the_subscription() {
    let mut client = client().listening_below(subject("a")).listening_below(subject("_INBOX.pulled"));
    hears(&mut client, &format!("{INFO}PONG\r\n"), Duration::ZERO).expect("it goes on");
    assert!(says(&mut client).contains("SUB _INBOX.r.* 1\r\nSUB a.* 2\r\nSUB _INBOX.pulled.* 3\r\nPING\r\n"));
    let asked = client.request(&subject("x"), &Headers::default(), b"", Duration::ZERO, SECOND).expect("it is taken");
    // A consumer's message has the subject that it was published to; one that looks like an answer and comes by another number is none.
    let come = "MSG commands.all.HEAT 3 1 \r\nx\r\nMSG _INBOX.r.1 2 2\r\nno\r\nMSG _INBOX.r.1 9 2\r\nno\r\nMSG _INBOX.r.1 1 2\r\nno\r\n";
    let events = hears(&mut client, &come.replace("3 1 ", "3 1"), Duration::ZERO).expect("it goes on");
    let heard = |event: &Event| matches!(event, Event::Heard(1, message) if message.subject == "commands.all.HEAT");
    assert!(events.len() == 3 && heard(&events[0]) && matches!(&events[1], Event::Heard(0, _)), "{events:?}");
    assert!(matches!(&events[2], Event::Answer(request, _) if *request == asked), "{events:?}");
}

#[test]
fn a_message_is_taken_as_far_as_the_server_takes_it_and_there_is_room() {
    let mut client = open();
    let too_long = client.request(&subject("a"), &Headers::default(), &[b'x'; 101], Duration::ZERO, SECOND);
    assert!(matches!(too_long, Err(NotTaken::TooLong { bytes_max: 100, .. })));
    assert_eq!(says(&mut client), "", "nothing of it is written");
    for _ in 0..REQUESTS_MAX {
        client.request(&subject("a"), &Headers::default(), b"", Duration::ZERO, SECOND).expect("there is room");
    }
    assert_eq!(client.request(&subject("a"), &Headers::default(), b"", Duration::ZERO, SECOND), Err(NotTaken::Full));
    // So few of them are no many requests: their bytes have no room.
    let mut client = open();
    hears(&mut client, &INFO.replace("100", "1048576"), Duration::ZERO).expect("it may say so again");
    let long = vec![b'x'; 1_000_000];
    let mut ask = || client.request(&subject("a"), &Headers::default(), &long, Duration::ZERO, SECOND);
    let refused = (0..=OUT_BYTES_MAX / long.len() + 1).find_map(|_| ask().err());
    assert_eq!(refused, Some(NotTaken::Full));
}

#[test]
fn a_silent_server_is_asked_and_then_given_up() {
    let (mut client, mut events) = (open(), Vec::new());
    assert_eq!(client.beat(9 * SECOND, &mut events), Ok(10 * SECOND));
    assert_eq!(says(&mut client), "");
    assert_eq!(client.beat(10 * SECOND, &mut events), Ok(20 * SECOND));
    assert_eq!(says(&mut client), "PING\r\n");
    assert_eq!(hears(&mut client, "PONG\r\nPING\r\n", 12 * SECOND), Ok(Vec::new()));
    assert_eq!(says(&mut client), "PONG\r\n");
    assert_eq!(client.beat(22 * SECOND, &mut events), Ok(32 * SECOND));
    assert_eq!(client.beat(32 * SECOND, &mut events), Err(Fault::Silent(20 * SECOND)));
    assert_eq!(hears(&mut client, "PONG\r\n", 32 * SECOND), Err(Fault::Silent(20 * SECOND)), "it stays closed");
    let mut mute = self::client();
    assert_eq!(mute.beat(SECOND, &mut events), Ok(2 * SECOND));
    assert_eq!(mute.beat(2 * SECOND, &mut events), Err(Fault::NoInfo(2 * SECOND)));
}

#[test]
fn what_ends_a_connection_is_told_and_what_does_not_is_an_event() {
    for (said, fault) in [
        ("PONG\r\n", Fault::NoGreeting),
        ("INFO {\"max_payload\":1,\"headers\":true,\"tls_required\":true}\r\n", Fault::TlsRequired),
        ("INFO {\"max_payload\":1,\"server_name\":\"old\"}\r\n", Fault::NoHeaders("old".to_owned())),
    ] {
        assert_eq!(hears(&mut client(), said, Duration::ZERO), Err(fault));
    }
    let denied = Fault::Denied("Authorization Violation".to_owned());
    assert_eq!(hears(&mut client(), &format!("{INFO}-ERR 'Authorization Violation'\r\n"), Duration::ZERO), Err(denied));
    let mut client = open();
    let refused = Event::Refused("Permissions Violation for Publish to \"a\"".to_owned());
    assert_eq!(hears(&mut client, "-ERR 'Permissions Violation for Publish to \"a\"'\r\n", Duration::ZERO), Ok(vec![refused]));
    let leaving = "INFO {\"max_payload\":5000000,\"headers\":true,\"ldm\":true}\r\n";
    assert_eq!(hears(&mut client, leaving, Duration::ZERO), Ok(vec![Event::Leaving]));
    assert_eq!(says(&mut client), "", "it has greeted already");
    let mut events = Vec::new();
    let stuck = client.receive("PING\r\n".repeat(OUT_BYTES_STUCK / 6 + 2).as_bytes(), Duration::ZERO, &mut events);
    assert_eq!(stuck, Err(Fault::Stuck));
}
