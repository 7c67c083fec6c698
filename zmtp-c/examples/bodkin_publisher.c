/**
 * A sensor that publishes to a reliable pair of Bodkin over POSIX, and loses nothing when the Primary dies:
 *
 *     bodkin_publisher SYSTEM TOPIC PERIOD_MS RETENTION EVENTS ADDRESS:PORT [ADDRESS:PORT]
 *
 * PERIOD_MS and RETENTION are those of the topic at Bodkin: T and N. Event n is the text n. Says on standard output what it is told, a line each, and ends with status 0 when all events are covered.
 *
 * If TRACEPARENT is in the environment, every event is of that trace.
 *
 * Built with CURVE and libsodium (-DZMTP_WITH_CURVE=1 -Iadapter -lsodium) it speaks to a Bodkin in secure mode if BODKIN_SERVER_KEY and BODKIN_SECRET_KEY are in the
 * environment: the ZMTP port's public key, and the system's own secret one, as `bodkin cert curve` tells them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bodkin_sessions.h"
#if ZMTP_WITH_CURVE
#include "zmtp_sodium.h"
#include "zmtp_z85.h"
#endif

#define CAPACITY 512u
#define PAYLOAD_MAX 16u
#define ADDRESS_MAX 48u

/** How long all events may take to be covered once the last one is published. */
#define PATIENCE_MS 20000u

static zmtp_link_t links[BODKIN_SESSIONS];
static uint8_t out[BODKIN_SESSIONS][1024];
static uint8_t input[1024];
#if ZMTP_WITH_CURVE
static uint8_t in[BODKIN_SESSIONS][BODKIN_CURVE_COMMAND_MAX];
static zmtp_curve_t curves[BODKIN_SESSIONS];
static const zmtp_link_memory_t MEMORIES[BODKIN_SESSIONS] = {{in[0], sizeof in[0], out[0], sizeof out[0], &curves[0]},
                                                             {in[1], sizeof in[1], out[1], sizeof out[1], &curves[1]}};
static uint8_t keys[3][ZMTP_CURVE_KEY]; /* ours, our secret, the brokers' */
static const zmtp_curve_keys_t KEYS = {.crypto = &zmtp_sodium, .public_key = keys[0], .secret = keys[1], .server = keys[2]};
#else
static uint8_t in[BODKIN_SESSIONS][256];
static const zmtp_link_memory_t MEMORIES[BODKIN_SESSIONS] = {{in[0], sizeof in[0], out[0], sizeof out[0]},
                                                             {in[1], sizeof in[1], out[1], sizeof out[1]}};
#endif
static bodkin_kept_t kept[CAPACITY];
static uint8_t payloads[CAPACITY * PAYLOAD_MAX];
static char traces[CAPACITY * BODKIN_TRACE_SIZE];
static bodkin_topic_t topic = {.kept = kept, .payloads = payloads, .capacity = CAPACITY, .payload_max = PAYLOAD_MAX, .traces = traces};

static uint64_t utc_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec * 1000000000u) + (uint64_t)now.tv_nsec;
}

static void told(bodkin_node_t *node, bodkin_told_t what, const bodkin_topic_t *of, uint64_t number, uint8_t reason)
{
    static const char *const WORDS[] = {"leads", "leaderless", "covered", "dropped", "not taken", "excess", "lost", "guarantee"};
    (void)node;
    (void)of;
    printf("%s %lu %u\n", WORDS[what], (unsigned long)number, reason);
    (void)fflush(stdout);
}

static void ended(bodkin_sessions_t *sessions, uint32_t broker, int32_t why)
{
    (void)sessions;
    printf("ended %u %s\n", (unsigned)broker, (why == ZMTP_GONE) ? "the connection is gone" : zmtp_reason(why));
    (void)fflush(stdout);
}

/** Splits ADDRESS:PORT. */
static int read_address(const char *text, bodkin_session_t *broker, char *address)
{
    const char *colon = strrchr(text, ':');
    if ((colon == NULL) || ((size_t)(colon - text) >= ADDRESS_MAX)) {
        return 0;
    }
    memcpy(address, text, (size_t)(colon - text));
    broker->address = address;
    broker->port = (uint16_t)atoi(colon + 1);
    return 1;
}

/** Takes keys from the environment, if there are any: zero, if what is there is none. */
static int use_keys(bodkin_sessions_t *sessions)
{
#if ZMTP_WITH_CURVE
    const char *server = getenv("BODKIN_SERVER_KEY");
    const char *secret = getenv("BODKIN_SECRET_KEY");
    if ((server == NULL) && (secret == NULL)) {
        return 1;
    }
    if ((server == NULL) || (secret == NULL) || !zmtp_z85_key(keys[2], server) || !zmtp_z85_key(keys[1], secret) || (sodium_init() < 0)) {
        return 0;
    }
    zmtp_sodium_public_key(keys[0], keys[1]);
    sessions->curve = &KEYS;
#else
    (void)sessions;
#endif
    return 1;
}

int main(int count, char **arguments)
{
    static char addresses[BODKIN_SESSIONS][ADDRESS_MAX];
    static zmtp_net_t net = {.links = links, .memories = MEMORIES, .count = BODKIN_SESSIONS, .input = input, .input_size = sizeof input};
    static bodkin_node_t node = {.topics = &topic, .topics_count = 1, .utc_ns = utc_ns, .told = told, .watches_guarantee = 1};
    static bodkin_sessions_t sessions = {.node = &node, .net = &net, .ended = ended};
    unsigned long period_ms;
    unsigned long events;
    unsigned long number;
    const char *trace = getenv("TRACEPARENT");
    uint32_t began_ms;
    int i;
    if ((count < 7) || (count > 8)) {
        (void)fprintf(stderr, "bodkin_publisher SYSTEM TOPIC PERIOD_MS RETENTION EVENTS ADDRESS:PORT [ADDRESS:PORT]\n");
        return 2;
    }
    node.name = arguments[1];
    node.incarnation = utc_ns();
    topic.name = arguments[2];
    period_ms = strtoul(arguments[3], NULL, 10);
    topic.retention = (uint32_t)strtoul(arguments[4], NULL, 10);
    events = strtoul(arguments[5], NULL, 10);
    for (i = 6; i < count; i++) {
        if (!read_address(arguments[i], &sessions.brokers[i - 6], addresses[i - 6])) {
            (void)fprintf(stderr, "%s is no ADDRESS:PORT\n", arguments[i]);
            return 2;
        }
    }
    if ((trace != NULL) && (strlen(trace) != BODKIN_TRACE_SIZE)) {
        (void)fprintf(stderr, "TRACEPARENT is %u characters\n", BODKIN_TRACE_SIZE);
        return 2;
    }
    if (!use_keys(&sessions)) {
        (void)fprintf(stderr, "BODKIN_SERVER_KEY and BODKIN_SECRET_KEY are 40 characters each\n");
        return 2;
    }
    if ((zmtp_net_open(&net) != 0) || (bodkin_open(&node) != 0) || (bodkin_sessions_open(&sessions) != 0)) {
        return 2;
    }
    for (number = 1; number <= events; number++) {
        char payload[PAYLOAD_MAX];
        int size = snprintf(payload, sizeof payload, "%lu", number);
        int32_t result = bodkin_publish_traced(&node, &topic, payload, (uint32_t)size, trace);
        while (result == (int32_t)ZMTP_ROOM) {
            (void)bodkin_sessions_turn(&sessions, 1);
            result = bodkin_publish_traced(&node, &topic, payload, (uint32_t)size, trace);
        }
        if (result != 0) {
            (void)fprintf(stderr, "event %lu is not taken: %ld\n", number, (long)result);
            return 2;
        }
        (void)bodkin_sessions_turn(&sessions, (uint32_t)period_ms);
    }
    began_ms = zmtp_net_now_ms();
    while ((topic.covered < topic.newest) && ((zmtp_net_now_ms() - began_ms) < PATIENCE_MS)) {
        (void)bodkin_sessions_turn(&sessions, 10);
    }
    return (topic.covered < topic.newest) ? 1 : 0;
}
