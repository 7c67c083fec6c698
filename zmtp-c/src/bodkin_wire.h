/** Octets of Bodkin's commands (docs/formats/replica-link.md): what the node writes and reads. Nothing of it is for callers. */
#ifndef BODKIN_WIRE_H
#define BODKIN_WIRE_H

#include "bodkin_subscriber.h"

/** Kinds of commands that publishers and subscribers send and are sent. */
enum {
    BODKIN_KIND_HELLO = 64,
    BODKIN_KIND_LEADER = 65,
    BODKIN_KIND_COVERED = 66,
    BODKIN_KIND_REFUSED = 67,
    BODKIN_KIND_SUBSCRIBE = 68,
    BODKIN_KIND_SUBSCRIBED = 69,
    BODKIN_KIND_SUBSCRIBE_REFUSED = 70,
    BODKIN_KIND_DELIVERED = 71,
    BODKIN_KIND_LAST = 72,
    BODKIN_KIND_RESUME = 73,
    BODKIN_KIND_LOST = 74,
    BODKIN_KIND_EXCESS = 76,
    BODKIN_KIND_CLOCK_REQUEST = 77,
    BODKIN_KIND_CLOCK_REPLY = 78,
    BODKIN_KIND_WATCH_GUARANTEE = 79,
    BODKIN_KIND_GUARANTEED = 80
};

/** Octets of a command at the most: one with three numbers and a name; of a subscriber SUBSCRIBE, with both wishes, how it is required, and watermarks. */
#if BODKIN_WITH_SUBSCRIBER
#define BODKIN_OWN_COMMAND_MAX (1u + 1u + 8u + 5u + 9u + 9u + 2u + BODKIN_NAME_MAX + 2u + (24u * BODKIN_STREAMS_MAX))
#else
#define BODKIN_OWN_COMMAND_MAX (1u + 1u + 8u + (3u * 8u) + 2u + BODKIN_NAME_MAX)
#endif

/** A command that is being written. */
typedef struct {
    uint8_t octets[BODKIN_OWN_COMMAND_MAX];
    uint32_t size;
} bodkin_command_t;

void bodkin_begin(bodkin_command_t *command, uint8_t kind, uint64_t epoch);
void bodkin_add_octet(bodkin_command_t *command, uint8_t octet);
void bodkin_add_number(bodkin_command_t *command, uint64_t number);
void bodkin_add_text(bodkin_command_t *command, const char *text);

/** A command that is being read: what is left of it. It is cut where fields end before their time. */
typedef struct {
    zmtp_slice_t left;
    int is_cut;
} bodkin_reader_t;

uint8_t bodkin_read_octet(bodkin_reader_t *reader);
uint64_t bodkin_read_number(bodkin_reader_t *reader);
zmtp_slice_t bodkin_read_text(bodkin_reader_t *reader);

#endif
