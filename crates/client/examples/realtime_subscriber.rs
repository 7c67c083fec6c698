//! Prints the events of a topic from one broker or from both of a pair, each once, and what was lost. The program awaits what comes:
//! `cargo run -p bodkin-client --example realtime_subscriber COUNT 127.0.0.1:5570 127.0.0.1:5571`

use std::{env, error::Error, time::Duration};

use bodkin_client::realtime::{BrokerAddress, Brokers, RealtimeSubscriber, SubscriberConfig, SubscriberReport, Subscription};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let topic = arguments.next().ok_or("expected the name of a topic")?;
    let addresses = arguments.map(|address| address.parse()).collect::<Result<Vec<BrokerAddress>, _>>()?;
    let brokers = match &addresses[..] {
        [address] => Brokers::one("printer", address.clone()),
        [first, second] => Brokers::pair("printer", first.clone(), second.clone()),
        _ => return Err("expected one address or two, such as 127.0.0.1:5570 or ipc:///run/bodkin/zmtp.ipc".into()),
    };
    let config = SubscriberConfig { acknowledge_every: 8, acknowledge_after: Duration::from_millis(1), window: 1024, streams_max: 64 };
    let mut subscriber = RealtimeSubscriber::connect(brokers, config)?;
    // Two losses in a row are more than this program can take, and for ten seconds events wait for it when it is away.
    let subscription = Subscription { loss_tolerance: Some(1), required_for: Some(Duration::from_secs(10)), ..Subscription::default() };
    subscriber.subscribe(&topic, subscription);
    loop {
        subscriber.ready(Duration::from_secs(60)).await?;
        subscriber.turn(Duration::ZERO, |report| match report {
            SubscriberReport::Event(event) => println!("{} {}", event.header.sequence.0, String::from_utf8_lossy(event.payload)),
            other => eprintln!("{other:?}"),
        })?;
    }
}
