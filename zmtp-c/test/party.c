#include "party.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const TYPES[] = {"REQ", "REP", "DEALER", "ROUTER", "PUB", "SUB", "PUSH", "PULL", "PAIR", "XPUB", "XSUB"};

uint8_t party_type(const char *name)
{
    uint8_t type = 0;
    while (strcmp(TYPES[type], name) != 0) {
        type++;
    }
    return type;
}

const char *party_type_name(uint8_t type)
{
    return TYPES[type];
}

static void tell(party_t *party, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    party->told_size += (uint32_t)vsnprintf(&party->told[party->told_size], PARTY_TOLD_MAX - party->told_size, format, arguments);
    va_end(arguments);
    if (party->told_size >= PARTY_TOLD_MAX) {
        abort();
    }
}

static void tell_octets(party_t *party, const zmtp_event_t *event)
{
    uint32_t i;
    for (i = 0; i < event->size; i++) {
        tell(party, "%02x", event->octets[i]);
    }
}

static int authenticate(void *context, zmtp_slice_t username, zmtp_slice_t password)
{
    party_t *party = context;
    tell(party, "authenticate %.*s %.*s\n", (int)username.size, (const char *)username.octets, (int)password.size,
         (const char *)password.octets);
    return (password.size != 5u) || (memcmp(password.octets, "wrong", 5) != 0);
}

void party_open(party_t *party, const zmtp_settings_t *settings, uint32_t buffer_size)
{
    memset(party, 0, sizeof *party);
    party->settings = *settings;
    if (settings->is_server && (settings->authenticate == NULL)) {
        party->settings.authenticate = authenticate;
        party->settings.context = party;
    }
    if (zmtp_open(&party->zmtp, &party->settings, party->buffer, buffer_size) != 0) {
        (void)fprintf(stderr, "zmtp_open takes no %s with %u octets\n", TYPES[settings->socket_type], buffer_size);
        abort();
    }
}

uint32_t party_peer(uint8_t type, uint8_t minor, uint8_t *out)
{
    static const uint8_t GREETING[16] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    uint32_t name = (uint32_t)strlen(TYPES[type]);
    memset(out, 0, 64);
    memcpy(out, GREETING, sizeof GREETING);
    out[11] = minor;
    out[64] = 4;
    out[65] = (uint8_t)(22u + name);
    memcpy(&out[66], "\5READY\13Socket-Type\0\0\0", 21);
    out[87] = (uint8_t)name;
    memcpy(&out[88], TYPES[type], name);
    return 88u + name;
}

void party_ready(party_t *party, uint8_t type, uint8_t peer_type, uint8_t minor, uint32_t buffer_size)
{
    zmtp_settings_t settings;
    uint8_t peer[128];
    uint32_t size = party_peer(peer_type, minor, peer);
    memset(&settings, 0, sizeof settings);
    settings.socket_type = type;
    party_open(party, &settings, buffer_size);
    party_receive(party, peer, size, size);
    party_poll(party);
    party_forget(party);
}

static void tell_event(party_t *party, const zmtp_event_t *event)
{
    switch (party->last) {
    case ZMTP_READY:
        tell(party, "ready %s\n", TYPES[party->zmtp.peer_type]);
        break;
    case ZMTP_FRAME:
        if (!party->is_inside) {
            tell(party, party->shows_delimiter ? "message  " : "message ");
        }
        tell_octets(party, event);
        tell(party, event->goes_on ? "+" : (event->more ? " " : "\n"));
        party->is_inside = event->goes_on || event->more;
        break;
    case ZMTP_SUBSCRIBE:
    case ZMTP_CANCEL:
    case ZMTP_PONG:
        tell(party, (party->last == (int32_t)ZMTP_PONG) ? "pong " : ((party->last == (int32_t)ZMTP_SUBSCRIBE) ? "subscribe " : "cancel "));
        tell_octets(party, event);
        tell(party, "\n");
        break;
    case ZMTP_PING:
        tell(party, "ping %u s\n", event->ttl_ds / 10u);
        break;
    default:
        tell(party, "fault %d", (int)party->last);
        if (event->size > 0u) {
            tell(party, " %.*s", (int)event->size, (const char *)event->octets);
        }
        tell(party, "\n");
        break;
    }
}

/** A piece in memory of its own, which is gone when all of it is taken: who keeps a pointer into it is caught. */
static void receive_piece(party_t *party, const uint8_t *octets, uint32_t size)
{
    zmtp_event_t event;
    uint8_t *piece = malloc((size > 0u) ? size : 1u);
    if (piece == NULL) {
        abort();
    }
    memcpy(piece, octets, size);
    if (zmtp_sink(&party->zmtp, piece, size) != size) {
        abort();
    }
    do {
        party->last = zmtp_next(&party->zmtp, &event);
        if (party->last != (int32_t)ZMTP_NONE) {
            tell_event(party, &event);
        }
    } while (party->last > (int32_t)ZMTP_NONE);
    free(piece);
}

void party_receive(party_t *party, const uint8_t *octets, uint32_t size, uint32_t cut)
{
    uint32_t at = 0;
    uint32_t step = (cut == 0u) ? 1u : ((cut < size) ? cut : size);
    party->last = ZMTP_NONE;
    while ((at < size) && (party->last == (int32_t)ZMTP_NONE)) {
        uint32_t count = ((size - at) < step) ? (size - at) : step;
        receive_piece(party, &octets[at], count);
        at += count;
        step = (cut == 0u) ? 1u : size;
    }
}

void party_poll(party_t *party)
{
    int32_t written = zmtp_poll(&party->zmtp, &party->out[party->out_size], PARTY_OUT_MAX - party->out_size);
    if (written > 0) {
        party->out_size += (uint32_t)written;
    }
}

int32_t party_put(party_t *party, int more, const void *body, uint32_t size)
{
    int32_t written = zmtp_put(&party->zmtp, more, body, size, &party->out[party->out_size], PARTY_OUT_MAX - party->out_size);
    if (written > 0) {
        party->out_size += (uint32_t)written;
    }
    return written;
}

void party_forget(party_t *party)
{
    party->out_size = 0;
    party->told_size = 0;
    party->told[0] = 0;
}
