//! Both sides' reports of one run, and the figures in them.

use super::publisher::PublisherReport;
use super::tally::SubscriberReport;
use crate::expectation::Faults;
use crate::load::Measured;
use crate::statistics::{Figure, Latencies, Unit};

/// Both sides' reports of one run.
pub struct Run {
    /// What the publishers did.
    pub published: PublisherReport,
    /// What came to the subscribers.
    pub received: SubscriberReport,
    /// Most memory of the server.
    pub peak_rss_mb: Option<f64>,
}

impl Run {
    /// From each publisher's send to each delivery.
    pub fn latency(&self) -> Latencies {
        Latencies::from_counts(&self.received.latency)
    }

    /// Mean length of what a subscriber got for an event; `None` without any.
    pub fn bytes_per_delivery(&self) -> Option<usize> {
        usize::try_from(self.received.bytes.checked_div(self.received.deliveries)?).ok()
    }

    /// What stands behind the figures. Faults are what the publishers were refused; what was lost or late is a figure.
    pub fn measured(&self) -> Measured {
        let faults = Faults { count: self.published.refused, first: self.published.refusals.clone() };
        Measured { latencies: self.latency(), faults, time_line: self.received.time_line.clone() }
    }

    /// The figures of this run.
    pub fn figures(&self) -> Vec<Figure> {
        let (published, received) = (&self.published, &self.received);
        let events = published.sent.iter().sum::<u64>();
        let seconds = |end_ns: u64| end_ns.saturating_sub(published.first_ns).max(1) as f64 / 1e9;
        let mut figures = self.latency().figures("", Unit::Us, &[50.0, 90.0, 99.0, 99.9]);
        figures.push(Figure::median("events_per_s", events as f64 / seconds(published.last_ns)));
        figures.push(Figure::median("deliveries_per_s", received.deliveries as f64 / seconds(received.last_ns)));
        figures.push(Figure::sum("lost", received.lost));
        figures.push(Figure::sum("out_of_order", received.out_of_order));
        figures.push(Figure::sum("duplicates", received.duplicates));
        figures.push(Figure::sum("foreign", received.foreign));
        figures.push(Figure::sum("told_lost", received.told_lost));
        figures.push(Figure::sum("errors", published.refused));
        if let Some(peak_rss_mb) = self.peak_rss_mb {
            figures.push(Figure::max("peak_rss_mb", peak_rss_mb));
        }
        figures.extend(Latencies::from_counts(&published.acknowledged).figures("acknowledged_", Unit::Us, &[50.0, 99.0]));
        figures.push(Figure::sum("events", events));
        figures.push(Figure::sum("deliveries", received.deliveries));
        figures.push(Figure::sum("deliveries_to_others", received.others));
        figures.push(Figure::median("duration_s", seconds(published.last_ns)));
        figures
    }

    /// This run against another: how many times as long.
    pub fn ratios(&self, floor: &Self) -> Vec<Figure> {
        let (ours, floor) = (self.latency(), floor.latency());
        let ratio = |ours: f64, floor: f64| if floor > 0.0 { ours / floor } else { 0.0 };
        vec![
            Figure::median("p50_ratio", ratio(ours.percentile(50.0, Unit::Us), floor.percentile(50.0, Unit::Us))),
            Figure::median("mean_ratio", ratio(ours.mean(Unit::Us), floor.mean(Unit::Us))),
            Figure::median("p99_ratio", ratio(ours.percentile(99.0, Unit::Us), floor.percentile(99.0, Unit::Us))),
        ]
    }
}
