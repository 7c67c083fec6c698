package bodkin.bench;

/** An event on its way to a consumer. */
public class Result {
    /** When the newest of what it is made of was pushed. */
    public long createdNs;
    /** As it travels. */
    public byte[] bytes;

    public Result() {}

    public Result(long createdNs, byte[] bytes) {
        this.createdNs = createdNs;
        this.bytes = bytes;
    }
}
