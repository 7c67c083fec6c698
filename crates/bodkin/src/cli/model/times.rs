//! Times on the command line.

use std::str::FromStr;

use bodkin_petri::solve::TIMES_MAX;

/// `T,T,...`, sorted.
#[derive(Clone, Debug, PartialEq)]
pub struct Times(pub Vec<f64>);

/// `T0:STEP:T1`, as the times that it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid(pub Vec<f64>);

impl FromStr for Times {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut times = text.split(',').map(time).collect::<Result<Vec<f64>, _>>()?;
        times.sort_by(f64::total_cmp);
        Ok(Self(times))
    }
}

impl FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split(':').map(time).collect::<Result<Vec<f64>, _>>()?;
        let [first, step, last] = parts[..] else { return Err("T0:STEP:T1 is expected, as in 0:0.5:20".to_owned()) };
        if step <= 0.0 || last < first {
            return Err("a step above 0 is expected, and an end that is not before the start".to_owned());
        }
        // Half a thousandth of a step is rounding, not another time.
        let steps = ((last - first) / step + 5e-4).floor();
        if steps >= TIMES_MAX as f64 {
            return Err(format!("at most {TIMES_MAX} times are expected"));
        }
        Ok(Self((0..=steps as usize).map(|index| decimal(first + index as f64 * step)).collect()))
    }
}

/// The number of 15 digits that is meant by one that was computed from such: 0.6, and not the 0.6000000000000001 that three times 0.2 is.
fn decimal(number: f64) -> f64 {
    format!("{number:.14e}").parse().expect("it was just written")
}

fn time(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(time) if time >= 0.0 && time.is_finite() => Ok(time),
        _ => Err(format!("{text} is no time; a number from 0 is expected")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_both_of_its_ends() {
        let grid = |text: &str| text.parse::<Grid>().map(|grid| grid.0);
        assert_eq!(grid("0:0.5:2"), Ok(vec![0.0, 0.5, 1.0, 1.5, 2.0]));
        assert_eq!(grid("0:0.1:0.3"), Ok(vec![0.0, 0.1, 0.2, 0.3]), "rounding loses no time, and makes none longer");
        assert_eq!(grid("0.2:0.2:0.6"), Ok(vec![0.2, 0.4, 0.6]));
        assert_eq!(grid("1:2:4"), Ok(vec![1.0, 3.0]));
        for text in ["0:0:1", "1:1:0", "0:1", "0:x:1", "-1:1:2", "0:1e-9:1", "0:1:inf"] {
            assert!(grid(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_sorted() {
        assert_eq!("5,1, 2.5".parse::<Times>(), Ok(Times(vec![1.0, 2.5, 5.0])));
        assert!("1,,2".parse::<Times>().is_err());
    }
}
