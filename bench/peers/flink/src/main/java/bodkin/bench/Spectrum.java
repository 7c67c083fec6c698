package bodkin.bench;

import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.configuration.Configuration;

/** The discrete Fourier transform of a power of two of real points (Cooley and Tukey 1965): all complex points, or the absolute values of half of them. */
public final class Spectrum extends RichMapFunction<Points, Points> {
    private final int points;
    private final boolean magnitudes;
    private transient double[] cosines;
    private transient double[] sines;
    private transient int[] places;

    public Spectrum(int points, boolean magnitudes) {
        this.points = points;
        this.magnitudes = magnitudes;
    }

    @Override
    public void open(Configuration parameters) {
        cosines = new double[points / 2];
        sines = new double[points / 2];
        for (int at = 0; at < points / 2; at++) {
            cosines[at] = Math.cos(-2 * Math.PI * at / points);
            sines[at] = Math.sin(-2 * Math.PI * at / points);
        }
        places = new int[points];
        int shift = 32 - Integer.numberOfTrailingZeros(points);
        for (int at = 0; at < points; at++) {
            places[at] = Integer.reverse(at) >>> shift;
        }
    }

    @Override
    public Points map(Points event) {
        double[] real = new double[points];
        double[] imaginary = new double[points];
        for (int at = 0; at < points; at++) {
            real[places[at]] = event.values[at];
        }
        for (int length = 2; length <= points; length *= 2) {
            int half = length / 2;
            int step = points / length;
            for (int first = 0; first < points; first += length) {
                for (int at = 0; at < half; at++) {
                    int low = first + at;
                    int high = low + half;
                    double turnedReal = real[high] * cosines[at * step] - imaginary[high] * sines[at * step];
                    double turnedImaginary = real[high] * sines[at * step] + imaginary[high] * cosines[at * step];
                    real[high] = real[low] - turnedReal;
                    imaginary[high] = imaginary[low] - turnedImaginary;
                    real[low] += turnedReal;
                    imaginary[low] += turnedImaginary;
                }
            }
        }
        return new Points(event.input, event.createdNs, magnitudes ? magnitudes(real, imaginary) : pairs(real, imaginary));
    }

    private double[] magnitudes(double[] real, double[] imaginary) {
        double[] values = new double[points / 2 + 1];
        for (int at = 0; at < values.length; at++) {
            values[at] = Math.sqrt(real[at] * real[at] + imaginary[at] * imaginary[at]);
        }
        return values;
    }

    private double[] pairs(double[] real, double[] imaginary) {
        double[] values = new double[2 * points];
        for (int at = 0; at < points; at++) {
            values[2 * at] = real[at];
            values[2 * at + 1] = imaginary[at];
        }
        return values;
    }
}
