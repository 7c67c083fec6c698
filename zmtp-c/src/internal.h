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

/** Whether our mechanism is PLAIN. */
#define zmtp_is_plain(settings) (ZMTP_WITH_PLAIN && ((settings)->mechanism == (uint8_t)ZMTP_PLAIN))

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

#endif
