/** What the files of the library share; nothing of it is for callers. */
#ifndef ZMTP_INTERNAL_H
#define ZMTP_INTERNAL_H

#include <string.h>

#include "zmtp.h"

#define ZMTP_GREETING_SIZE 64u
#define ZMTP_SIGNATURE_SIZE 10u
#define ZMTP_MECHANISM_AT 12u
#define ZMTP_MECHANISM_SIZE 20u

/** zmtp_t.phase: what the peer has to say next. */
enum { PHASE_GREETING, PHASE_HELLO, PHASE_WELCOME, PHASE_INITIATE, PHASE_READY, PHASE_TRAFFIC, PHASE_CLOSED };

/** zmtp_t.pending, in the order in which they go out. */
enum {
    PENDING_GREETING = 1,
    PENDING_HELLO = 2,
    PENDING_WELCOME = 4,
    PENDING_INITIATE = 8,
    PENDING_READY = 16,
    PENDING_PONG = 32,
    PENDING_ERROR = 64
};

/** zmtp_t.flags: those of a frame on the wire, and that its head is in. */
enum { FLAG_MORE = 1, FLAG_LONG = 2, FLAG_COMMAND = 4, FLAG_BODY = 64 };

/** zmtp_t.conduct. */
enum {
    CONDUCT_OUT_MORE = 1, /* we are inside of a message that goes out */
    CONDUCT_IN_MORE = 2,  /* we are inside of a message that comes in */
    CONDUCT_ASKED = 4,    /* REQ has asked; REP was asked, and owes the reply */
    CONDUCT_BODY = 8,     /* of a message that comes in, the delimiter is behind us */
    CONDUCT_SPEAKS = 16   /* the greeting waits no longer */
};

/** The set of one socket type, and that of all that the library is built with. */
#define ZMTP_SET(type) (1u << (uint32_t)(type))
#define ZMTP_BUILT                                                                                                     \
    ((ZMTP_WITH_REQ ? ZMTP_SET(ZMTP_REQ) : 0u) | (ZMTP_WITH_REP ? ZMTP_SET(ZMTP_REP) : 0u) |                           \
     (ZMTP_WITH_DEALER ? ZMTP_SET(ZMTP_DEALER) : 0u) | (ZMTP_WITH_ROUTER ? ZMTP_SET(ZMTP_ROUTER) : 0u) |               \
     (ZMTP_WITH_PUB ? ZMTP_SET(ZMTP_PUB) : 0u) | (ZMTP_WITH_SUB ? ZMTP_SET(ZMTP_SUB) : 0u) |                           \
     (ZMTP_WITH_PUSH ? ZMTP_SET(ZMTP_PUSH) : 0u) | (ZMTP_WITH_PULL ? ZMTP_SET(ZMTP_PULL) : 0u) |                       \
     (ZMTP_WITH_PAIR ? ZMTP_SET(ZMTP_PAIR) : 0u))

/** Whether our type is one of this set. Of sets that are not built, or are all that is, the compiler knows the answer and leaves out what hangs on it. */
#define zmtp_is_of(z, set)                                                                                             \
    (((ZMTP_BUILT & (set)) != 0u) && (((ZMTP_BUILT & ~(set)) == 0u) || ((ZMTP_SET((z)->settings->socket_type) & (set)) != 0u)))
#define zmtp_is(z, type) zmtp_is_of(z, ZMTP_SET(type))

/** Which mechanism is ours. */
#define zmtp_is_null(settings) ((!ZMTP_WITH_PLAIN && !ZMTP_WITH_CURVE) || ((settings)->mechanism == (uint8_t)ZMTP_NULL))
#define zmtp_is_plain(settings) (ZMTP_WITH_PLAIN && ((settings)->mechanism == (uint8_t)ZMTP_PLAIN))
#define zmtp_is_curve(settings) (ZMTP_WITH_CURVE && ((settings)->mechanism == (uint8_t)ZMTP_CURVE))

/** Octets in front of a frame's body that CURVE keeps free in the buffer, so that 16 are in front of every box: TweetNaCl writes there. */
#define zmtp_lead(z) (zmtp_is_curve((z)->settings) ? 2u : 0u)

/** Where octets are written, as long as there is room. */
typedef struct {
    uint8_t *out;
    uint32_t size;
    uint32_t room;
    int is_short; /* something did not fit */
} zmtp_writer_t;

void zmtp_write(zmtp_writer_t *writer, const void *octets, uint32_t size);
void zmtp_write_octet(zmtp_writer_t *writer, uint8_t octet);
void zmtp_write_size(zmtp_writer_t *writer, uint32_t size);
/** Head of a frame. */
void zmtp_write_head(zmtp_writer_t *writer, uint8_t flags, uint32_t size);
/** Head and name of a command with so many octets behind the name. `name` is as on the wire, with its length in front. */
void zmtp_write_command(zmtp_writer_t *writer, const char *name, uint32_t size);
void zmtp_write_greeting(zmtp_writer_t *writer, const zmtp_settings_t *settings);
/** A command behind the handshake, whose data are two pieces. */
void zmtp_put_command(const zmtp_t *z, zmtp_writer_t *writer, const char *name, const void *head, uint32_t head_size, const void *rest,
                      uint32_t rest_size);
/** The properties that READY and INITIATE tell. */
void zmtp_write_metadata(zmtp_writer_t *writer, const zmtp_settings_t *settings);
uint32_t zmtp_metadata_size(const zmtp_settings_t *settings);

uint32_t zmtp_big_endian(const uint8_t *octets);
int zmtp_types_fit(uint8_t ours, uint8_t theirs);
/** Whether this is the command of this name, as on the wire; then `data` is what follows it. */
int zmtp_is_command(zmtp_slice_t body, const char *name, zmtp_slice_t *data);

/** Reads the properties that the peer tells: ZMTP_READY, with its identity in `event`, or a fault. */
int32_t zmtp_take_metadata(zmtp_t *z, zmtp_slice_t data, zmtp_event_t *event);
/** Ends the connection by the peer's fault: `fault`. */
int32_t zmtp_fail(zmtp_t *z, int32_t fault);
/** Octets that are taken from the input: all of the greeting that is there. 0 or a fault. */
int32_t zmtp_take_greeting(zmtp_t *z);
/** A command in front of the end of the handshake: ZMTP_NONE, ZMTP_READY or a fault. */
int32_t zmtp_take_handshake(zmtp_t *z, zmtp_slice_t body, zmtp_event_t *event);
/** A command behind it: ZMTP_NONE, an event or a fault. */
int32_t zmtp_take_command(zmtp_t *z, zmtp_slice_t body, zmtp_event_t *event);
/** Octets of a message: ZMTP_NONE if they do not concern the caller, an event or a fault. */
int32_t zmtp_take_message(zmtp_t *z, zmtp_slice_t octets, int goes_on, zmtp_event_t *event);

#if ZMTP_WITH_CURVE
void zmtp_write_curve_hello(const zmtp_t *z, zmtp_writer_t *writer);
void zmtp_write_curve_initiate(const zmtp_t *z, zmtp_writer_t *writer);
int32_t zmtp_take_curve_welcome(zmtp_t *z, zmtp_slice_t data);
int32_t zmtp_take_curve_ready(zmtp_t *z, zmtp_slice_t data, zmtp_event_t *event);
#if ZMTP_WITH_CURVE_SERVER
int32_t zmtp_take_curve_hello(zmtp_t *z, zmtp_slice_t data);
int32_t zmtp_take_curve_initiate(zmtp_t *z, zmtp_slice_t data, zmtp_event_t *event);
void zmtp_write_curve_welcome(const zmtp_t *z, zmtp_writer_t *writer);
void zmtp_write_curve_ready(const zmtp_t *z, zmtp_writer_t *writer);
#endif
/** Opens a MESSAGE where it stands in the buffer: its payload, with its flags in z->flags. ZMTP_NONE or a fault. */
int32_t zmtp_open_curve_message(zmtp_t *z, zmtp_slice_t body, zmtp_slice_t *payload);
/** In front of and behind what is in a box of MESSAGE. */
uint32_t zmtp_begin_curve_message(const zmtp_t *z, zmtp_writer_t *writer, uint8_t flags, uint32_t size);
void zmtp_end_curve_message(const zmtp_t *z, zmtp_writer_t *writer, uint32_t begin);
#endif

/** Head of a frame behind the handshake; of CURVE, what is in front of the payload in its box. What zmtp_end_frame needs. */
static inline uint32_t zmtp_begin_frame(const zmtp_t *z, zmtp_writer_t *writer, uint8_t flags, uint32_t size)
{
#if ZMTP_WITH_CURVE
    if (zmtp_is_curve(z->settings)) {
        return zmtp_begin_curve_message(z, writer, flags, size);
    }
#endif
    (void)z;
    zmtp_write_head(writer, flags, size);
    return 0;
}

/** The payload is written: of CURVE, seals it. */
static inline void zmtp_end_frame(const zmtp_t *z, zmtp_writer_t *writer, uint32_t begin)
{
#if ZMTP_WITH_CURVE
    if (zmtp_is_curve(z->settings)) {
        zmtp_end_curve_message(z, writer, begin);
    }
#endif
    (void)z;
    (void)writer;
    (void)begin;
}

#endif
