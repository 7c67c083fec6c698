/** One end of a connection in a test: what it was told is a text, what it has written are octets. */
#ifndef PARTY_H
#define PARTY_H

#include "zmtp.h"

#define PARTY_OUT_MAX 65536u
#define PARTY_TOLD_MAX 65536u
#define PARTY_BUFFER_MAX 4096u

typedef struct {
    zmtp_t zmtp;
    zmtp_settings_t settings;
    uint8_t buffer[PARTY_BUFFER_MAX];
    uint8_t out[PARTY_OUT_MAX];
    uint32_t out_size;
    char told[PARTY_TOLD_MAX]; /**< events as in vectors/zmtp/conversations.json, a line each; fragments of a frame are joined by '+' */
    uint32_t told_size;
    int32_t last; /**< what zmtp_next has returned last */
    int is_inside; /**< of a message */
    int shows_delimiter; /**< REQ and REP are told none; golden messages have it */
} party_t;

/** A party with these settings and a buffer of so many octets. */
void party_open(party_t *party, const zmtp_settings_t *settings, uint32_t buffer_size);

/** A party of this type, NULL, whose peer of that type and version 3.`minor` has finished its handshake; nothing is told or written any more. */
void party_ready(party_t *party, uint8_t type, uint8_t peer_type, uint8_t minor, uint32_t buffer_size);

/** Gives octets in pieces: cut behind `cut` octets; 0: each alone; as many as there are: not at all. Each piece is gone behind the call. */
void party_receive(party_t *party, const uint8_t *octets, uint32_t size, uint32_t cut);

/** Appends what zmtp_poll has. */
void party_poll(party_t *party);

/** Appends a frame: what zmtp_put has returned. */
int32_t party_put(party_t *party, int more, const void *body, uint32_t size);

/** Forgets what was told and written. */
void party_forget(party_t *party);

/** The zmtp_type_t of a name. */
uint8_t party_type(const char *name);
const char *party_type_name(uint8_t type);

/** The greeting and READY of a peer of libzmq: octets written. */
uint32_t party_peer(uint8_t type, uint8_t minor, uint8_t *out);

#endif
