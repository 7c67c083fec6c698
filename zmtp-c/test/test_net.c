/* What the ports share, over a port in memory whose clock the test sets: who is late, and who is silent. */

#include "../port/port.h"
#include "check.h"
#include "party.h"

int checks_failed = 0;
const char *check_about = "";

#define SILENCE_MS 100u
#define PING_SIZE 9u

static uint32_t now_ms;
static uint8_t incoming[128];
static uint32_t incoming_size;
static uint8_t outgoing[512];
static uint32_t outgoing_size;
static int takes_nothing; /* the peer */
static uint32_t writes;
static uint32_t largest_write;

uint32_t zmtp_net_now_ms(void)
{
    return now_ms;
}

int32_t zmtp_port_send(zmtp_link_t *link, const uint8_t *octets, uint32_t size)
{
    (void)link;
    if (takes_nothing) {
        return 0;
    }
    memcpy(&outgoing[outgoing_size], octets, size);
    outgoing_size += size;
    writes++;
    largest_write = (size > largest_write) ? size : largest_write;
    return (int32_t)size;
}

int32_t zmtp_port_read(zmtp_link_t *link, uint8_t *octets, uint32_t size)
{
    uint32_t count = (incoming_size < size) ? incoming_size : size;
    (void)link;
    memcpy(octets, incoming, count);
    incoming_size -= count;
    return (int32_t)count;
}

void zmtp_port_close(zmtp_link_t *link)
{
    (void)link;
}

static zmtp_link_t links[1];
static uint8_t in[64];
static uint8_t out[256];
static uint8_t input[256];
static const zmtp_link_memory_t MEMORY[1] = {{in, sizeof in, out, sizeof out}};
static const zmtp_settings_t SETTINGS = {.socket_type = ZMTP_ROUTER};
static zmtp_net_t net;
static int32_t ended;
static uint32_t waits_ms;

static void heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    (void)link;
    (void)event;
    ended = (what < 0) ? what : ended;
}

/** So much later a turn. */
static void turn(uint32_t later_ms)
{
    now_ms += later_ms;
    waits_ms = zmtp_net_watch(&net, 1000);
    if (links[0].state == (uint8_t)ZMTP_LINK_OPEN) {
        (void)zmtp_net_serve(&net, &links[0]);
    }
}

static void begin(uint32_t silence_ms)
{
    memset(links, 0, sizeof links);
    net = (zmtp_net_t){.links = links, .memories = MEMORY, .count = 1, .input = input, .input_size = sizeof input, .accepted = {&SETTINGS, heard, NULL}};
    net.silence_ms = silence_ms;
    now_ms = 0xffffff80u; /* the clock wraps around in the tests */
    incoming_size = 0;
    outgoing_size = 0;
    takes_nothing = 0;
    ended = 0;
    CHECK(zmtp_net_begin(&net, &net.accepted, ZMTP_LINK_OPEN) == &links[0]);
}

static void begin_ready(uint32_t silence_ms)
{
    begin(silence_ms);
    incoming_size = party_peer(ZMTP_DEALER, 1, incoming);
    turn(0);
    CHECK(zmtp_is_ready(&links[0].zmtp));
    outgoing_size = 0;
    writes = 0;
    largest_write = 0;
}

static void answer(void)
{
    memcpy(incoming, "\4\5\4PONG", 7);
    incoming_size = 7;
}

static int is_asked(void)
{
    int is_it = (outgoing_size == PING_SIZE) && (memcmp(outgoing, "\4\7\4PING\0\0", PING_SIZE) == 0);
    outgoing_size = 0;
    return is_it;
}

static void a_handshake_ends_in_time_or_the_link_is_gone(void)
{
    begin(0);
    turn(ZMTP_NET_HANDSHAKE_MS - 1u);
    CHECK((ended == 0) && (waits_ms <= ZMTP_NET_SPEAK_MS));
    turn(1);
    CHECK((ended == (int32_t)ZMTP_GONE) && (links[0].state == (uint8_t)ZMTP_LINK_FREE));
}

static void a_silent_peer_is_asked_once_and_then_given_up(void)
{
    begin_ready(SILENCE_MS);
    turn(SILENCE_MS - 1u);
    CHECK((outgoing_size == 0u) && (waits_ms == SILENCE_MS));
    turn(1);
    CHECK(is_asked());
    turn(SILENCE_MS - 1u);
    CHECK((outgoing_size == 0u) && (ended == 0));
    turn(1);
    CHECK((ended == (int32_t)ZMTP_GONE) && (links[0].state == (uint8_t)ZMTP_LINK_FREE));
}

static void who_answers_stays(void)
{
    int round;
    begin_ready(SILENCE_MS);
    for (round = 0; round < 5; round++) {
        turn(SILENCE_MS);
        CHECK(is_asked());
        answer();
        turn(SILENCE_MS - 1u);
        CHECK((ended == 0) && (outgoing_size == 0u));
    }
}

static void what_has_come_while_nobody_turned_is_read_in_front_of_the_verdict(void)
{
    begin_ready(SILENCE_MS);
    turn(SILENCE_MS);
    CHECK(is_asked());
    answer();
    turn(100u * SILENCE_MS);
    CHECK(ended == 0);
}

static void nobody_is_asked_without_a_silence_or_while_the_link_is_held(void)
{
    begin_ready(0);
    turn(100u * SILENCE_MS);
    turn(100u * SILENCE_MS);
    CHECK((ended == 0) && (outgoing_size == 0u) && (waits_ms == 1000u));
    begin_ready(SILENCE_MS);
    links[0].holds = 1;
    turn(100u * SILENCE_MS);
    turn(100u * SILENCE_MS);
    CHECK((ended == 0) && (outgoing_size == 0u));
}

static void who_is_slow_to_take_is_not_silent(void)
{
    static const uint8_t BODY[200] = {0};
    int round;
    begin_ready(SILENCE_MS);
    takes_nothing = 1;
    CHECK(zmtp_link_send_one(&links[0], BODY, sizeof BODY) == 0);
    CHECK(zmtp_link_send_one(&links[0], BODY, 49) == 0);
    for (round = 0; round < 5; round++) {
        turn(SILENCE_MS);
        CHECK(ended == 0);
    }
}

/** Ten messages of eight octets are a hundred on the wire: one write, or as many as ZMTP_NET_WRITE_MAX makes of them, each but the last one full. */
static void what_waits_shares_writes_up_to_the_cap(void)
{
    static const uint8_t BODY[8] = {0};
    uint32_t cap = (ZMTP_NET_WRITE_MAX > 0u) ? ZMTP_NET_WRITE_MAX : 100u;
    int i;
    begin_ready(0);
    for (i = 0; i < 10; i++) {
        CHECK(zmtp_link_send_one(&links[0], BODY, sizeof BODY) == 0);
    }
    CHECK(writes == 0u);
    turn(0);
    CHECK((outgoing_size == 100u) && (writes == ((100u + cap - 1u) / cap)) && (largest_write == cap));
    for (i = 0; i < 10; i++) {
        CHECK(memcmp(&outgoing[10 * i], "\0\10\0\0\0\0\0\0\0\0", 10) == 0);
    }
}

int main(void)
{
    TEST(a_handshake_ends_in_time_or_the_link_is_gone);
    TEST(a_silent_peer_is_asked_once_and_then_given_up);
    TEST(who_answers_stays);
    TEST(what_has_come_while_nobody_turned_is_read_in_front_of_the_verdict);
    TEST(nobody_is_asked_without_a_silence_or_while_the_link_is_held);
    TEST(who_is_slow_to_take_is_not_silent);
    TEST(what_waits_shares_writes_up_to_the_cap);
    return checks_failed != 0;
}
