package bodkin.bench;

import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.configuration.Configuration;

/**
 * A Kalman filter with the model of a constant velocity, step by step: predicted, and corrected with the covariance in Joseph's form, as Bodkin's `ekf`; with matrices of any size, and so
 * with as much work.
 */
public final class Filter extends RichMapFunction<Points, Points> {
    private static final double PROCESS_NOISE = 0.01;
    private static final double MEASUREMENT_NOISE = 100;
    private static final double START_VARIANCE = 1e6;

    private transient Matrix transition;
    private transient Matrix processNoise;
    private transient Matrix measurement;
    private transient Matrix measurementNoise;
    private transient Matrix state;
    private transient Matrix covariance;

    @Override
    public void open(Configuration parameters) {
        transition = new Matrix(2, 2, 1, 1, 0, 1);
        processNoise = new Matrix(2, 2, PROCESS_NOISE / 4, PROCESS_NOISE / 2, PROCESS_NOISE / 2, PROCESS_NOISE);
        measurement = new Matrix(1, 2, 1, 0);
        measurementNoise = new Matrix(1, 1, MEASUREMENT_NOISE);
        state = new Matrix(2, 1, 0, 0);
        covariance = new Matrix(2, 2, START_VARIANCE, 0, 0, START_VARIANCE);
    }

    @Override
    public Points map(Points event) {
        double[] values = new double[event.values.length];
        for (int at = 0; at < values.length; at++) {
            predict();
            correct(event.values[at]);
            values[at] = measurement.times(state).at(0, 0);
        }
        return new Points(event.input, event.createdNs, values);
    }

    private void predict() {
        state = transition.times(state);
        covariance = transition.times(covariance).times(transition.transposed()).plus(processNoise);
    }

    private void correct(double measured) {
        Matrix across = measurement.times(covariance);
        double innovation = across.times(measurement.transposed()).plus(measurementNoise).at(0, 0);
        Matrix gain = across.transposed().scaled(1 / innovation);
        double error = measured - measurement.times(state).at(0, 0);
        state = state.plus(gain.scaled(error));
        Matrix rest = Matrix.identity(2).plus(gain.times(measurement).scaled(-1));
        Matrix noise = gain.times(measurementNoise).times(gain.transposed());
        covariance = rest.times(covariance).times(rest.transposed()).plus(noise);
    }
}
