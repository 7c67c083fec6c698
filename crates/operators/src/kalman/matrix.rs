//! Small matrices without the heap.

/// Rows or columns of the largest.
pub const SIDE_MAX: usize = 6;

/// A matrix of at most `SIDE` rows and columns: the smaller that is, the less is copied and the more is unrolled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrix<const SIDE: usize> {
    rows: usize,
    columns: usize,
    cells: [[f64; SIDE]; SIDE],
}

impl<const SIDE: usize> Matrix<SIDE> {
    pub fn zero(rows: usize, columns: usize) -> Self {
        assert!(rows <= SIDE && columns <= SIDE, "{rows} x {columns} is too large");
        Self { rows, columns, cells: [[0.0; SIDE]; SIDE] }
    }

    /// From its cells, row by row.
    pub fn new(rows: usize, columns: usize, cells: &[f64]) -> Self {
        assert_eq!(cells.len(), rows * columns, "every cell is there");
        let mut matrix = Self::zero(rows, columns);
        cells.iter().enumerate().for_each(|(at, cell)| matrix.cells[at / columns][at % columns] = *cell);
        matrix
    }

    pub fn diagonal(side: usize, value: f64) -> Self {
        let mut matrix = Self::zero(side, side);
        (0..side).for_each(|at| matrix.cells[at][at] = value);
        matrix
    }

    /// A column.
    pub fn column(cells: &[f64]) -> Self {
        Self::new(cells.len(), 1, cells)
    }

    /// The same in a type for other sizes.
    pub fn resized<const OTHER: usize>(&self) -> Matrix<OTHER> {
        let mut resized = Matrix::zero(self.rows, self.columns);
        for (row, own) in resized.cells.iter_mut().zip(&self.cells) {
            row.iter_mut().zip(own).for_each(|(cell, own)| *cell = *own);
        }
        resized
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The cells, row by row.
    pub fn cells(&self) -> impl Iterator<Item = f64> {
        let columns = self.columns;
        self.cells.iter().take(self.rows).flat_map(move |row| row.iter().take(columns).copied())
    }

    pub fn times(&self, other: &Self) -> Self {
        assert_eq!(self.columns, other.rows, "a product has as many columns as rows");
        let mut product = Self::zero(self.rows, other.columns);
        for row in 0..self.rows {
            for column in 0..other.columns {
                product.cells[row][column] = (0..self.columns).map(|at| self.cells[row][at] * other.cells[at][column]).sum();
            }
        }
        product
    }

    fn joined(&self, other: &Self, join: impl Fn(f64, f64) -> f64) -> Self {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns), "both are of one size");
        let mut joined = *self;
        for (row, others) in joined.cells.iter_mut().zip(&other.cells) {
            row.iter_mut().zip(others).for_each(|(cell, other)| *cell = join(*cell, *other));
        }
        joined
    }

    pub fn plus(&self, other: &Self) -> Self {
        self.joined(other, |one, other| one + other)
    }

    pub fn minus(&self, other: &Self) -> Self {
        self.joined(other, |one, other| one - other)
    }

    pub fn transposed(&self) -> Self {
        let mut transposed = Self::zero(self.columns, self.rows);
        for row in 0..self.rows {
            for column in 0..self.columns {
                transposed.cells[column][row] = self.cells[row][column];
            }
        }
        transposed
    }

    /// Lower triangle with `L * L^T = self` (Cholesky); none if the matrix is not positive definite. Only its lower triangle is read.
    pub fn cholesky(&self) -> Option<Self> {
        let mut lower = Self::zero(self.rows, self.rows);
        for row in 0..self.rows {
            for column in 0..=row {
                let known: f64 = (0..column).map(|at| lower.cells[row][at] * lower.cells[column][at]).sum();
                let rest = self.cells[row][column] - known;
                lower.cells[row][column] = match row == column {
                    true if rest > 0.0 && rest.is_finite() => rest.sqrt(),
                    true => return None,
                    false => rest / lower.cells[column][column],
                };
            }
        }
        Some(lower)
    }

    /// `X` with `L * L^T * X = right`, where `self` is L.
    pub fn solve(&self, right: &Self) -> Self {
        let mut solved = *right;
        for column in 0..right.columns {
            for row in 0..self.rows {
                let known: f64 = (0..row).map(|at| self.cells[row][at] * solved.cells[at][column]).sum();
                solved.cells[row][column] = (solved.cells[row][column] - known) / self.cells[row][row];
            }
            for row in (0..self.rows).rev() {
                let known: f64 = (row + 1..self.rows).map(|at| self.cells[at][row] * solved.cells[at][column]).sum();
                solved.cells[row][column] = (solved.cells[row][column] - known) / self.cells[row][row];
            }
        }
        solved
    }

    pub fn is_finite(&self) -> bool {
        self.cells().all(f64::is_finite)
    }

    /// Whether it is its own transposed within what is rounded.
    pub fn is_symmetric(&self) -> bool {
        let scale = self.cells().map(f64::abs).fold(0.0, f64::max);
        self.rows == self.columns && self.minus(&self.transposed()).cells().all(|cell| cell.abs() <= 1e-12 * scale)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_solved_is_the_answer(cells in prop::collection::vec(-10.0..10.0f64, 16), right in prop::collection::vec(-10.0..10.0f64, 8)) {
            let (square, right) = (Matrix::<SIDE_MAX>::new(4, 4, &cells), Matrix::new(4, 2, &right));
            let definite = square.times(&square.transposed()).plus(&Matrix::diagonal(4, 0.5));
            let solved = definite.cholesky().expect("it is positive definite").solve(&right);
            let error = definite.times(&solved).minus(&right).cells().map(f64::abs).fold(0.0, f64::max);
            prop_assert!(error < 1e-8, "{error}");
        }
    }

    #[test]
    fn what_is_not_positive_definite_has_no_root() {
        for cells in [[1.0, 2.0, 2.0, 1.0], [0.0, 0.0, 0.0, 0.0], [f64::NAN, 0.0, 0.0, 1.0], [f64::INFINITY, 0.0, 0.0, 1.0]] {
            assert_eq!(Matrix::<2>::new(2, 2, &cells).cholesky(), None, "{cells:?}");
        }
        assert!(Matrix::<3>::diagonal(3, 2.0).is_symmetric() && !Matrix::<2>::new(2, 2, &[1.0, 0.1, 0.0, 1.0]).is_symmetric());
    }
}
