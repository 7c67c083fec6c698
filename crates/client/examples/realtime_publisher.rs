//! Publishes a number each 100 ms to one broker or to both of a pair, and says what becomes of them:
//! `cargo run -p bodkin-client --example realtime_publisher 127.0.0.1:5570 127.0.0.1:5571`

use std::{env, error::Error, time::Duration};

use bodkin_client::realtime::{BrokerAddress, Brokers, PublishError, RealtimePublisher, Retention, WhenFull};

fn main() -> Result<(), Box<dyn Error>> {
    let addresses = env::args().skip(1).map(|address| address.parse()).collect::<Result<Vec<BrokerAddress>, _>>()?;
    let brokers = match &addresses[..] {
        [address] => Brokers::one("counter", address.clone()),
        [first, second] => Brokers::pair("counter", first.clone(), second.clone()),
        _ => return Err("expected one address or two, such as 127.0.0.1:5570 or ipc:///run/bodkin/zmtp.ipc".into()),
    };
    let mut publisher = RealtimePublisher::connect(brokers)?;
    // The newest event in any case, and up to 600 that are not covered: a minute without a broker.
    let topic = publisher.add_topic("COUNT", Retention::new(1, 600, WhenFull::Block));
    for number in 0u64.. {
        match publisher.publish(topic, number.to_string().as_bytes()) {
            Ok(_) => {}
            Err(full @ PublishError::Full(_)) => eprintln!("{number} is not taken: {full}"),
            Err(error) => return Err(error.into()),
        }
        publisher.turn_for(Duration::from_millis(100), |report| println!("{report:?}"))?;
    }
    Ok(())
}
