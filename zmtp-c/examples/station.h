/**
 * What the use cases of Mueller's thesis share: a net with its memory, and the machine that they run on.
 *
 * The machine is one of station_posix.c, radio/station_radio.c and riot_use_case/main.c: what that has to offer stands in the second half.
 */
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

/** How long nothing may come from the other end until it is asked for a sign of life, in milliseconds: longer than a worker is at a chunk. */
#ifndef STATION_SILENCE_MS
#define STATION_SILENCE_MS 60000u
#endif

/** How often a worker tries to reach its master. */
#define STATION_CONNECTS_MAX 20u

/** The net, of `count` links of this socket type, which tell `heard`; null: there are not so many. */
zmtp_net_t *station_open(zmtp_type_t type, uint32_t count, zmtp_heard_t heard);

/** Turns until every link is ready. */
void station_await_all(zmtp_net_t *net);

/** Connects, again where that fails, until a link is ready; null: nobody is there. */
zmtp_link_t *station_connect(zmtp_net_t *net, const char *address, uint16_t port);

/** Ends all connections that have not ended, when what was written on them has arrived: how long that took, in microseconds. */
uint32_t station_close(zmtp_net_t *net);

/** Reads a number in decimal digits: what the thesis' programs send. */
uint32_t station_number(zmtp_slice_t text);

/** Writes one: octets written, of at least ten. */
uint32_t station_text(uint32_t number, uint8_t *out);

/* ---- the machine ---- */

/** Begins, and gives the net what its port needs besides; zero, if it cannot. */
int station_begin(zmtp_net_t *net);

/** Microseconds since some time; they wrap around. */
uint32_t station_now_us(void);

/** A turn of the net that waits as it says. */
void station_turn(zmtp_net_t *net, uint32_t wait_ms);

/** Whether TCP holds back nothing of what was sent on a link, so that what is sent next has a segment of its own. Nonzero on a machine that does not tell. */
int station_has_sent(const zmtp_link_t *link);

/** Whether all that was sent on a link was acknowledged. Nonzero on a machine that sees to that by itself. */
int station_has_arrived(const zmtp_link_t *link);

/** What the work just done takes a Cortex-M3. Nothing on a machine that has taken its own time for it. */
void station_compute(uint32_t cycles);

/** Works on something else for so long. */
void station_work(uint32_t us);

/** Lets peers read what they were sent, where the end of a connection would take that from them. */
void station_yield(void);

/** Turns until the connections that were ended are over, as far as the machine can tell. */
void station_settle(void);

/** Stays for a while behind that, and acknowledges what comes again: who goes at once leaves its peer to wait. */
void station_linger(void);

#endif
