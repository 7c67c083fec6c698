//! Numbers under which what is reckoned comes nearest to what was measured, by the sum of squares.

/// Sweeps over the coefficients of a regression.
const SWEEPS: u32 = 5_000;
/// Searched numbers.
const AXES: usize = 4;
/// Difference by which slopes are taken: small beside what matters, large beside the noise of a simulation.
const DIFFERENCE: f64 = 0.2;
/// Longest step along an axis, and the shortest worth another one.
const STEP_MAX: f64 = 1.0;
const STEP_MIN: f64 = 0.02;
/// What is added to the squared slopes at first, how it changes, and the most that it comes to.
const DAMPING_FIRST: f64 = 0.01;
const DAMPING_FACTOR: f64 = 5.0;
const DAMPING_MAX: f64 = 10.0;

/// Coefficients from 0 under which the sums of `rows` come nearest to their targets, by the squares of relative differences. Those that `starts`
/// tells begin with an equal share each and the others with 0: what the rows cannot tell apart stays shared.
pub fn regression(rows: &[(Vec<f64>, f64)], starts: &[bool]) -> Vec<f64> {
    let started = |row: &[f64]| row.iter().zip(starts).filter(|(_, starts)| **starts).map(|(factor, _)| factor).sum::<f64>();
    let first = rows.iter().map(|(row, target)| target / started(row)).sum::<f64>() / rows.len() as f64;
    let mut found: Vec<f64> = starts.iter().map(|starts| if *starts { first } else { 0.0 }).collect();
    let relative: Vec<Vec<f64>> =
        rows.iter().map(|(row, target)| row.iter().map(|factor| factor / target.max(f64::MIN_POSITIVE)).collect()).collect();
    for _ in 0..SWEEPS {
        for index in 0..found.len() {
            let (mut slope, mut square) = (0.0, 0.0);
            for row in &relative {
                let sum: f64 = row.iter().zip(&found).map(|(factor, value)| factor * value).sum();
                slope += row[index] * (1.0 - sum);
                square += row[index] * row[index];
            }
            found[index] = (found[index] + slope / square).max(0.0);
        }
    }
    found
}

/// The point of the least sum of squared residuals that `steps_max` damped steps come to from `first` (Levenberg 1944, Marquardt 1963); behind one that takes less than `gain_min` off the sum, as a part of it, no other one follows. Where nothing depends on a
/// number it stays as it was. Gives the sum, too.
///
/// # Errors
/// Those of `residuals`.
pub fn least_squares<E>(
    first: [f64; AXES],
    steps_max: u32,
    gain_min: f64,
    residuals: impl Fn([f64; AXES]) -> Result<Vec<f64>, E>,
) -> Result<([f64; AXES], f64), E> {
    let (mut point, mut damping) = (first, DAMPING_FIRST);
    let mut here = residuals(point)?;
    for _ in 0..steps_max {
        let mut slopes = Vec::new();
        for axis in 0..AXES {
            let mut beside = point;
            beside[axis] += DIFFERENCE;
            slopes.push(residuals(beside)?.iter().zip(&here).map(|(beside, here)| (beside - here) / DIFFERENCE).collect::<Vec<_>>());
        }
        let (next, there) = loop {
            let step = damped_step(&slopes, &here, damping);
            let mut next = point;
            next.iter_mut().zip(step).for_each(|(value, step)| *value += step.clamp(-STEP_MAX, STEP_MAX));
            let there = residuals(next)?;
            if squares(&there) < squares(&here) {
                break (next, there);
            }
            damping *= DAMPING_FACTOR;
            if damping > DAMPING_MAX {
                return Ok((point, squares(&here)));
            }
        };
        let longest = next.iter().zip(point).map(|(next, value)| (next - value).abs()).fold(0.0, f64::max);
        let gain = 1.0 - squares(&there) / squares(&here);
        (point, here) = (next, there);
        damping /= DAMPING_FACTOR;
        if longest < STEP_MIN || gain < gain_min {
            break;
        }
    }
    Ok((point, squares(&here)))
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

/// `x` of `(S'S + damping) x = -S'r`, by elimination: the matrix is positive definite.
fn damped_step(slopes: &[Vec<f64>], residuals: &[f64], damping: f64) -> [f64; AXES] {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut matrix = [[0.0; AXES]; AXES];
    let mut right = [0.0; AXES];
    for (row, slope) in slopes.iter().enumerate() {
        for (column, other) in slopes.iter().enumerate() {
            matrix[row][column] = product(slope, other) + if row == column { damping } else { 0.0 };
        }
        right[row] = -product(slope, residuals);
    }
    for pivot in 0..AXES {
        for row in pivot + 1..AXES {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            let above = matrix[pivot];
            matrix[row].iter_mut().zip(above).skip(pivot).for_each(|(cell, above)| *cell -= factor * above);
            right[row] -= factor * right[pivot];
        }
    }
    let mut found = [0.0; AXES];
    for row in (0..AXES).rev() {
        let known: f64 = (row + 1..AXES).map(|column| matrix[row][column] * found[column]).sum();
        found[row] = (right[row] - known) / matrix[row][row];
    }
    found
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn coefficients_are_found_and_none_is_negative() {
        let rows: Vec<(Vec<f64>, f64)> =
            [(1.0, 1.0), (3.0, 1.0), (6.0, 2.0)].map(|(a, b)| (vec![a, b, 1.0], 6.0 * a + 4.0 * b + 1.5)).into();
        let found = regression(&rows, &[true, true, false]);
        let told: Vec<f64> = rows.iter().map(|(row, _)| row.iter().zip(&found).map(|(factor, value)| factor * value).sum()).collect();
        assert!(told.iter().zip(&rows).all(|(told, (_, target))| (told / target - 1.0).abs() < 1e-6), "{found:?}");
        let falling = [(vec![1.0, 1.0], 5.0), (vec![2.0, 1.0], 3.0)];
        assert_eq!(regression(&falling, &[true, true])[0], 0.0);
    }

    #[test]
    fn the_lowest_point_is_found_and_a_number_without_effect_stays() {
        let bent = |point: [f64; AXES]| Ok::<_, Infallible>(vec![point[0].exp() - 2.0, point[1] * point[0] - 1.0]);
        let (found, left) = least_squares([0.3, 3.0, -7.0, 5.0], 8, 0.01, bent).expect("nothing fails");
        assert!(left < 1e-6, "{left}");
        assert!((found[0] - 2_f64.ln()).abs() < 1e-3 && (found[1] - 1.0 / 2_f64.ln()).abs() < 1e-3, "{found:?}");
        assert_eq!(found[2..], [-7.0, 5.0]);
        assert_eq!(least_squares([0.0; AXES], 8, 0.01, |_| Err("refused")), Err("refused"));
    }
}
