//! Which values the parameters take.

use std::str::FromStr;

use crate::cli::model::times;

/// Most points of a sweep.
const POINTS_MAX: usize = 10_000;

/// A parameter and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Vary {
    pub name: String,
    /// In the order of the option; one or more.
    pub values: Vec<f64>,
}

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = text.split_once('=').ok_or("NAME=VALUES is expected, as in pool=4,8,16 or load=0.1:0.1:0.9")?;
        let values = match values.contains(':') {
            true => values.parse::<times::Grid>()?.0,
            false => values.split(',').map(number).collect::<Result<_, _>>()?,
        };
        Ok(Self { name: name.trim().to_owned(), values })
    }
}

fn number(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("{text} is no number"))
}

/// All pairs of the values of one or two parameters; the first changes fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid(Vec<Vary>);

impl Grid {
    pub fn of(vary: &[Vary]) -> Result<Self, String> {
        if vary.len() > 2 {
            return Err("--vary is for one parameter or two".to_owned());
        }
        if vary.len() == 2 && vary[0].name == vary[1].name {
            return Err(format!("--vary {}: it is there twice", vary[0].name));
        }
        let count: usize = vary.iter().map(|vary| vary.values.len()).product();
        if count > POINTS_MAX { Err(format!("--vary: {count} points; expected at most {POINTS_MAX}")) } else { Ok(Self(vary.to_vec())) }
    }

    pub fn parameters(&self) -> &[Vary] {
        &self.0
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|vary| vary.values.len()).product()
    }

    /// The parameters' values at a point.
    pub fn set(&self, mut index: usize) -> Vec<(String, f64)> {
        let value = |vary: &Vary| {
            let value = vary.values[index % vary.values.len()];
            index /= vary.values.len();
            (vary.name.clone(), value)
        };
        self.0.iter().map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_taken_once() {
        let vary = |text: &str| text.parse::<Vary>().expect(text);
        let grid = Grid::of(&[vary("pool=4,8"), vary("load=0.1:0.2:0.5")]).expect("two parameters");
        let values: Vec<Vec<f64>> = (0..grid.len()).map(|index| grid.set(index).iter().map(|(_, value)| *value).collect()).collect();
        assert_eq!(values.len(), 6);
        assert_eq!((&values[1], &values[2][0]), (&vec![8.0, 0.1], &4.0));
        assert!(Grid::of(&[vary("a=1"), vary("a=2")]).is_err() && Grid::of(&[vary("a=1"), vary("b=1"), vary("c=1")]).is_err());
        for text in ["pool", "pool=", "pool=x", "pool=0:0:1"] {
            assert!(text.parse::<Vary>().is_err(), "{text}");
        }
    }
}
