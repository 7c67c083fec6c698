/*
 * A broker on the library's server end, for tests of clients in other languages: it takes whoever proves who it is, says that it leads, and covers each event.
 *
 *     broker null|plain|curve
 *
 * By PLAIN "admin" comes in with the password "secret". By CURVE (built with -DZMTP_WITH_CURVE=1 -DZMTP_WITH_CURVE_SERVER=1 -Iadapter -lsodium) BODKIN_SECRET_KEY is its own secret key, and comes in
 * whose public key is BODKIN_CLIENT_KEY. It says its port, and then a line for each event and each end of a connection, until it is killed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/bodkin_wire.h"
#include "zmtp_net.h"
#if ZMTP_WITH_CURVE
#include "zmtp_sodium.h"
#include "zmtp_z85.h"
#endif

#define LINKS 4u
#define BUFFER 512u
#define EPOCH 1u
#define PAYLOAD_MAX 32u
#define TURN_MS 1000u

enum { FRAME_NAME, FRAME_PAYLOAD, FRAME_HEADER };

/** What has come of an event. */
typedef struct {
    int frame; /* the next one */
    char name[BODKIN_NAME_MAX + 1u];
    char payload[PAYLOAD_MAX + 1u];
} coming_t;

static zmtp_link_t links[LINKS];
static zmtp_link_memory_t memories[LINKS];
static coming_t comings[LINKS];
static zmtp_settings_t settings = {.socket_type = ZMTP_ROUTER};

static void say(const char *what, const char *more)
{
    printf("%s %s\n", what, more);
    (void)fflush(stdout);
}

static void keep(char *text, uint32_t max, const zmtp_event_t *event)
{
    uint32_t size = (event->size < max) ? event->size : max;
    memcpy(text, event->octets, size);
    text[size] = 0;
}

static void lead(zmtp_link_t *link, const zmtp_event_t *event)
{
    bodkin_command_t command;
    if ((event->size > 1u) && (event->octets[1] == (uint8_t)BODKIN_KIND_HELLO)) {
        bodkin_begin(&command, BODKIN_KIND_LEADER, EPOCH);
        bodkin_add_octet(&command, 1);
        (void)zmtp_link_send_one(link, command.octets, command.size);
    }
}

/** Version 1, flags 1, publisher 8, incarnation 8, sequence 8, and what does not matter here. */
static void cover(zmtp_link_t *link, const coming_t *coming, const zmtp_event_t *header)
{
    bodkin_reader_t reader = {{header->octets, header->size}, 0};
    bodkin_command_t command;
    (void)bodkin_read_octet(&reader);
    (void)bodkin_read_octet(&reader);
    (void)bodkin_read_number(&reader);
    bodkin_begin(&command, BODKIN_KIND_COVERED, EPOCH);
    bodkin_add_number(&command, bodkin_read_number(&reader));
    bodkin_add_number(&command, bodkin_read_number(&reader));
    bodkin_add_text(&command, coming->name);
    (void)zmtp_link_send_one(link, command.octets, command.size);
    say(coming->name, coming->payload);
}

static void heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    coming_t *coming = &comings[link - links];
    if (what != (int32_t)ZMTP_FRAME) {
        coming->frame = FRAME_NAME;
        if (what < 0) {
            say("ended:", (what == (int32_t)ZMTP_GONE) ? "the connection is gone" : zmtp_reason(what));
        }
    } else if ((coming->frame == FRAME_NAME) && !event->more) {
        lead(link, event);
    } else if (coming->frame == FRAME_NAME) {
        keep(coming->name, BODKIN_NAME_MAX, event);
        coming->frame = FRAME_PAYLOAD;
    } else if (coming->frame == FRAME_PAYLOAD) {
        keep(coming->payload, PAYLOAD_MAX, event);
        coming->frame = FRAME_HEADER;
    } else {
        cover(link, coming, event);
        coming->frame = FRAME_NAME;
    }
}

static int is_admin(void *context, zmtp_slice_t username, zmtp_slice_t password)
{
    (void)context;
    return (username.size == 5u) && (memcmp(username.octets, "admin", 5) == 0) && (password.size == 6u) && (memcmp(password.octets, "secret", 6) == 0);
}

#if ZMTP_WITH_CURVE
static uint8_t keys[3][ZMTP_CURVE_KEY]; /* ours, our secret, the client's */
static zmtp_curve_t curves[LINKS];

static int admit(void *context, const uint8_t *client)
{
    (void)context;
    return memcmp(client, keys[2], ZMTP_CURVE_KEY) == 0;
}

static int use_keys(void)
{
    static const zmtp_curve_keys_t KEYS = {.crypto = &zmtp_sodium, .public_key = keys[0], .secret = keys[1], .admit = admit};
    const char *secret = getenv("BODKIN_SECRET_KEY");
    const char *client = getenv("BODKIN_CLIENT_KEY");
    uint32_t i;
    if ((secret == NULL) || (client == NULL) || !zmtp_z85_key(keys[1], secret) || !zmtp_z85_key(keys[2], client) || (sodium_init() < 0)) {
        return 0;
    }
    zmtp_sodium_public_key(keys[0], keys[1]);
    settings.mechanism = ZMTP_CURVE;
    settings.curve = &KEYS;
    for (i = 0; i < LINKS; i++) {
        memories[i].curve = &curves[i];
    }
    return 1;
}
#else
static int use_keys(void)
{
    return 0;
}
#endif

int main(int count, char **arguments)
{
    static uint8_t in[LINKS][BUFFER];
    static uint8_t out[LINKS][8u * BUFFER];
    static uint8_t input[BUFFER];
    static zmtp_net_t net = {.links = links, .memories = memories, .count = LINKS, .input = input, .input_size = sizeof input, .accepted = {&settings, heard, NULL}};
    const char *mechanism = (count == 2) ? arguments[1] : "";
    char port[8];
    uint32_t i;
    for (i = 0; i < LINKS; i++) {
        memories[i].in = in[i];
        memories[i].in_size = sizeof in[i];
        memories[i].out = out[i];
        memories[i].out_size = sizeof out[i];
    }
    settings.is_server = strcmp(mechanism, "null") != 0;
    settings.mechanism = (uint8_t)(settings.is_server ? ZMTP_PLAIN : ZMTP_NULL);
    settings.authenticate = is_admin;
    if ((strcmp(mechanism, "curve") == 0) ? !use_keys() : (settings.is_server && (strcmp(mechanism, "plain") != 0))) {
        (void)fprintf(stderr, "broker null|plain|curve\nby curve BODKIN_SECRET_KEY and BODKIN_CLIENT_KEY are in the environment\n");
        return 2;
    }
    if (zmtp_net_open(&net) != 0) {
        return 1;
    }
    (void)snprintf(port, sizeof port, "%d", (int)zmtp_net_listen(&net, "127.0.0.1", 0));
    say("port", port);
    while (zmtp_net_turn(&net, TURN_MS) == 0) {
        /* All that happens is heard. */
    }
    return 1;
}
