/** The radio that RIOT native emulates. */
#ifndef RIOT_NATIVE_RADIO_H
#define RIOT_NATIVE_RADIO_H

#include "net/netdev.h"

/** Puts right how this interface of `socket_zep` sends and hears. There is one of them. */
void riot_native_share_radio(netdev_t *device);

#endif
