/** What the use cases of Mueller's thesis share: a net with its memory, and a clock. */
#ifndef STATION_H
#define STATION_H

#include "zmtp_net.h"

/** Workers of a master at the most. */
#ifndef STATION_LINKS_MAX
#define STATION_LINKS_MAX 32u
#endif

/** Octets of what waits on a link: with room for a passage of text at the master. */
#ifndef STATION_OUT_SIZE
#define STATION_OUT_SIZE 16384u
#endif

/** The net, of `count` links of this socket type, which tell `heard`. */
zmtp_net_t *station_open(zmtp_type_t type, uint32_t count, zmtp_heard_t heard, void *owner);

/** Microseconds since some time; they wrap around. */
uint32_t station_now_us(void);

/** Reads a number in decimal digits: what the thesis' programs send. */
uint32_t station_number(zmtp_slice_t text);

/** Writes one: octets written, of at least ten. */
uint32_t station_text(uint32_t number, uint8_t *out);

/** Turns until nothing waits on any link. */
void station_flush(zmtp_net_t *net);

#endif
