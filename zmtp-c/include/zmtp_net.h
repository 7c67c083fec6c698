/**
 * Links over TCP: what each of the ports offers, so that a program runs on all of them. One of port/posix, port/lwip and port/riot is compiled with it.
 *
 * One loop serves all links of a zmtp_net_t, on the thread that calls zmtp_net_turn. On POSIX and lwIP nothing here blocks but the wait of a turn; on RIOT a connect and a
 * write do, for CONFIG_GNRC_TCP_CONNECTION_TIMEOUT_DURATION_MS at the most. What is sent in a turn goes out at its end, or by zmtp_net_flush, in one write a link: so queued
 * messages share segments, and a lone one is one.
 */
#ifndef ZMTP_NET_H
#define ZMTP_NET_H

#include "zmtp_link.h"

/** Links of one loop at the most. */
#ifndef ZMTP_NET_LINKS_MAX
#define ZMTP_NET_LINKS_MAX 64u
#endif

/** How long a handshake may take, TCP's included, in milliseconds: then the link is gone. */
#ifndef ZMTP_NET_HANDSHAKE_MS
#define ZMTP_NET_HANDSHAKE_MS 5000u
#endif

/** How long a listener that waits for the peer's greeting does so, in milliseconds. */
#ifndef ZMTP_NET_SPEAK_MS
#define ZMTP_NET_SPEAK_MS 100u
#endif

/**
 * By lwIP: segments of a link that may wait for their acknowledgements; what is written meanwhile waits in the link, and joins. TCP counts octets: of small messages, each a segment, it has
 * hundreds under way where its buffers are large, and many nodes on one radio then wait for each other for minutes. 8 is what lwIP has room for by its own defaults.
 */
#ifndef ZMTP_NET_SEGMENTS_MAX
#define ZMTP_NET_SEGMENTS_MAX 8u
#endif

/**
 * Octets of one write at the most; 0: all that waits, which TCP cuts to segments of its MSS. On a radio: what a frame has room for, so that queued messages join up to a frame and none is cut by
 * 6LoWPAN. The message at the border goes on in the next write.
 */
#ifndef ZMTP_NET_WRITE_MAX
#define ZMTP_NET_WRITE_MAX 0u
#endif

/** What happens at either end of a link: how it speaks, who is told, and a pointer for who is told. */
typedef struct {
    const zmtp_settings_t *settings;
    zmtp_heard_t heard;
    void *owner;
} zmtp_end_t;

/** A loop, its links and their memory. All of it is the caller's. */
typedef struct {
    zmtp_link_t *links;                 /**< begin as zeros */
    const zmtp_link_memory_t *memories; /**< one for each link */
    uint32_t count;                     /**< at most ZMTP_NET_LINKS_MAX */
    uint8_t *input;                     /**< what is read, of all links in turn */
    uint32_t input_size;
    zmtp_end_t accepted; /**< of the links that zmtp_net_listen takes in */
    /**
     * How long nothing may come from a peer until it is asked for a sign of life by PING, in milliseconds; after as much again without one the link is gone. 0: a silent peer is
     * waited for, for ever if its end was not told: a node that has lost its battery tells none. Longer than a peer works without a turn. Needs ZMTP_WITH_PING.
     */
    uint32_t silence_ms;
    void *port;          /**< on RIOT its sockets (zmtp_riot.h); else null */
    union {
        int descriptor;
        void *socket;
    } listener; /* the port's */
} zmtp_net_t;

/** Begins, with links and memory that are set; nothing listens yet. 0, or ZMTP_ARGUMENT. */
int32_t zmtp_net_open(zmtp_net_t *net);

/**
 * Takes connections in on free links; further ones are closed at once.
 *
 * @param address  where, as text; null: everywhere
 * @param port     0: any
 * @retval the port, or ZMTP_GONE
 */
int32_t zmtp_net_listen(zmtp_net_t *net, const char *address, uint16_t port);

/** Takes no further connections in. */
void zmtp_net_listen_no_more(zmtp_net_t *net);

/**
 * Begins a connection on a free link; heard is told ZMTP_READY or the end.
 *
 * @param address  a number in text: "192.0.2.1", "2001:db8::1"
 * @retval the link, or null: there is no free one, or the address is none
 */
zmtp_link_t *zmtp_net_connect(zmtp_net_t *net, const char *address, uint16_t port, const zmtp_end_t *end);

/** Writes, waits for at most `wait_ms`, reads, tells, writes. 0, or ZMTP_GONE: the system does not poll. */
int32_t zmtp_net_turn(zmtp_net_t *net, uint32_t wait_ms);

/** Writes what waits on a link, as far as it goes. */
void zmtp_net_flush(zmtp_net_t *net, zmtp_link_t *link);

/** Ends a connection without waiting for its peer, and without telling heard; what waits is written as far as it goes. */
void zmtp_net_close(zmtp_net_t *net, zmtp_link_t *link);

/** Milliseconds since some time; they wrap around. */
uint32_t zmtp_net_now_ms(void);

#endif
