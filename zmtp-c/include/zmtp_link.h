/**
 * A connection with its way out: messages go out whole or not at all, what waits is joined to one write. Still without I/O: a port carries the octets.
 *
 * Who has many peers has an array of links. A link is what a routing id of libzmq is: ROUTER answers on the link that it has heard, DEALER and PUSH
 * take the next one in turn (zmtp_links_next).
 */
#ifndef ZMTP_LINK_H
#define ZMTP_LINK_H

#include "zmtp.h"

/** What zmtp_heard_t is told beside events and faults: the connection is gone, without a fault of the peer's. */
#define ZMTP_GONE (-12)

typedef struct zmtp_link zmtp_link_t;

/**
 * Is told each event of a link, in the call that has received it: `what` is a zmtp_kind_t. A negative one is the end: a zmtp_fault_t, or ZMTP_GONE. It may
 * send on any link. REP answers in this call.
 */
typedef void (*zmtp_heard_t)(zmtp_link_t *link, int32_t what, const zmtp_event_t *event);

/** What a port knows of a link. */
typedef enum { ZMTP_LINK_FREE, ZMTP_LINK_CONNECTING, ZMTP_LINK_OPEN } zmtp_link_state_t;

/** A connection and what waits to be sent on it. */
struct zmtp_link {
    zmtp_t zmtp;
    zmtp_heard_t heard;
    void *owner; /**< the caller's */
    uint8_t *out;
    uint32_t out_size;
    uint32_t out_begin; /* what waits: out_begin to out_end */
    uint32_t out_end;
    union {
        int descriptor;
        void *socket;
    } port; /**< the port's */
    void *received; /* the port's: what has come and was not read */
    int found;      /* the port's: what it has found on the socket */
    uint32_t since_ms; /* the port's, by its clock: when the connection was begun; behind the handshake, when something has come last, or the peer was asked for a sign of life */
    uint8_t state; /**< a zmtp_link_state_t */
    uint8_t is_asked; /* the port's: for a sign of life */
    uint8_t holds; /**< the caller's: while it is nonzero the port reads nothing here, and TCP makes the peer wait */
};

/** Memory of a link, which it keeps over all its connections. */
typedef struct {
    uint8_t *in; /**< for what arrives in pieces: ZMTP_BUFFER_MIN octets or more */
    uint32_t in_size;
    uint8_t *out; /**< what waits to be sent: a message is never longer; ZMTP_POLL_ROOM octets or more */
    uint32_t out_size;
#if ZMTP_WITH_CURVE
    struct zmtp_curve *curve; /**< of CURVE: what a connection knows besides (zmtp_curve.h) */
#endif
} zmtp_link_memory_t;

/**
 * Begins a connection, on a link that has none.
 *
 * @retval 0, or ZMTP_ARGUMENT
 */
int32_t zmtp_link_open(zmtp_link_t *link, const zmtp_settings_t *settings, const zmtp_link_memory_t *memory, zmtp_heard_t heard, void *owner);

/**
 * Puts a message behind what waits, whole or not at all.
 *
 * @param frames, count  one or more
 * @retval 0; ZMTP_ROOM: not now; ZMTP_TOO_LONG: not ever, the link's memory is shorter; ZMTP_NOT_READY, ZMTP_WRONG_TURN
 */
int32_t zmtp_link_send(zmtp_link_t *link, const zmtp_slice_t *frames, uint32_t count);

/** A message of one frame. */
int32_t zmtp_link_send_one(zmtp_link_t *link, const void *body, uint32_t size);

/** Subscribes, or takes a subscription back (`subscribes` zero); as zmtp_link_send. */
int32_t zmtp_link_subscribe(zmtp_link_t *link, int subscribes, const void *prefix, uint32_t size);

/** Puts PING behind what waits; as zmtp_link_send. */
int32_t zmtp_link_ping(zmtp_link_t *link, uint16_t ttl_ds);

/** Octets of messages that still find room. */
uint32_t zmtp_link_room(const zmtp_link_t *link);

/** For ports: tells what is in the octets that were read. 0, or the fault for which the connection ends when what waits is sent. */
int32_t zmtp_link_received(zmtp_link_t *link, const uint8_t *octets, uint32_t size);

/** For ports: what waits to be sent. */
zmtp_slice_t zmtp_link_waiting(zmtp_link_t *link);

/** For ports: so many octets of that are sent. */
void zmtp_link_sent(zmtp_link_t *link, uint32_t size);

/**
 * The next ready link with room for so many octets, behind the one that was last: so a round goes over all peers, and passes over those who are full.
 *
 * @param last  the last one's number, which the caller keeps; it is set to that of the link returned
 * @retval a link, or null: nobody has room
 */
zmtp_link_t *zmtp_links_next(zmtp_link_t *links, uint32_t count, uint32_t *last, uint32_t size);

#endif
