/** What a net of links needs on RIOT beside itself: zmtp_net_t.port points to it. */
#ifndef ZMTP_RIOT_H
#define ZMTP_RIOT_H

#include "net/sock/tcp.h"

/** Sockets, one for each link of the net, and the queue that makes them a listener's. A net on RIOT either connects or listens. */
typedef struct {
    sock_tcp_t *sockets;    /**< the caller's: as many as the net has links */
    sock_tcp_queue_t queue; /* the port's */
} zmtp_riot_t;

#endif
