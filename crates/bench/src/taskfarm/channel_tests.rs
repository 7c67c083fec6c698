use super::super::radio::{LONG_PAUSE_US, RETRIES_MAX};
use super::*;

/// A frame to this address, of so many octets.
fn frame(address: u16, octets: usize) -> Vec<u8> {
    let mut frame = vec![0x61, 0x88, 0, 0xcd, 0xab];
    frame.extend(address.to_le_bytes());
    frame.resize(octets, 0);
    frame
}

/// A channel whose stations are all on.
fn channel(stations: usize, loss: f64, seed: u64) -> Channel {
    let mut channel = Channel::new(stations, loss, Draws::new(seed));
    (0..stations).for_each(|station| channel.switch(station, true));
    channel
}

/// Lets everything happen: what was told when.
fn run(channel: &mut Channel) -> Vec<(u64, Told)> {
    let mut all = Vec::new();
    while let Some(at_us) = channel.next_us() {
        let mut told = Vec::new();
        channel.step(&mut told);
        all.extend(told.into_iter().map(|told| (at_us, told)));
    }
    all
}

#[test]
fn a_lone_frame_takes_what_the_standard_says() {
    for seed in 0..20 {
        let mut channel = channel(2, 0.0, seed);
        channel.send(1, frame(1, 50), 1000);
        let told = run(&mut channel);
        let (heard_us, free_us) = (told[0].0, told[1].0);
        assert_eq!(told[0].1, Told::Heard { station: 0, frame: frame(1, 50) });
        assert_eq!(told[1].1, Told::Free { station: 1 });
        let delay_us = heard_us - 1000 - ASSESSMENT_US - TURNAROUND_US - 56 * 32;
        assert!(delay_us.is_multiple_of(BACKOFF_US) && delay_us < 8 * BACKOFF_US, "{delay_us}");
        assert_eq!(free_us - heard_us, TURNAROUND_US + 11 * 32 + LONG_PAUSE_US);
        let usage = channel.usage(1);
        assert_eq!((usage.frames, usage.repeated, usage.given_up, usage.octets, usage.air_us), (1, 0, 0, 56, 56 * 32));
        assert_eq!((channel.usage(0).frames, channel.usage(0).octets), (0, 11));
    }
}

#[test]
fn what_is_always_lost_is_sent_four_times_and_given_up() {
    let mut channel = channel(2, 1.0, 1);
    channel.send(0, frame(2, 20), 0);
    assert_eq!(run(&mut channel).last().unwrap().1, Told::Free { station: 0 });
    let usage = channel.usage(0);
    assert_eq!((usage.frames, usage.repeated, usage.given_up), (u64::from(RETRIES_MAX) + 1, u64::from(RETRIES_MAX), 1));
}

#[test]
fn nobody_acknowledges_for_a_radio_that_is_off() {
    let mut channel = channel(2, 0.0, 1);
    channel.switch(1, false);
    channel.send(0, frame(2, 20), 0);
    assert_eq!(run(&mut channel).len(), 1);
    assert_eq!(channel.usage(0).given_up, 1);
    channel.send(0, frame(99, 20), 0);
    assert_eq!(run(&mut channel).len(), 1);
}

#[test]
fn what_is_for_all_is_heard_by_all_and_acknowledged_by_none() {
    let mut channel = channel(3, 0.0, 1);
    channel.send(1, frame(0xffff, 20), 0);
    let heard: Vec<_> = run(&mut channel).into_iter().map(|(_, told)| told).collect();
    let of = |station| Told::Heard { station, frame: frame(0xffff, 20) };
    assert_eq!(heard, [of(0), of(2), Told::Free { station: 1 }]);
    assert_eq!(channel.usage(0).octets, 0);
}

#[test]
fn stations_share_the_channel_and_lose_little() {
    const FRAMES: u64 = 500;
    let mut channel = channel(5, 0.0, 9);
    let mut left = [FRAMES; 5];
    (1..5).for_each(|station| channel.send(station, frame(1, 40), 0));
    let (mut heard, mut end_us) = (0, 0);
    while let Some(at_us) = channel.next_us() {
        let mut told = Vec::new();
        channel.step(&mut told);
        end_us = at_us;
        for told in told {
            match told {
                Told::Heard { station, .. } => heard += u64::from(station == 0),
                Told::Free { station } => {
                    left[station] -= 1;
                    if left[station] > 0 {
                        channel.send(station, frame(1, 40), at_us);
                    }
                }
            }
        }
    }
    let usages = (1..5).map(|station| channel.usage(station));
    let (least_us, given_up) = usages.fold((0, 0), |(least, lost), usage| (least + usage.least_us, lost + usage.given_up));
    assert_eq!(least_us, 4 * FRAMES * (46 * 32 + 192 + 11 * 32));
    // Who collides with another one four times in a row has lost a frame.
    assert!(given_up < 4 * FRAMES / 20 && heard + given_up >= 4 * FRAMES, "{heard} heard, {given_up} given up");
    assert!(end_us > least_us * 9 / 10 && end_us < 3 * least_us, "{end_us} us for {least_us} us of frames");
}

#[test]
fn a_seed_repeats_a_run() {
    let told = |seed| {
        let mut channel = channel(3, 0.2, seed);
        channel.send(1, frame(1, 90), 0);
        channel.send(2, frame(1, 30), 0);
        run(&mut channel)
    };
    assert_eq!(told(5), told(5));
    assert_ne!(told(5), told(6));
}
