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

/// All combinations of the values of some parameters; the first changes fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid(Vec<Vary>);

impl Grid {
    pub fn of(vary: &[Vary]) -> Result<Self, String> {
        if let Some(twice) = vary.iter().enumerate().find_map(|(index, one)| vary[..index].iter().find(|other| other.name == one.name)) {
            return Err(format!("--vary {}: it is there twice", twice.name));
        }
        let count = vary.iter().try_fold(1_usize, |count, vary| count.checked_mul(vary.values.len()).filter(|count| *count <= POINTS_MAX));
        match count {
            Some(_) => Ok(Self(vary.to_vec())),
            None => Err(format!("--vary: there are more than {POINTS_MAX} points; expected at most that many")),
        }
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
    fn every_combination_is_taken_once() {
        let vary = |text: &str| text.parse::<Vary>().expect(text);
        let grid = Grid::of(&[vary("pool=4,8"), vary("load=0.1:0.2:0.5")]).expect("two parameters");
        let values: Vec<Vec<f64>> = (0..grid.len()).map(|index| grid.set(index).iter().map(|(_, value)| *value).collect()).collect();
        assert_eq!(values.len(), 6);
        assert_eq!((&values[1], &values[2][0]), (&vec![8.0, 0.1], &4.0));
        let three = Grid::of(&[vary("a=1,2"), vary("b=1,2,3"), vary("c=4,5")]).expect("three parameters");
        assert_eq!(
            (three.len(), three.set(11)),
            (12, [("a", 2.0), ("b", 3.0), ("c", 5.0)].map(|(name, value)| (name.to_owned(), value)).into())
        );
        assert!(Grid::of(&[vary("a=1"), vary("b=1"), vary("a=2")]).is_err());
        let many = vary("a=1:1:9000");
        assert!(Grid::of(&[many.clone(), Vary { name: "b".to_owned(), ..many }]).is_err());
        for text in ["pool", "pool=", "pool=x", "pool=0:0:1"] {
            assert!(text.parse::<Vary>().is_err(), "{text}");
        }
    }
}
