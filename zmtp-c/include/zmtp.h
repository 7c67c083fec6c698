/**
 * ZMTP 3.0 and 3.1 (RFC 23, RFC 37) for one connection, without I/O: octets in, events out, octets out.
 *
 * No allocation, no global, no clock; of libc only <stdint.h>, <stddef.h> and <string.h>. The caller owns the socket and two pieces of memory: one
 * zmtp_t, and a buffer for what arrives in pieces.
 *
 *     zmtp_open(&z, &settings, buffer, sizeof buffer);
 *     for (;;) {
 *         while ((n = zmtp_poll(&z, out, sizeof out)) > 0) { write(fd, out, n); }     greeting and READY go out in one write
 *         zmtp_sink(&z, in, read(fd, in, sizeof in));
 *         while ((what = zmtp_next(&z, &event)) > ZMTP_NONE) { ... }
 *         if (what < 0) { poll once more: the peer is told why; then close }
 *         if (zmtp_is_ready(&z)) { n = zmtp_put(&z, 0, "hi", 2, out, sizeof out); write(fd, out, n); }
 *     }
 *
 * Octets given to zmtp_sink stay where they are until zmtp_next has returned ZMTP_NONE: a frame that is whole in them is told where it stands,
 * without a copy. What is cut is collected in the buffer. So frames up to the buffer's size are always told in one piece; longer ones come as
 * fragments of exactly that size, wherever the stream was cut.
 */
#ifndef ZMTP_H
#define ZMTP_H

#include <stddef.h>
#include <stdint.h>

#include "zmtp_config.h"

/** Smallest buffer that is taken, in octets: commands of the handshake must fit, and READY of libzmq with an identity of 16 octets does. */
#define ZMTP_BUFFER_MIN 64u

/** Room that zmtp_poll can need at once beyond an identity, a user name and a password, in octets. */
#define ZMTP_POLL_ROOM 128u

/** Most octets of a PING's context (RFC 37). */
#define ZMTP_CONTEXT_MAX 16u

/** Longest prefix of a subscription that can be sent, in octets. */
#define ZMTP_PREFIX_MAX 246u

/** Socket types. The last two are spoken to, and not spoken. */
typedef enum {
    ZMTP_REQ,
    ZMTP_REP,
    ZMTP_DEALER,
    ZMTP_ROUTER,
    ZMTP_PUB,
    ZMTP_SUB,
    ZMTP_PUSH,
    ZMTP_PULL,
    ZMTP_PAIR,
    ZMTP_XPUB,
    ZMTP_XSUB
} zmtp_type_t;

/** Security mechanisms. */
typedef enum { ZMTP_NULL, ZMTP_PLAIN, ZMTP_CURVE } zmtp_mechanism_t;

/** Octets of somebody else's memory. */
typedef struct {
    const uint8_t *octets;
    uint32_t size;
} zmtp_slice_t;

/** What many connections may share; it may lie in flash, and outlives them. All that is not set (zero) is off. */
typedef struct {
    uint8_t socket_type; /**< a zmtp_type_t up to ZMTP_PAIR */
    uint8_t mechanism;   /**< a zmtp_mechanism_t; a peer with another one is closed */
    uint8_t is_server;   /**< of PLAIN and CURVE: this end decides who comes in; with NULL both ends are alike */
    uint8_t waits;       /**< this end's greeting waits for the peer's, or for zmtp_speak */
    /** `Identity` of REQ, DEALER and ROUTER: at most 255 octets, not beginning with 00. Null octets: the property is not sent. */
    zmtp_slice_t identity;
    /** A longer frame is refused when its head is in, before anything of it is read. 0: 65,536. */
    uint32_t frame_octets_max;
#if ZMTP_WITH_PROPERTY
    /** A further property that the peer is told with the handshake, by its name of at most 255 octets ("X-..."). Null: none. */
    const char *property;
    zmtp_slice_t property_value;
#endif
#if ZMTP_WITH_PLAIN
    zmtp_slice_t username; /**< a client's, at most 255 octets */
    zmtp_slice_t password; /**< a client's, at most 255 octets */
    /** A server's: nonzero lets the client in. Null: nobody comes in. */
    int (*authenticate)(void *context, zmtp_slice_t username, zmtp_slice_t password);
    void *context; /**< passed to authenticate */
#endif
#if ZMTP_WITH_CURVE
    const struct zmtp_curve_keys *curve; /**< zmtp_curve.h */
#endif
} zmtp_settings_t;

/** What zmtp_next found. */
typedef enum {
    ZMTP_NONE = 0,  /**< all octets are taken: their memory is the caller's again */
    ZMTP_READY,     /**< messages may be sent; octets: the peer's Identity, which proves nothing */
    ZMTP_FRAME,     /**< octets of a message's frame; see more and goes_on */
    ZMTP_SUBSCRIBE, /**< octets: a prefix (to PUB) */
    ZMTP_CANCEL,    /**< octets: a prefix (to PUB) */
    ZMTP_PING,      /**< was answered; ttl_ds says when the peer takes us for dead, octets: its context */
    ZMTP_PONG       /**< octets: the context of our PING */
} zmtp_kind_t;

/** Why a call failed. The first group is the peer's fault and ends the connection; the second the caller's, and nothing has changed. */
typedef enum {
    ZMTP_BAD_GREETING = -1, /**< no ZMTP, or an older one than 3.0 */
    ZMTP_BAD_MECHANISM = -2,
    ZMTP_BAD_FRAME = -3, /**< flags or a size that no frame has */
    ZMTP_TOO_LONG = -4,  /**< a frame beyond the limit, or a command or envelope beyond the buffer */
    ZMTP_BAD_COMMAND = -5,
    ZMTP_BAD_METADATA = -6,
    ZMTP_BAD_TYPE = -7,   /**< a socket type that does not fit ours */
    ZMTP_DENIED = -8,     /**< name and password, or the key, are not let in */
    ZMTP_UNEXPECTED = -9, /**< a message that the peer's socket type may not send now */
    ZMTP_PEER_ERROR = -10, /**< it has told ERROR; octets: its reason */
    ZMTP_CLOSED = -11,     /**< by zmtp_close */
    ZMTP_FORGED = -13,     /**< of CURVE: a box does not open, or its number was used */

    ZMTP_ROOM = -20,     /**< the output has too little room: nothing was written, come again with more */
    ZMTP_NOT_READY = -21, /**< the handshake is not over: libzmq drops who sends now */
    ZMTP_WRONG_TURN = -22, /**< this socket type may not send, or not now (REQ has asked, REP was not asked), or REP has to answer first */
    ZMTP_ARGUMENT = -23 /**< settings, buffer or sizes are outside of what is documented, or not built in */
} zmtp_fault_t;

/** What was found. */
typedef struct {
    const uint8_t *octets; /**< valid until the next call of zmtp_next or zmtp_sink */
    uint32_t size;
    uint16_t ttl_ds;  /**< of ZMTP_PING: tenths of a second; 0: none */
    uint8_t more;     /**< of ZMTP_FRAME: further frames of the message follow this one. A message counts when its last frame is in. */
    uint8_t goes_on;  /**< of ZMTP_FRAME: the body is longer than the buffer, and this is not its end */
} zmtp_event_t;

/** One connection. Its members are the library's; the size is what matters: 60 octets where pointers have four. */
typedef struct {
    const zmtp_settings_t *settings;
    uint8_t *buffer;
    uint32_t buffer_size;
    const uint8_t *input;
    uint32_t input_left;
    uint32_t body_left; /* of the frame that is read: octets that were not told yet */
    uint32_t filled;    /* octets of the next fragment in the buffer; in front of the handshake, of the peer's greeting */
    uint32_t kept;      /* octets of the envelope of REP at the buffer's beginning, as on the wire */
    uint8_t phase;
    uint8_t head_left; /* octets of the frame's head that are not in */
    uint8_t flags;     /* of the frame that is read */
    uint8_t conduct;   /* where in a message, a request, a reply we are */
    uint8_t pending;   /* what zmtp_poll has to write */
    uint8_t peer_type;
    uint8_t minor;
    int8_t fault;
#if ZMTP_WITH_PING
    uint8_t context_size;
    uint8_t context[ZMTP_CONTEXT_MAX]; /* of the PING that is to be answered */
#endif
#if ZMTP_WITH_CURVE
    struct zmtp_curve *curve;
#endif
} zmtp_t;

/**
 * Begins a connection; what zmtp_poll then gives is its first write.
 *
 * @param buffer, size  memory for what arrives in pieces, at least ZMTP_BUFFER_MIN octets, and as many as the longest command or envelope
 *                      (REP keeps a request's envelope in it, half of it at the most)
 * @retval 0, or ZMTP_ARGUMENT
 */
int32_t zmtp_open(zmtp_t *z, const zmtp_settings_t *settings, uint8_t *buffer, uint32_t size);

/**
 * Takes what was read.
 *
 * @retval size, or 0 while octets of the last call are left: call zmtp_next until it says ZMTP_NONE
 */
uint32_t zmtp_sink(zmtp_t *z, const uint8_t *octets, uint32_t size);

/**
 * Finds the next event.
 *
 * @retval a zmtp_kind_t; or a zmtp_fault_t of the first group, again at every further call; or ZMTP_WRONG_TURN while REP owes a reply
 */
int32_t zmtp_next(zmtp_t *z, zmtp_event_t *event);

/**
 * Writes what the protocol itself has to say: greeting, commands of the handshake, PONG, ERROR. To be called before each write of messages.
 *
 * @retval octets written; 0: nothing is to be said; ZMTP_ROOM
 */
int32_t zmtp_poll(zmtp_t *z, uint8_t *out, uint32_t room);

/**
 * Writes one frame of a message, head and body in one piece. REQ's delimiter and REP's envelope go out in front of the first one.
 *
 * @param more  nonzero: further frames of this message follow
 * @retval octets written; ZMTP_ROOM, ZMTP_NOT_READY, ZMTP_WRONG_TURN
 */
int32_t zmtp_put(zmtp_t *z, int more, const void *body, uint32_t size, uint8_t *out, uint32_t room);

/**
 * Writes the head of a frame whose body of `size` octets the caller streams behind it: nothing else may go out before its end.
 *
 * @retval as zmtp_put
 */
int32_t zmtp_put_head(zmtp_t *z, int more, uint32_t size, uint8_t *out, uint32_t room);

/** Octets that a frame of this size takes on the wire, without REQ's delimiter and REP's envelope. */
uint32_t zmtp_frame_size(uint32_t size);

/**
 * Writes a subscription of SUB, in the form that the peer's version has.
 *
 * @param prefix, size  at most ZMTP_PREFIX_MAX octets; none: everything
 * @retval octets written; ZMTP_ROOM, ZMTP_NOT_READY, ZMTP_WRONG_TURN, ZMTP_ARGUMENT
 */
int32_t zmtp_subscribe(zmtp_t *z, const void *prefix, uint32_t size, uint8_t *out, uint32_t room);

/** Takes one subscription back; as zmtp_subscribe. */
int32_t zmtp_cancel(zmtp_t *z, const void *prefix, uint32_t size, uint8_t *out, uint32_t room);

/**
 * Writes PING.
 *
 * @param ttl_ds         tenths of a second after which the peer may take us for dead; 0: none
 * @param context, size  at most ZMTP_CONTEXT_MAX octets that PONG brings back
 */
int32_t zmtp_ping(zmtp_t *z, uint16_t ttl_ds, const void *context, uint32_t size, uint8_t *out, uint32_t room);

/** Does not wait for the peer's greeting any longer: for a timer of some 100 ms of the caller's, against peers that wait too. */
void zmtp_speak(zmtp_t *z);

/** Ends the connection from this end; zmtp_poll has ERROR with this text for the peer, where it may be told. */
void zmtp_close(zmtp_t *z);

/** Whether messages may be sent. */
int zmtp_is_ready(const zmtp_t *z);

/** What a fault was, in a few words of ASCII; empty without ZMTP_WITH_REASONS. */
const char *zmtp_reason(int32_t fault);

#endif
