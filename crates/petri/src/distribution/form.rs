//! Laws in JSON: `{"type": "erlang", "shape": 13, "rate": 2.088}`.

use serde::{Deserialize, Serialize};

use super::{
    Deterministic, Distribution, DistributionError, Empirical, Erlang, Expolynomial, Exponential, Gamma, HypoExponential, Lognormal,
    Mixture, PhaseType, Piece, Term, TruncatedNormal, Uniform, Weibull,
};

/// What a file says of a law; [`Distribution::try_from`] checks it. Members that a law does not have are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the constructors of the laws say what each member is")]
pub enum Form {
    Exponential { rate: f64 },
    Erlang { shape: u32, rate: f64 },
    Gamma { shape: f64, rate: f64 },
    HyperExponential { branches: Vec<ExponentialBranch> },
    HypoExponential { rates: Vec<f64> },
    HyperErlang { branches: Vec<ErlangBranch> },
    PhaseType { initial: Vec<f64>, generator: Vec<Vec<f64>> },
    Uniform { min: f64, max: f64 },
    Deterministic { value: f64 },
    TruncatedNormal { mean: f64, sd: f64, min: f64, max: Option<f64> },
    Lognormal { mu: f64, sigma: f64 },
    Weibull { shape: f64, scale: f64 },
    Expolynomial { pieces: Vec<PieceForm> },
    Empirical { values: Vec<f64> },
}

/// A branch of a hyper-exponential law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "as of Form")]
pub struct ExponentialBranch {
    pub probability: f64,
    pub rate: f64,
}

/// A branch of a hyper-Erlang law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "as of Form")]
pub struct ErlangBranch {
    pub probability: f64,
    pub shape: u32,
    pub rate: f64,
}

/// A piece of an expolynomial law; without `max` it has no end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "as of Form")]
pub struct PieceForm {
    pub min: f64,
    pub max: Option<f64>,
    pub terms: Vec<Term>,
}

impl TryFrom<Form> for Distribution {
    type Error = DistributionError;

    fn try_from(form: Form) -> Result<Self, DistributionError> {
        Ok(match form {
            Form::Exponential { rate } => Self::Exponential(Exponential::new(rate)?),
            Form::Erlang { shape, rate } => Self::Erlang(Erlang::new(shape, rate)?),
            Form::Gamma { shape, rate } => Self::Gamma(Gamma::new(shape, rate)?),
            Form::HyperExponential { branches } => {
                let laws = branches.iter().map(|branch| Ok((branch.probability, Exponential::new(branch.rate)?)));
                Self::HyperExponential(Mixture::new(laws.collect::<Result<_, DistributionError>>()?)?)
            }
            Form::HypoExponential { rates } => Self::HypoExponential(HypoExponential::new(&rates)?),
            Form::HyperErlang { branches } => {
                let laws = branches.iter().map(|branch| Ok((branch.probability, Erlang::new(branch.shape, branch.rate)?)));
                Self::HyperErlang(Mixture::new(laws.collect::<Result<_, DistributionError>>()?)?)
            }
            Form::PhaseType { initial, generator } => Self::PhaseType(PhaseType::new(&initial, &generator)?),
            Form::Uniform { min, max } => Self::Uniform(Uniform::new(min, max)?),
            Form::Deterministic { value } => Self::Deterministic(Deterministic::new(value)?),
            Form::TruncatedNormal { mean, sd, min, max } => {
                Self::TruncatedNormal(TruncatedNormal::new(mean, sd, min, max.unwrap_or(f64::INFINITY))?)
            }
            Form::Lognormal { mu, sigma } => Self::Lognormal(Lognormal::new(mu, sigma)?),
            Form::Weibull { shape, scale } => Self::Weibull(Weibull::new(shape, scale)?),
            Form::Expolynomial { pieces } => {
                let pieces = pieces.into_iter();
                let pieces = pieces.map(|PieceForm { min, max, terms }| Piece { min, max: max.unwrap_or(f64::INFINITY), terms });
                Self::Expolynomial(Expolynomial::new(pieces.collect())?)
            }
            Form::Empirical { values } => Self::Empirical(Empirical::new(values)?),
        })
    }
}

impl From<&Distribution> for Form {
    fn from(distribution: &Distribution) -> Self {
        let finite = |max: f64| max.is_finite().then_some(max);
        match distribution {
            Distribution::Exponential(law) => Self::Exponential { rate: law.rate() },
            Distribution::Erlang(law) => Self::Erlang { shape: law.shape(), rate: law.rate() },
            Distribution::Gamma(law) => Self::Gamma { shape: law.shape(), rate: law.rate() },
            Distribution::HyperExponential(law) => {
                let branches = law.branches().iter();
                let branches = branches.map(|(probability, law)| ExponentialBranch { probability: *probability, rate: law.rate() });
                Self::HyperExponential { branches: branches.collect() }
            }
            Distribution::HypoExponential(law) => Self::HypoExponential { rates: law.rates().to_vec() },
            Distribution::HyperErlang(law) => {
                let branches = law.branches().iter();
                let branches =
                    branches.map(|(probability, law)| ErlangBranch { probability: *probability, shape: law.shape(), rate: law.rate() });
                Self::HyperErlang { branches: branches.collect() }
            }
            Distribution::PhaseType(law) => Self::PhaseType { initial: law.initial().to_vec(), generator: law.generator() },
            Distribution::Uniform(law) => Self::Uniform { min: law.min(), max: law.max() },
            Distribution::Deterministic(law) => Self::Deterministic { value: law.value() },
            Distribution::TruncatedNormal(law) => {
                let (min, max) = distribution.support();
                Self::TruncatedNormal { mean: law.location(), sd: law.spread(), min, max: finite(max) }
            }
            Distribution::Lognormal(law) => Self::Lognormal { mu: law.mu(), sigma: law.sigma() },
            Distribution::Weibull(law) => Self::Weibull { shape: law.shape(), scale: law.scale() },
            Distribution::Expolynomial(law) => {
                let pieces = law.pieces().iter();
                let pieces = pieces.map(|piece| PieceForm { min: piece.min, max: finite(piece.max), terms: piece.terms.clone() });
                Self::Expolynomial { pieces: pieces.collect() }
            }
            Distribution::Empirical(law) => Self::Empirical { values: law.values().to_vec() },
        }
    }
}
