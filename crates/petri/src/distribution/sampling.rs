//! How times are drawn.

use std::sync::LazyLock;

use super::Distribution;
use crate::{random::Draws, special::erfc};

/// A law with what drawing from it needs computed beforehand, for whoever draws many times.
#[derive(Clone, Debug)]
pub enum Sampler {
    /// An exponential law of this mean.
    Exponential(f64),
    /// An Erlang or gamma law.
    Gamma(GammaSampler),
    /// From the first number on, so wide as the second.
    Uniform(f64, f64),
    /// Always this.
    Deterministic(f64),
    /// Any other law.
    Other(Distribution),
}

impl Sampler {
    /// Draws from `distribution`.
    pub fn new(distribution: &Distribution) -> Self {
        match distribution {
            Distribution::Exponential(law) => Self::Exponential(1.0 / law.rate()),
            Distribution::Erlang(law) => Self::Gamma(GammaSampler::new(f64::from(law.shape()), law.rate())),
            Distribution::Gamma(law) => Self::Gamma(GammaSampler::new(law.shape(), law.rate())),
            Distribution::Uniform(law) => Self::Uniform(law.min(), law.max() - law.min()),
            Distribution::Deterministic(law) => Self::Deterministic(law.value()),
            other => Self::Other(other.clone()),
        }
    }

    /// One time.
    #[inline]
    pub fn sample(&self, draws: &mut Draws) -> f64 {
        match self {
            Self::Exponential(mean) => -draws.uniform().ln() * mean,
            Self::Gamma(gamma) => gamma.sample(draws),
            Self::Uniform(min, width) => min + width * draws.uniform(),
            Self::Deterministic(value) => *value,
            Self::Other(distribution) => distribution.law().sample(draws),
        }
    }
}

/// Draws from a gamma law by Marsaglia and Tsang's method ("A simple method for generating gamma variables", ACM TOMS 26, 2000): a
/// cubed normal number, rejected in one of twenty cases or fewer.
#[derive(Clone, Copy, Debug)]
pub struct GammaSampler {
    shift: f64,
    spread: f64,
    scale: f64,
    /// For a shape below 1 the law above it is drawn and multiplied by a power of a uniform number: one over the shape, or 0.
    boost: f64,
}

impl GammaSampler {
    /// Of `shape` and `rate`, both above 0.
    pub(super) fn new(shape: f64, rate: f64) -> Self {
        let raised = if shape < 1.0 { shape + 1.0 } else { shape };
        let shift = raised - 1.0 / 3.0;
        Self { shift, spread: 1.0 / (9.0 * shift).sqrt(), scale: shift / rate, boost: if shape < 1.0 { 1.0 / shape } else { 0.0 } }
    }

    #[inline]
    pub(super) fn sample(&self, draws: &mut Draws) -> f64 {
        let cubed = loop {
            let normal = standard_normal(draws);
            let root = 1.0 + self.spread * normal;
            if root <= 0.0 {
                continue;
            }
            let cubed = root * root * root;
            let uniform = draws.uniform();
            let square = normal * normal;
            let squeezed = uniform < 1.0 - 0.0331 * square * square;
            if squeezed || uniform.ln() < 0.5 * square + self.shift * (1.0 - cubed + cubed.ln()) {
                break cubed;
            }
        };
        let boosted = if self.boost == 0.0 { cubed } else { cubed * draws.uniform().powf(self.boost) };
        self.scale * boosted
    }
}

/// A number of the standard normal law by the ziggurat method (Marsaglia and Tsang, Journal of Statistical Software 5(8), 2000): 256
/// layers of the same area, of which 99 % need one number of 64 bits. Layer, sign and position come from bits of their own (Doornik,
/// "An improved ziggurat method", 2005).
#[inline]
pub(super) fn standard_normal(draws: &mut Draws) -> f64 {
    let layers: &Layers = &LAYERS;
    loop {
        let bits = draws.bits();
        let layer = (bits & 0xff) as usize;
        let sign = if bits & 0x100 == 0 { 1.0 } else { -1.0 };
        let x = (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64) * layers.width[layer];
        if x < layers.width[layer + 1] {
            return sign * x;
        }
        if let Some(x) = layers.at_the_edge(layer, x, draws) {
            return sign * x;
        }
    }
}

/// Where the tail begins with 256 layers.
const TAIL: f64 = 3.654_152_885_361_009;

/// From the base, whose width is that of a rectangle with the base's area, to the top.
struct Layers {
    width: [f64; 257],
    /// The curve `e^(-x^2 / 2)` at each width.
    height: [f64; 257],
}

static LAYERS: LazyLock<Layers> = LazyLock::new(|| {
    let curve = |x: f64| (-0.5 * x * x).exp();
    let tail_area = (0.5 * std::f64::consts::PI).sqrt() * erfc(TAIL * std::f64::consts::FRAC_1_SQRT_2);
    let area = TAIL * curve(TAIL) + tail_area;
    let mut width = [0.0; 257];
    width[0] = area / curve(TAIL);
    width[1] = TAIL;
    for layer in 1..255 {
        width[layer + 1] = (-2.0 * (area / width[layer] + curve(width[layer])).ln()).sqrt();
    }
    Layers { width, height: width.map(curve) }
});

impl Layers {
    /// `x` of `layer` beyond the part that is under the curve for sure; none if it is above the curve.
    #[cold]
    fn at_the_edge(&self, layer: usize, x: f64, draws: &mut Draws) -> Option<f64> {
        if layer == 0 {
            // The tail: an exponential number beyond it, rejected to the normal one's shape.
            loop {
                let beyond = -draws.uniform().ln() / TAIL;
                if -2.0 * draws.uniform().ln() > beyond * beyond {
                    return Some(TAIL + beyond);
                }
            }
        }
        let height = self.height[layer] + draws.uniform() * (self.height[layer + 1] - self.height[layer]);
        (height < (-0.5 * x * x).exp()).then_some(x)
    }
}
