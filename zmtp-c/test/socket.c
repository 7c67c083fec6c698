/*
 * A socket of the library on standard input and output, for tests with peers in other languages:
 *
 *     socket TYPE null|plain|curve connect|listen ADDRESS PORT
 *
 * TYPE is a number of zmtp_type_t. Who listens takes one connection in at a time, says `port N`, and decides who comes in: by PLAIN "admin" with the password "secret", which is what a client says, by CURVE
 * (built with -DZMTP_WITH_CURVE=1 -DZMTP_WITH_CURVE_SERVER=1 -Iadapter -lsodium) whose public key is BODKIN_CLIENT_KEY. BODKIN_SECRET_KEY is its own secret key, BODKIN_SERVER_KEY a client's server.
 *
 * It does what lines of its input say, `send FRAME...`, `subscribe PREFIX` and `cancel PREFIX`, as soon as it may, and says what it hears: `ready`, `heard FRAME...`, `subscribed PREFIX`,
 * `cancelled PREFIX` and `ended REASON`. Frames and prefixes are in hexadecimal digits, `-` an empty one. It ends with its input.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "zmtp_net.h"
#if ZMTP_WITH_CURVE
#include "zmtp_sodium.h"
#include "zmtp_z85.h"
#endif

#define FRAMES_MAX 8u
#define FRAME_MAX 65536u
#define MESSAGE_MAX (2u * FRAME_MAX)
#define TURN_MS 2u

static zmtp_link_t links[1];
static uint8_t in[FRAME_MAX];
static uint8_t out[MESSAGE_MAX + 1024u];
static zmtp_link_memory_t memories[1] = {{.in = in, .in_size = sizeof in, .out = out, .out_size = sizeof out}};
static zmtp_settings_t settings;
static int is_within; /* a message's frames were heard before */

static void say_octets(const uint8_t *octets, uint32_t size)
{
    uint32_t i;
    (void)printf((size == 0u) ? " -" : " ");
    for (i = 0; i < size; i++) {
        (void)printf("%02x", octets[i]);
    }
}

static void heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    (void)link;
    if (what == (int32_t)ZMTP_FRAME) {
        (void)printf(is_within ? "" : "heard");
        say_octets(event->octets, event->size);
        is_within = event->more;
        (void)printf(is_within ? "" : "\n");
    } else if (what == (int32_t)ZMTP_READY) {
        (void)printf("ready\n");
    } else if ((what == (int32_t)ZMTP_SUBSCRIBE) || (what == (int32_t)ZMTP_CANCEL)) {
        (void)printf((what == (int32_t)ZMTP_SUBSCRIBE) ? "subscribed" : "cancelled");
        say_octets(event->octets, event->size);
        (void)printf("\n");
    } else if (what < 0) {
        (void)printf("ended %s\n", (what == (int32_t)ZMTP_GONE) ? "the connection is gone" : zmtp_reason(what));
        is_within = 0;
    } else {
        /* Signs of life are the library's. */
    }
    (void)fflush(stdout);
}

static int digit_of(char digit)
{
    static const char DIGITS[] = "0123456789abcdef";
    const char *place = strchr(DIGITS, digit);
    return ((digit == '\0') || (place == NULL)) ? 0 : (int)(place - DIGITS);
}

/** Reads words of hexadecimal digits: how many, at most FRAMES_MAX. */
static uint32_t read_frames(const char *text, zmtp_slice_t *frames)
{
    static uint8_t octets[MESSAGE_MAX];
    uint32_t used = 0;
    uint32_t count = 0;
    while ((*text == ' ') && (count < FRAMES_MAX)) {
        text++;
        frames[count].octets = &octets[used];
        frames[count].size = 0;
        text += *text == '-';
        while ((text[0] != ' ') && (text[0] != '\0') && (text[1] != '\0') && (used < MESSAGE_MAX)) {
            octets[used++] = (uint8_t)((16 * digit_of(text[0])) + digit_of(text[1]));
            frames[count].size++;
            text += 2;
        }
        count++;
    }
    return count;
}

/** Does what a line says: zero, if it cannot be done yet. */
static int obey(const char *line)
{
    zmtp_slice_t frames[FRAMES_MAX];
    uint32_t count = read_frames(strchr(line, ' ') == NULL ? "" : strchr(line, ' '), frames);
    int32_t fault = ZMTP_ARGUMENT;
    if ((strncmp(line, "send ", 5) == 0) && (count > 0u)) {
        fault = zmtp_link_send(&links[0], frames, count);
    } else if (count == 1u) {
        fault = zmtp_link_subscribe(&links[0], strncmp(line, "subscribe ", 10) == 0, frames[0].octets, frames[0].size);
    } else {
        /* There is nothing else to do. */
    }
    if ((fault == (int32_t)ZMTP_ARGUMENT) || (fault == (int32_t)ZMTP_TOO_LONG)) {
        (void)fprintf(stderr, "this cannot be done: %.40s\n", line);
        exit(2);
    }
    return fault == 0;
}

/** Reads what has come and obeys whole lines: zero at the end of the input. */
static int turn_input(void)
{
    static char lines[4u * MESSAGE_MAX];
    static size_t size;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char *end;
    int goes_on = 1;
    if ((size < sizeof lines) && (poll(&input, 1, 0) > 0)) {
        ssize_t count = read(STDIN_FILENO, &lines[size], sizeof lines - size);
        goes_on = count > 0;
        size += goes_on ? (size_t)count : 0u;
    }
    end = memchr(lines, '\n', size);
    while (end != NULL) {
        size_t length = (size_t)(end - lines) + 1u;
        *end = '\0';
        if (!obey(lines)) {
            *end = '\n';
            break;
        }
        size -= length;
        memmove(lines, &lines[length], size);
        end = memchr(lines, '\n', size);
    }
    return goes_on;
}

static int is_admin(void *context, zmtp_slice_t username, zmtp_slice_t password)
{
    (void)context;
    return (username.size == 5u) && (memcmp(username.octets, "admin", 5) == 0) && (password.size == 6u) && (memcmp(password.octets, "secret", 6) == 0);
}

#if ZMTP_WITH_CURVE
static uint8_t keys[4][ZMTP_CURVE_KEY]; /* ours, our secret, the server's, the client's */

static int admit(void *context, const uint8_t *client)
{
    (void)context;
    return memcmp(client, keys[3], ZMTP_CURVE_KEY) == 0;
}

/** Takes a key from the environment: zero, if it is there and is none. */
static int use_key(uint8_t *key, const char *name)
{
    const char *text = getenv(name);
    return (text == NULL) || zmtp_z85_key(key, text);
}

static int use_keys(void)
{
    static zmtp_curve_t curve;
    static const zmtp_curve_keys_t KEYS = {.crypto = &zmtp_sodium, .public_key = keys[0], .secret = keys[1], .server = keys[2], .admit = admit};
    if ((sodium_init() < 0) || !use_key(keys[1], "BODKIN_SECRET_KEY") || !use_key(keys[2], "BODKIN_SERVER_KEY") || !use_key(keys[3], "BODKIN_CLIENT_KEY")) {
        return 0;
    }
    zmtp_sodium_public_key(keys[0], keys[1]);
    settings.curve = &KEYS;
    memories[0].curve = &curve;
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
    static const char *const MECHANISMS[] = {"null", "plain", "curve"};
    static uint8_t input[FRAME_MAX];
    static zmtp_net_t net = {.links = links, .memories = memories, .count = 1, .input = input, .input_size = sizeof input, .accepted = {&settings, heard, NULL}};
    uint8_t mechanism = 0;
    int listens;
    while ((count == 6) && (mechanism < 3u) && (strcmp(arguments[2], MECHANISMS[mechanism]) != 0)) {
        mechanism++;
    }
    if ((count != 6) || (mechanism == 3u) || ((mechanism == (uint8_t)ZMTP_CURVE) && !use_keys())) {
        (void)fprintf(stderr, "socket TYPE null|plain|curve connect|listen ADDRESS PORT; by curve keys are in the environment\n");
        return 2;
    }
    listens = strcmp(arguments[3], "listen") == 0;
    settings.socket_type = (uint8_t)atoi(arguments[1]);
    settings.mechanism = mechanism;
    settings.is_server = (uint8_t)(listens && (mechanism != (uint8_t)ZMTP_NULL));
    settings.username = (zmtp_slice_t){(const uint8_t *)"admin", 5};
    settings.password = (zmtp_slice_t){(const uint8_t *)"secret", 6};
    settings.authenticate = is_admin;
    if (zmtp_net_open(&net) != 0) {
        return 1;
    }
    if (listens) {
        (void)printf("port %d\n", (int)zmtp_net_listen(&net, arguments[4], (uint16_t)atoi(arguments[5])));
        (void)fflush(stdout);
    } else if (zmtp_net_connect(&net, arguments[4], (uint16_t)atoi(arguments[5]), &net.accepted) == NULL) {
        return 1;
    } else {
        /* Whether anybody is there is heard. */
    }
    while (turn_input() && (zmtp_net_turn(&net, TURN_MS) == 0)) {
        /* All that happens is heard. */
    }
    zmtp_net_close(&net, &links[0]);
    return 0;
}
