// What tests tell whoever counts them.

let failed = 0;

/** Prints `ok NAME`, or `not ok NAME: WHY`. */
export const test = async (name, act) => {
    try {
        await act();
        console.log(`ok ${name}`);
    } catch (error) {
        failed += 1;
        console.log(`not ok ${name}: ${String(error?.stack ?? error).split("\n").slice(0, 12).join(" | ")}`);
    }
};

export const expect = (holds, told) => {
    if (!holds) throw new Error(told);
};

/** Ends the process: 1 where a test has failed. */
export const finish = () => process.exit(failed === 0 ? 0 : 1);
