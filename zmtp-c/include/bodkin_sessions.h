/**
 * A node's sessions to both brokers of a pair, over any port of zmtp_net.h: kept warm, begun again when they end, watched by heartbeats.
 *
 *     bodkin_sessions_open(&sessions);
 *     for (;;) { bodkin_publish(&node, &topic, reading, size); bodkin_sessions_turn(&sessions, 100); }
 */
#ifndef BODKIN_SESSIONS_H
#define BODKIN_SESSIONS_H

#include "bodkin_node.h"
#include "zmtp_curve.h"
#include "zmtp_net.h"

/** Pause in front of the first new attempt to connect, doubled by each that fails, and the longest one, in milliseconds. */
#define BODKIN_RECONNECT_MS_MIN 10u
#define BODKIN_RECONNECT_MS_MAX 1000u

/** `silence_ms` of a net that has none: how long nothing may come from a broker until it is asked for a sign of life. */
#ifndef BODKIN_SILENCE_MS
#define BODKIN_SILENCE_MS 1000u
#endif

typedef struct bodkin_sessions bodkin_sessions_t;

/** The way to one broker. */
typedef struct {
    const char *address; /**< the caller's to set, a number in text; null: there is no such broker */
    uint16_t port;       /**< likewise */

    bodkin_sessions_t *sessions;
    zmtp_link_t *link;
    uint32_t away_ms;  /* since when there has been no link */
    uint32_t pause_ms; /* and how long there will be none */
} bodkin_session_t;

/** Both, and what they belong to; all but the addresses of the first group is begun by bodkin_sessions_open. */
struct bodkin_sessions {
    bodkin_node_t *node; /**< set, as the next two */
    zmtp_net_t *net;     /**< with a free link for each broker */
    /** Is told why a session has ended that is begun again, a zmtp_fault_t or ZMTP_GONE; null: nobody wants to know. */
    void (*ended)(bodkin_sessions_t *sessions, uint32_t broker, int32_t why);
    bodkin_session_t brokers[BODKIN_SESSIONS];
#if ZMTP_WITH_CURVE
    /** Set: Bodkin is in secure mode, and this is the system's own pair of keys, and the ZMTP port's public one, which both brokers have. The links' memory has a zmtp_curve_t. */
    const zmtp_curve_keys_t *curve;
#endif
#if ZMTP_WITH_PROPERTY
    uint8_t wants_metadata; /**< nonzero: events are heard with their metadata, and with the trace that they are of (bodkin_subscriber.h) */
#endif

    zmtp_settings_t settings;
};

/** Begins, with a node that is open and a net that is open. 0, or ZMTP_ARGUMENT. */
int32_t bodkin_sessions_open(bodkin_sessions_t *sessions);

/** Connects, reads, and sends what the node has to send, for at most `wait_ms`. 0, or ZMTP_GONE: the system does not poll. */
int32_t bodkin_sessions_turn(bodkin_sessions_t *sessions, uint32_t wait_ms);

#endif
