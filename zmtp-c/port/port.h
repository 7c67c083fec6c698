/** Between port/net.c and the ports: what either asks of the other. Nothing of it is for callers. */
#ifndef ZMTP_PORT_H
#define ZMTP_PORT_H

#include "zmtp_net.h"

/** Sends what the socket takes at once: octets sent; 0: nothing now; or ZMTP_GONE. */
int32_t zmtp_port_send(zmtp_link_t *link, const uint8_t *octets, uint32_t size);

/** Reads what is there: octets read; 0: nothing now; or ZMTP_GONE. Of no use to a port that is called when something comes. */
int32_t zmtp_port_read(zmtp_link_t *link, uint8_t *octets, uint32_t size);

/** Gives the socket back, without waiting for the peer. */
void zmtp_port_close(zmtp_link_t *link);

/** Begins a connection on a free link; null, if there is none. */
zmtp_link_t *zmtp_net_begin(zmtp_net_t *net, const zmtp_end_t *end, zmtp_link_state_t state);

/** Ends a connection and tells it. */
void zmtp_net_end(zmtp_net_t *net, zmtp_link_t *link, int32_t why);

/** Gives octets that were read to a link, and ends it by the peer's fault. */
void zmtp_net_received(zmtp_net_t *net, zmtp_link_t *link, const uint8_t *octets, uint32_t size);

/** Reads what is there, tells it, and writes what came of it: nonzero, if there was something. */
int zmtp_net_serve(zmtp_net_t *net, zmtp_link_t *link);

/** In front of a turn's wait: writes, and looks at the links' clocks. How long the turn may wait, at most `wait_ms`. */
uint32_t zmtp_net_watch(zmtp_net_t *net, uint32_t wait_ms);

#endif
