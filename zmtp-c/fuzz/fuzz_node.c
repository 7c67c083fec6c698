/**
 * A target for libFuzzer and for fuzz/replay.c: whatever two brokers tell a node that publishes and hears, what it keeps stays within what was published, an event that is covered or
 * refused is told so once, and what is new of a stream is heard in order and once.
 *
 * The input is operations of an octet each: its two lowest bits say which, the next one of which session it is.
 *     0  the application publishes            1  a turn, later by the octet's upper half in tens of milliseconds
 *     2  a frame comes: an octet has its size in seven bits, and whether more follow in the highest; then the frame
 *     3  the session ends, and another one begins
 */
#include <stdlib.h>
#include <string.h>

#include "../test/party.h"
#include "bodkin_subscriber.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t size);

#define CAPACITY 8u
#define PAYLOAD_MAX 8u
#define STREAMS 3u

static zmtp_link_t links[BODKIN_SESSIONS];
static uint8_t in[BODKIN_SESSIONS][BODKIN_COMMAND_MAX];
static uint8_t out[BODKIN_SESSIONS][512];
static bodkin_node_t node;
static bodkin_topic_t topic;
static bodkin_kept_t kept[CAPACITY];
static uint8_t payloads[CAPACITY * PAYLOAD_MAX];
static bodkin_subscriber_t subscriber;
static bodkin_stream_t streams[STREAMS];
static const bodkin_subscription_t SUBSCRIPTION = {.name = "COLD", .streams = streams, .streams_count = STREAMS, .waited_for_ms = 1};
static uint8_t heard_payloads[BODKIN_SESSIONS * PAYLOAD_MAX];
static bodkin_stream_t before[STREAMS]; /* as they were at the last event in order */
static uint32_t now_ms;
static uint64_t covered;
static int32_t heard_fault;

static void demand(int condition)
{
    if (!condition) {
        abort();
    }
}

static uint64_t utc_ns(void)
{
    return 1700000000000000000u + now_ms;
}

static void told(bodkin_node_t *of, bodkin_told_t what, const bodkin_topic_t *about, uint64_t number, uint8_t reason)
{
    (void)of;
    (void)reason;
    demand(((what > BODKIN_LEADERLESS) && (what < BODKIN_GUARANTEE)) == (about != NULL));
    if (what == BODKIN_COVERED) {
        demand((number > covered) && (number <= topic.newest));
        covered = number;
    }
    demand((what != BODKIN_NOT_TAKEN) || ((number >= topic.oldest) && (number <= topic.newest)));
    demand((what != BODKIN_DROPPED) || (number > covered));
}

/** Its stream is the one that has come as far as this event, or further if it is late: or as far, where its publisher had said that it was the last one. */
static void hear(bodkin_subscriber_t *of, const bodkin_event_t *event)
{
    uint32_t i = 0;
    (void)of;
    demand((event->sequence > 0u) && (event->payload.size <= PAYLOAD_MAX) && (event->payload.size <= event->size));
    while ((i < STREAMS) && (!streams[i].is_used || (streams[i].publisher != event->publisher) || (streams[i].incarnation != event->incarnation))) {
        i++;
    }
    demand((i < STREAMS) && (event->is_late ? (event->sequence <= streams[i].newest) : (event->sequence == streams[i].newest)));
    if (!event->is_late) {
        demand((before[i].publisher != event->publisher) || (before[i].incarnation != event->incarnation) || (event->sequence > before[i].newest));
        before[i] = streams[i];
    }
}

static void heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    int32_t fault = bodkin_heard(&node, (uint32_t)(link - links), link, what, event, now_ms);
    heard_fault = (fault < 0) ? fault : heard_fault;
}

static void begin_session(uint32_t session)
{
    static const zmtp_settings_t SETTINGS = {.socket_type = ZMTP_DEALER};
    zmtp_link_memory_t memory = {in[session], sizeof in[session], out[session], sizeof out[session]};
    uint8_t peer[128];
    uint32_t size = party_peer(ZMTP_ROUTER, 1, peer);
    demand(zmtp_link_open(&links[session], &SETTINGS, &memory, heard, NULL) == 0);
    demand(zmtp_link_received(&links[session], peer, size) == 0);
}

static void end_session(uint32_t session)
{
    static const zmtp_event_t NOTHING = {0};
    (void)bodkin_heard(&node, session, &links[session], ZMTP_GONE, &NOTHING, now_ms);
    begin_session(session);
}

static void receive(uint32_t session, input_t *input)
{
    uint8_t head[2];
    uint8_t octet = input_octet(input);
    zmtp_slice_t body = input_take(input, octet & 0x7fu);
    head[0] = octet >> 7;
    head[1] = (uint8_t)body.size;
    heard_fault = 0;
    if ((zmtp_link_received(&links[session], head, sizeof head) < 0) || (zmtp_link_received(&links[session], body.octets, body.size) < 0) || (heard_fault < 0)) {
        end_session(session);
    }
}

static void begin(void)
{
    uint32_t session;
    memset(&node, 0, sizeof node);
    memset(&topic, 0, sizeof topic);
    topic.name = "HOT";
    topic.kept = kept;
    topic.payloads = payloads;
    topic.capacity = CAPACITY;
    topic.payload_max = PAYLOAD_MAX;
    topic.retention = CAPACITY / 2u;
    node.name = "press-4";
    node.incarnation = 7;
    node.topics = &topic;
    node.topics_count = 1;
    node.utc_ns = utc_ns;
    node.told = told;
    node.watches_guarantee = 1;
    memset(&subscriber, 0, sizeof subscriber);
    memset(streams, 0, sizeof streams);
    memset(before, 0, sizeof before);
    subscriber.subscriptions = &SUBSCRIPTION;
    subscriber.subscriptions_count = 1;
    subscriber.payloads = heard_payloads;
    subscriber.payload_max = PAYLOAD_MAX;
    subscriber.heard = hear;
    node.subscriber = &subscriber;
    now_ms = 0;
    covered = 0;
    demand(bodkin_open(&node) == 0);
    for (session = 0; session < BODKIN_SESSIONS; session++) {
        begin_session(session);
    }
}

static void turn(uint8_t operation)
{
    uint32_t session;
    now_ms += 10u * (operation >> 4);
    bodkin_turn(&node, now_ms);
    for (session = 0; session < BODKIN_SESSIONS; session++) {
        zmtp_link_sent(&links[session], zmtp_link_waiting(&links[session]).size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t size)
{
    input_t input = {octets, size};
    begin();
    while (input.left > 0u) {
        uint8_t operation = input_octet(&input);
        uint32_t session = (operation >> 2) & 1u;
        topic.drops_oldest = (uint8_t)((operation >> 3) & 1u);
        switch (operation & 3u) {
        case 0:
            (void)bodkin_publish(&node, &topic, "12345678", operation >> 5);
            break;
        case 1:
            turn(operation);
            break;
        case 2:
            receive(session, &input);
            break;
        default:
            end_session(session);
            break;
        }
        demand((topic.covered <= topic.newest) && (topic.next <= (topic.newest + 1u)) && (topic.oldest <= (topic.newest + 1u)));
        demand((topic.next >= topic.oldest) && (((topic.newest + 1u) - topic.oldest) <= CAPACITY));
    }
    return 0;
}
