/**
 * A display that hears an event type of a reliable pair of Bodkin over POSIX, whatever becomes of the Primary:
 *
 *     bodkin_subscriber SYSTEM TOPIC EVENTS ADDRESS PORT [ADDRESS PORT]
 *
 * It is required: what it has not acknowledged the brokers keep for it. Says on standard output what it hears (number, payload, and the trace if it is of one) and is told, a line each, and ends when it has heard so many events.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bodkin_sessions.h"
#include "bodkin_subscriber.h"

#define PAYLOAD_MAX 64u
#define PUBLISHERS 3u

/** How long the brokers wait for a display that is away. */
#define WAITED_FOR_MS 60000u

static zmtp_link_t links[BODKIN_SESSIONS];
static uint8_t in[BODKIN_SESSIONS][256];
static uint8_t out[BODKIN_SESSIONS][1024];
static uint8_t input[4096];
static const zmtp_link_memory_t MEMORIES[BODKIN_SESSIONS] = {{.in = in[0], .in_size = sizeof in[0], .out = out[0], .out_size = sizeof out[0]},
                                                             {.in = in[1], .in_size = sizeof in[1], .out = out[1], .out_size = sizeof out[1]}};
static bodkin_stream_t streams[2u * PUBLISHERS];
static bodkin_subscription_t subscription = {.streams = streams, .streams_count = 2u * PUBLISHERS, .waited_for_ms = WAITED_FOR_MS};
static uint8_t payloads[BODKIN_SESSIONS * PAYLOAD_MAX];
static unsigned long left;

static uint64_t utc_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec * 1000000000u) + (uint64_t)now.tv_nsec;
}

static void heard(bodkin_subscriber_t *subscriber, const bodkin_event_t *event)
{
    (void)subscriber;
    printf("heard %lu %.*s%s%.*s\n", (unsigned long)event->sequence, (int)event->payload.size, (const char *)event->payload.octets, (event->trace.size > 0u) ? " " : "",
           (int)event->trace.size, (const char *)event->trace.octets);
    (void)fflush(stdout);
    left -= (unsigned long)(left > 0u);
}

static void told(bodkin_subscriber_t *subscriber, bodkin_hears_told_t what, const bodkin_subscription_t *of, uint64_t from, uint64_t count)
{
    static const char *const WORDS[] = {"subscribed", "not subscribed", "missed", "too many streams"};
    (void)subscriber;
    (void)of;
    printf("%s %lu %lu\n", WORDS[what], (unsigned long)from, (unsigned long)count);
    (void)fflush(stdout);
}

int main(int count, char **arguments)
{
    static zmtp_net_t net = {.links = links, .memories = MEMORIES, .count = BODKIN_SESSIONS, .input = input, .input_size = sizeof input};
    static bodkin_subscriber_t subscriber = {.subscriptions = &subscription, .subscriptions_count = 1, .payloads = payloads, .payload_max = PAYLOAD_MAX, .heard = heard, .told = told};
    static bodkin_node_t node = {.utc_ns = utc_ns, .subscriber = &subscriber};
    static bodkin_sessions_t sessions = {.node = &node, .net = &net, .wants_metadata = 1};
    int i;
    if ((count != 6) && (count != 8)) {
        (void)fprintf(stderr, "bodkin_subscriber SYSTEM TOPIC EVENTS ADDRESS PORT [ADDRESS PORT]\n");
        return 2;
    }
    node.name = arguments[1];
    node.incarnation = utc_ns();
    subscription.name = arguments[2];
    left = strtoul(arguments[3], NULL, 10);
    for (i = 4; i < count; i += 2) {
        sessions.brokers[(i - 4) / 2].address = arguments[i];
        sessions.brokers[(i - 4) / 2].port = (uint16_t)atoi(arguments[i + 1]);
    }
    if ((zmtp_net_open(&net) != 0) || (bodkin_open(&node) != 0) || (bodkin_sessions_open(&sessions) != 0)) {
        return 2;
    }
    while (left > 0u) {
        (void)bodkin_sessions_turn(&sessions, 100);
    }
    (void)bodkin_sessions_turn(&sessions, 10); /* the last one is acknowledged */
    return 0;
}
