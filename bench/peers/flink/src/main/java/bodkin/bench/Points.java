package bodkin.bench;

/** An event between operators: numbers, and when the newest of what they are made of was pushed. */
public class Points {
    /** Which input of the operator behind it. */
    public int input;
    /** In ns of the supplier's clock. */
    public long createdNs;
    /** Real numbers, or real and imaginary parts in turn. */
    public double[] values;

    public Points() {}

    public Points(int input, long createdNs, double[] values) {
        this.input = input;
        this.createdNs = createdNs;
        this.values = values;
    }
}
