//! The graphs of Wang 2019, Figures 2.6 and 2.7. The drawings are not in the text; what they are read as is in `docs/experiments/graphs.md`.

use super::graph_file::{Kind, Operator};
use super::streams::{Arrivals, Streams};
use crate::draws::Draws;

const MS: u64 = 1_000_000;

/// What is run: streams, and the operators between.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What goes in and out.
    pub streams: Streams,
    /// What is done in between.
    pub operators: Vec<Operator>,
    /// The operator behind each consumer's topic.
    pub ends: Vec<String>,
}

impl Figure {
    /// Figure 2.6: so many streams of each level, with nothing in common.
    ///
    /// | level | suppliers | operators | result |
    /// |---|---|---|---|
    /// | high | 2 of 512 points, 5 ms | a filter and a transform of each, put together | 1,024 points of 16 bytes |
    /// | middle | 4 of 1,024 points, 10 ms | a filter and a transform of each, put together, encrypted | 2,052 points of 8 bytes, and 48 bytes |
    /// | low | 2 of 2,048 points, 20 ms | their mean, filtered | 2,048 points of 8 bytes |
    pub fn separate(copies: [u32; 3], arrivals: Arrivals, validity_ns: Option<u64>, relative_ns: [Option<u64>; 3]) -> Self {
        let mut made = Builder::new(arrivals, validity_ns);
        let [high, middle, low] = copies;
        for copy in 1..=high {
            let spectra: Vec<String> =
                made.supply("HIGH", copy, &[512; 2], 5 * MS).into_iter().map(|topic| made.spectrum(&topic, Kind::FullSpectrum)).collect();
            let end = made.operate(format!("h{copy} all"), Kind::Concatenate, spectra, relative_ns[0]);
            made.consume(0, copy, 5 * MS, end);
        }
        for copy in 1..=middle {
            let spectra: Vec<String> =
                made.supply("MIDDLE", copy, &[1024; 4], 10 * MS).into_iter().map(|topic| made.spectrum(&topic, Kind::Magnitudes)).collect();
            let all = made.operate(format!("m{copy} all"), Kind::Concatenate, spectra, relative_ns[1]);
            let end = made.operate(format!("m{copy} sealed"), Kind::Encrypt, vec![all], None);
            made.consume(1, copy, 10 * MS, end);
        }
        for copy in 1..=low {
            let topics = made.supply("LOW", copy, &[2048; 2], 20 * MS);
            let mean = made.operate(format!("l{copy} mean"), Kind::Mean, topics, relative_ns[2]);
            let end = made.operate(format!("l{copy} filtered"), Kind::Filter { points: 2048 }, vec![mean], None);
            made.consume(2, copy, 20 * MS, end);
        }
        made.figure
    }

    /// Figure 2.7: so many copies of a graph whose levels have operators in common. Eight suppliers with a period of 10 ms, s1 to s4 of 512 points and s5 to s8 of 1,024; each two of them become
    /// one signal, which is filtered (EKF 1 to 4) and transformed (FFT 1 to 4).
    ///
    /// | level | takes | result |
    /// |---|---|---|
    /// | high | FFT 1 and 2, put together | 514 points of 16 bytes |
    /// | middle | FFT 2, 3 and 4, put together, encrypted | 1,283 points of 16 bytes, and 48 bytes |
    /// | low | FFT 4, encrypted | 513 points of 16 bytes, and 48 bytes |
    pub fn in_common(copies: u32, arrivals: Arrivals, validity_ns: Option<u64>) -> Self {
        let mut made = Builder::new(arrivals, validity_ns);
        for copy in 1..=copies {
            let topics = made.supply("ALL", copy, &[512, 512, 512, 512, 1024, 1024, 1024, 1024], 10 * MS);
            let spectra: Vec<String> = topics
                .chunks(2)
                .enumerate()
                .map(|(at, pair)| {
                    let points = if at < 2 { 512 } else { 1024 };
                    let number = at + 1;
                    let mean = made.operate(format!("{copy} mean {number}"), Kind::Mean, pair.to_vec(), None);
                    let filtered = made.operate(format!("{copy} ekf {number}"), Kind::Filter { points }, vec![mean], None);
                    made.operate(format!("{copy} fft {number}"), Kind::HalfSpectrum, vec![filtered], None)
                })
                .collect();
            let [one, two, three, four] = spectra.try_into().expect("eight suppliers are four pairs");
            let high = made.operate(format!("{copy} high"), Kind::Concatenate, vec![one, two.clone()], None);
            made.consume(0, copy, 10 * MS, high);
            let all = made.operate(format!("{copy} middle"), Kind::Concatenate, vec![two, three, four.clone()], None);
            let middle = made.operate(format!("{copy} middle sealed"), Kind::Encrypt, vec![all], None);
            made.consume(1, copy, 10 * MS, middle);
            let low = made.operate(format!("{copy} low sealed"), Kind::Encrypt, vec![four], None);
            made.consume(2, copy, 10 * MS, low);
        }
        made.figure
    }
}

struct Builder {
    figure: Figure,
    arrivals: Arrivals,
    draws: Draws,
}

impl Builder {
    fn new(arrivals: Arrivals, validity_ns: Option<u64>) -> Self {
        let figure = Figure { streams: Streams::new(arrivals, validity_ns), operators: Vec::new(), ends: Vec::new() };
        Self { figure, arrivals, draws: Draws::new(arrivals.seed) }
    }

    fn supply(&mut self, of: &str, copy: u32, points: &[u32], period_ns: u64) -> Vec<String> {
        let topics: Vec<(String, u32)> =
            points.iter().enumerate().map(|(at, points)| (format!("IN-{of}-{copy}-{}", at + 1), *points)).collect();
        self.figure.streams.supply(&topics, period_ns, self.arrivals, &mut self.draws)
    }

    fn operate(&mut self, name: String, kind: Kind, inputs: Vec<String>, relative_ns: Option<u64>) -> String {
        self.figure.operators.push(Operator { name: name.clone(), kind, inputs, relative_ns });
        name
    }

    /// A topic, filtered and transformed.
    fn spectrum(&mut self, topic: &str, kind: Kind) -> String {
        let points = self.figure.streams.suppliers.iter().find(|supplier| supplier.topic == topic).map_or(0, |supplier| supplier.points);
        let filtered = self.operate(format!("{topic} filtered"), Kind::Filter { points }, vec![topic.to_owned()], None);
        self.operate(format!("{topic} spectrum"), kind, vec![filtered], None)
    }

    fn consume(&mut self, level: usize, copy: u32, period_ns: u64, end: String) {
        self.figure.streams.consume(level, copy, period_ns);
        self.figure.ends.push(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_are_as_many_and_as_often_as_in_the_text() {
        let figure = Figure::separate([3, 15, 12], Arrivals::TOGETHER, None, [None; 3]);
        let of = |points| figure.streams.suppliers.iter().filter(|supplier| supplier.points == points).count();
        assert_eq!([512, 1024, 2048].map(of), [6, 60, 24]);
        assert_eq!([0, 1, 2].map(|level| figure.streams.results_per_s(level)), [600.0, 1500.0, 600.0]);
        assert_eq!((figure.operators.len(), figure.streams.timers.len()), (3 * 5 + 15 * 10 + 12 * 2, 30));
    }

    #[test]
    fn levels_have_two_transforms_in_common() {
        let figure = Figure::in_common(2, Arrivals::TOGETHER, Some(10 * MS));
        let readers = |name: &str| figure.operators.iter().filter(|operator| operator.inputs.iter().any(|input| input == name)).count();
        assert_eq!([1, 2, 3, 4].map(|number| readers(&format!("2 fft {number}"))), [1, 2, 1, 2]);
        assert_eq!((figure.streams.timers.len(), figure.streams.consumers.len(), figure.operators.len()), (2, 6, 32));
    }
}
