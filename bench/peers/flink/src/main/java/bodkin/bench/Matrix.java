package bodkin.bench;

/** A small matrix; operations give new ones. */
final class Matrix {
    private final int rows;
    private final int columns;
    private final double[] cells;

    Matrix(int rows, int columns, double... cells) {
        this.rows = rows;
        this.columns = columns;
        this.cells = cells;
    }

    static Matrix identity(int side) {
        double[] cells = new double[side * side];
        for (int at = 0; at < side; at++) {
            cells[at * side + at] = 1;
        }
        return new Matrix(side, side, cells);
    }

    double at(int row, int column) {
        return cells[row * columns + column];
    }

    Matrix times(Matrix other) {
        double[] product = new double[rows * other.columns];
        for (int row = 0; row < rows; row++) {
            for (int column = 0; column < other.columns; column++) {
                double sum = 0;
                for (int at = 0; at < columns; at++) {
                    sum += cells[row * columns + at] * other.cells[at * other.columns + column];
                }
                product[row * other.columns + column] = sum;
            }
        }
        return new Matrix(rows, other.columns, product);
    }

    Matrix plus(Matrix other) {
        double[] sum = new double[cells.length];
        for (int at = 0; at < sum.length; at++) {
            sum[at] = cells[at] + other.cells[at];
        }
        return new Matrix(rows, columns, sum);
    }

    Matrix scaled(double factor) {
        double[] scaled = new double[cells.length];
        for (int at = 0; at < scaled.length; at++) {
            scaled[at] = cells[at] * factor;
        }
        return new Matrix(rows, columns, scaled);
    }

    Matrix transposed() {
        double[] transposed = new double[cells.length];
        for (int row = 0; row < rows; row++) {
            for (int column = 0; column < columns; column++) {
                transposed[column * rows + row] = cells[row * columns + column];
            }
        }
        return new Matrix(columns, rows, transposed);
    }
}
