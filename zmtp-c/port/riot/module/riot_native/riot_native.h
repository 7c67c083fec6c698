/**
 * What RIOT native lacks for a node that has to run on, put right from outside of RIOT's sources: nothing of it is needed on a board (decision 58).
 *
 * EXTERNAL_MODULE_DIRS += .../zmtp-c/port/riot/module, USEMODULE += riot_native.
 */
#ifndef RIOT_NATIVE_H
#define RIOT_NATIVE_H

/** To be called once by main(), behind the start of all interfaces: from then on no signal is slept through, and interfaces of the module `socket_zep` are shared by both ends. */
void riot_native_begin(void);

#endif
