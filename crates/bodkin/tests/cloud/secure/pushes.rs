//! Push over https: to the subscriber itself and to nobody else.

use bodkin_trust::tls::{self, ClientCertificate, PeerCheck};
use bodkin_trust::{Certificate, Identity};

use super::{allow, keyed, register, register_publisher};
use crate::support::arrowhead::{event, subscription, system};
use crate::support::push::{Manner, PushSubscriber};
use crate::support::secure::{CLOUD, Client, DAY, SecureCloud, anchor, authority, issue, other_authority};

/// A subscriber's server with this certificate.
fn listening(identity: &Identity) -> PushSubscriber {
    let config = tls::server(identity, &[anchor()], ClientCertificate::Required, PeerCheck::default()).expect("a configuration");
    PushSubscriber::listen_secure(Manner::Answers, config)
}

/// Subscribes `name` at the inbox, publishes one event, and gives what becomes of its delivery.
fn publish_to(secure: &SecureCloud, name: &str, inbox: &PushSubscriber) {
    let (publisher, subscriber) = (format!("to-{name}"), Client::system(name));
    let source = register_publisher(&secure.cloud, &Client::system(&publisher), &publisher);
    let id = register(&secure.cloud, &subscriber, &keyed(name, inbox.port()));
    allow(&secure.cloud, id, source);
    let form = subscription(name, system(name, inbox.port()), "/notify");
    subscriber.expect(&secure.cloud, "POST", "/eventhandler/subscribe", Some(&form), 200);
    let body = event(name, system(&publisher, 1), "pushed");
    Client::system(&publisher).expect(&secure.cloud, "POST", "/eventhandler/publish", Some(&body), 200);
}

fn named(name: &str, alternative_names: &[&str]) -> Identity {
    issue(&authority(), &format!("{name}.{CLOUD}"), alternative_names, tls::now(), DAY)
}

#[test]
fn a_subscriber_with_a_key_is_pushed_to_over_https_as_the_event_handler() {
    let secure = SecureCloud::shared();
    let inbox = listening(&named("pushed", &["127.0.0.1"]));
    publish_to(&secure, "pushed", &inbox);
    inbox.wait_for_payload("pushed");
    let caller = Certificate::from_der(&inbox.caller().expect("it has shown a certificate")).expect("a certificate");
    assert_eq!(caller.common_name(), Some(format!("eventhandler.{CLOUD}").as_str()));
    // One connection for all.
    let body = event("pushed", system("to-pushed", 1), "again");
    Client::system("to-pushed").expect(&secure.cloud, "POST", "/eventhandler/publish", Some(&body), 200);
    inbox.wait_for_payload("again");
    assert_eq!(inbox.connections(), 1);
}

#[test]
fn whoever_is_not_the_subscriber_gets_nothing_and_is_told() {
    let secure = SecureCloud::start(["--push-timeout-ms", "2000"]);
    let expired = issue(&authority(), &format!("push-old.{CLOUD}"), &["127.0.0.1"], tls::now().minus(3 * DAY), DAY);
    let other_cloud = other_authority("testcloud2.aitia.arrowhead.eu");
    let foreign = issue(&other_cloud, "push-foreign.testcloud2.aitia.arrowhead.eu", &["127.0.0.1"], tls::now(), DAY);
    let cases = [
        ("push-thief", named("somebody", &["127.0.0.1"]), "somebody"),
        ("push-host", named("push-host", &["sensor.example"]), "not made out for 127.0.0.1"),
        ("push-no-san", named("push-no-san", &[]), "not made out for 127.0.0.1"),
        ("push-old", expired, "counts from"),
        ("push-foreign", foreign, "no authority"),
    ];
    for (name, identity, reason) in cases {
        let inbox = listening(&identity);
        publish_to(&secure, name, &inbox);
        super::wait_for_log(&secure.cloud, &["was not taken", reason]);
        assert_eq!(inbox.count(), 0, "{name}");
    }
    // A plain server where https is expected. Whether it answers at all depends on the random bytes that it takes for a request.
    let plain = PushSubscriber::listen(Manner::Answers);
    publish_to(&secure, "push-plain", &plain);
    super::wait_for_log(&secure.cloud, &["was not taken", "subscription=6"]);
    assert_eq!(plain.count(), 0);
}

#[test]
fn the_hosts_name_does_not_matter_where_the_operator_says_so() {
    let secure = SecureCloud::start(["--verify-host-names", "false"]);
    let inbox = listening(&named("push-anywhere", &["sensor.example"]));
    publish_to(&secure, "push-anywhere", &inbox);
    inbox.wait_for_payload("pushed");
    // Its own name does.
    let inbox = listening(&named("push-else", &["127.0.0.1"]));
    publish_to(&secure, "push-nobody", &inbox);
    super::wait_for_log(&secure.cloud, &["was not taken", "push-else"]);
    assert_eq!(inbox.count(), 0);
}
