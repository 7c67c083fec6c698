/** Signals and RIOT native's sleep. */
#ifndef RIOT_NATIVE_SLEEP_H
#define RIOT_NATIVE_SLEEP_H

/** Sleeps from now on in a way that misses no signal. */
void riot_native_sleep_well(void);

#endif
