//! A figure as a graph file of Bodkin's.

use std::fmt::Write;

use super::figures::Figure;

/// The name of the key that operators encrypt with.
pub const KEY: &str = "cpep";

/// What an operator computes. One that is filtered has so many points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// EKF: a Kalman filter with a state of two, step by step.
    Filter { points: u32 },
    /// FFT with all its complex points.
    FullSpectrum,
    /// FFT with the half that a real signal has.
    HalfSpectrum,
    /// FFT of which absolute values go on.
    Magnitudes,
    /// CAT.
    Concatenate,
    /// The first part of a fusion: two signals become one.
    Mean,
    /// AES-256-GCM.
    Encrypt,
}

/// An operator of a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// Its name.
    pub name: String,
    /// What it computes.
    pub kind: Kind,
    /// Topics of suppliers and names of operators.
    pub inputs: Vec<String>,
    /// Within which time of each other the inputs' events were made.
    pub relative_ns: Option<u64>,
}

/// How the graph is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Whether levels differ, and the more urgent ones stop the others.
    pub is_prioritised: bool,
    /// Whether outputs have operators in common.
    pub is_shared: bool,
    /// Whether what is not valid is not computed; otherwise it is marked.
    pub sheds: bool,
    /// Worker threads of a level.
    pub cores: u32,
    /// Per cent of the cores that its real-time threads may use.
    pub load_max_percent: u32,
}

impl Kind {
    fn keys(self) -> String {
        match self {
            Self::Filter { .. } => "kind = \"ekf\"\nmodel = \"constant_velocity\"\nprocess_noise = 0.01\nmeasurement_noise = 100\n".into(),
            Self::FullSpectrum => "kind = \"fft\"\nspectrum = \"full\"\n".into(),
            Self::HalfSpectrum => "kind = \"fft\"\nspectrum = \"half\"\n".into(),
            Self::Magnitudes => "kind = \"fft\"\nspectrum = \"magnitude\"\n".into(),
            Self::Concatenate => "kind = \"concatenate\"\n".into(),
            Self::Mean => "kind = \"map\"\nexpression = \"(x0 + x1) / 2\"\n".into(),
            Self::Encrypt => format!("kind = \"encrypt\"\nkey = \"{KEY}\"\n"),
        }
    }

    /// What shedding counts on: about the processor time of a round where `docs/experiments/graphs.md` was measured, rounded up.
    fn cost_us(self) -> u32 {
        match self {
            Self::Filter { points } => points.div_ceil(FILTER_POINTS_PER_US),
            Self::FullSpectrum | Self::HalfSpectrum | Self::Magnitudes => 15,
            Self::Concatenate => 5,
            Self::Mean => 40,
            Self::Encrypt => 20,
        }
    }
}

/// Points that a filter takes in a microsecond.
const FILTER_POINTS_PER_US: u32 = 4;

/// The text of a graph file.
pub fn graph_file(figure: &Figure, terms: Terms) -> String {
    let Terms { is_prioritised, is_shared, sheds, cores, .. } = terms;
    let mut text = String::new();
    let mut put = |part: std::fmt::Arguments<'_>| text.write_fmt(part).expect("text takes text");
    let on_invalid = if sheds { "shed" } else { "mark" };
    put(format_args!(
        "[graph]\nname = \"cpep\"\ncores = {cores}\npreemption = {is_prioritised}\nsharing = {is_shared}\non_invalid = \"{on_invalid}\"\n"
    ));
    for supplier in &figure.streams.suppliers {
        put(format_args!("\n[[supplier]]\ntopic = \"{}\"\nshape = \"u8[{}]\"\nform = \"base64\"\n", supplier.topic, supplier.points));
        put(format_args!("period_us = {}\n", (supplier.period_ns - figure.streams.jitter_ns) / 1000));
        if let Some(validity_ns) = figure.streams.validity_ns {
            put(format_args!("validity_us = {}\n", validity_ns / 1000));
        }
    }
    for Operator { name, kind, inputs, relative_ns } in &figure.operators {
        put(format_args!("\n[[operator]]\nname = \"{name}\"\n{}inputs = {inputs:?}\ncost_us = {}\n", kind.keys(), kind.cost_us()));
        if let Some(relative_ns) = relative_ns {
            put(format_args!("relative_validity_us = {}\n", relative_ns / 1000));
        }
    }
    for (consumer, end) in figure.streams.consumers.iter().zip(&figure.ends) {
        let level = if is_prioritised { consumer.level } else { 0 };
        put(format_args!("\n[[output]]\ntopic = \"{}\"\nfrom = \"{end}\"\nlevel = {level}\nform = \"base64\"\n", consumer.topic));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::streams::Arrivals;
    use super::*;

    #[test]
    fn a_figure_is_written_with_its_terms() {
        let terms = Terms { is_prioritised: true, is_shared: false, sheds: true, cores: 2, load_max_percent: 95 };
        let figure = Figure::in_common(1, Arrivals { jitter_ns: 2_500_000, ..Arrivals::TOGETHER }, Some(10_000_000));
        let file = graph_file(&figure, terms);
        for part in [
            "cores = 2\npreemption = true\nsharing = false\non_invalid = \"shed\"\n",
            "topic = \"IN-ALL-1-5\"\nshape = \"u8[1024]\"\nform = \"base64\"\nperiod_us = 7500\nvalidity_us = 10000\n",
            "name = \"1 ekf 3\"\nkind = \"ekf\"\n",
            "inputs = [\"1 fft 2\", \"1 fft 3\", \"1 fft 4\"]\n",
            "topic = \"OUT-LOW-1\"\nfrom = \"1 low sealed\"\nlevel = 2\n",
        ] {
            assert!(file.contains(part), "{part} is not in {file}");
        }
        let flat = graph_file(&figure, Terms { is_prioritised: false, sheds: false, ..terms });
        assert!(flat.contains("on_invalid = \"mark\"") && !flat.contains("level = 1") && !flat.contains("level = 2"));
    }

    #[test]
    fn relative_validity_is_where_suppliers_meet() {
        let figure = Figure::separate([1; 3], Arrivals::TOGETHER, None, [Some(5_000_000), Some(5_500_000), None]);
        let file = graph_file(&figure, Terms { is_prioritised: true, is_shared: true, sheds: true, cores: 1, load_max_percent: 95 });
        assert_eq!(file.matches("relative_validity_us").count(), 2);
        assert!(file.contains("name = \"m1 all\"\nkind = \"concatenate\"\n") && file.contains("relative_validity_us = 5500\n"), "{file}");
        assert!(!file.contains("\nvalidity_us"));
    }
}
