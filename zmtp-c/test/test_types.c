/* Both ends of a connection are ours: which types may be connected, who may send when, what links and subscriptions do. */

#include <stdlib.h>

#include "../src/internal.h"
#include "check.h"
#include "party.h"
#include "zmtp_link.h"
#include "zmtp_subscriptions.h"

int checks_failed = 0;
const char *check_about = "";

static party_t a;
static party_t b;

/** Carries what either end has written to the other, until neither has anything. */
static void exchange(void)
{
    int goes_on = 1;
    while (goes_on) {
        uint32_t from_a;
        uint32_t from_b;
        party_poll(&a);
        party_poll(&b);
        from_a = a.out_size;
        from_b = b.out_size;
        a.out_size = 0;
        b.out_size = 0;
        goes_on = (from_a > 0u) || (from_b > 0u);
        party_receive(&b, a.out, from_a, from_a);
        party_receive(&a, b.out, from_b, from_b);
    }
}

static void connect_types(uint8_t ours, uint8_t theirs)
{
    zmtp_settings_t settings;
    memset(&settings, 0, sizeof settings);
    settings.socket_type = ours;
    party_open(&a, &settings, 64);
    settings.socket_type = theirs;
    party_open(&b, &settings, 64);
    exchange();
}

static void types_are_connected_as_in_rfc_37(void)
{
    uint8_t ours;
    uint8_t theirs;
    int connected = 0;
    for (ours = 0; ours <= (uint8_t)ZMTP_PAIR; ours++) {
        for (theirs = 0; theirs <= (uint8_t)ZMTP_PAIR; theirs++) {
            connect_types(ours, theirs);
            CHECK(zmtp_is_ready(&a.zmtp) == zmtp_is_ready(&b.zmtp));
            CHECK(zmtp_types_fit(ours, theirs) == zmtp_types_fit(theirs, ours));
            connected += zmtp_is_ready(&a.zmtp);
        }
    }
    CHECK(connected == 15);
}

static void a_handshake_is_one_write_each_way(void)
{
    static const zmtp_settings_t DEALER = {.socket_type = ZMTP_DEALER};
    static const zmtp_settings_t ROUTER = {.socket_type = ZMTP_ROUTER, .waits = 1};
    party_open(&a, &DEALER, 64);
    party_open(&b, &ROUTER, 64);
    party_poll(&b);
    CHECK(b.out_size == 0u);
    party_poll(&a);
    party_receive(&b, a.out, a.out_size, a.out_size);
    CHECK(zmtp_is_ready(&b.zmtp));
    party_poll(&b);
    CHECK(b.out_size == 94u);
    party_receive(&a, b.out, b.out_size, b.out_size);
    CHECK(zmtp_is_ready(&a.zmtp));
}

static void who_waits_speaks_when_a_signature_is_in_or_it_is_told_to(void)
{
    static const zmtp_settings_t ROUTER = {.socket_type = ZMTP_ROUTER, .waits = 1};
    static const uint8_t SIGNATURE[10] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f};
    party_open(&b, &ROUTER, 64);
    party_receive(&b, SIGNATURE, 9, 9);
    party_poll(&b);
    CHECK(b.out_size == 0u);
    party_receive(&b, &SIGNATURE[9], 1, 1);
    party_poll(&b);
    CHECK(b.out_size == 94u);
    party_open(&b, &ROUTER, 64);
    zmtp_speak(&b.zmtp);
    party_poll(&b);
    CHECK(b.out_size == 94u);
}

static void req_and_rep_take_turns(void)
{
    connect_types(ZMTP_REQ, ZMTP_REP);
    party_forget(&a);
    party_forget(&b);
    CHECK(party_put(&b, 0, "pong", 4) == (int32_t)ZMTP_WRONG_TURN);
    CHECK(party_put(&a, 1, "pi", 2) == 6);
    CHECK(party_put(&a, 0, "ng", 2) == 4);
    CHECK(party_put(&a, 0, "ping", 4) == (int32_t)ZMTP_WRONG_TURN);
    exchange();
    CHECK_TEXT(b.told, "message 7069 6e67\n");
    CHECK(party_put(&b, 0, "pong", 4) == 8);
    CHECK(party_put(&b, 0, "pong", 4) == (int32_t)ZMTP_WRONG_TURN);
    exchange();
    CHECK_TEXT(a.told, "message 706f6e67\n");
    CHECK(party_put(&a, 0, "ping", 4) == 8);
    exchange();
    CHECK_TEXT(b.told, "message 7069 6e67\nmessage 70696e67\n");
    CHECK(party_put(&b, 0, "pong", 4) == 8);
}

static void rep_answers_a_dealer_behind_its_envelope(void)
{
    static uint8_t address[300];
    zmtp_event_t event;
    party_ready(&b, ZMTP_REP, ZMTP_DEALER, 1, 1024);
    memset(address, 7, sizeof address);
    party_ready(&a, ZMTP_DEALER, ZMTP_REP, 1, 1024);
    CHECK(party_put(&a, 1, "w1", 2) > 0);
    CHECK(party_put(&a, 1, address, sizeof address) > 0);
    CHECK(party_put(&a, 1, "", 0) > 0);
    CHECK(party_put(&a, 0, "ping", 4) > 0);
    party_receive(&b, a.out, a.out_size, 0);
    CHECK_TEXT(b.told, "message 70696e67\n");
    CHECK(zmtp_sink(&b.zmtp, a.out, a.out_size) == a.out_size);
    CHECK(zmtp_next(&b.zmtp, &event) == (int32_t)ZMTP_WRONG_TURN);
    CHECK(party_put(&b, 0, "pong", 4) > 0);
    CHECK((b.out_size == a.out_size) && (memcmp(b.out, a.out, a.out_size - 4u) == 0));
    CHECK(zmtp_next(&b.zmtp, &event) == (int32_t)ZMTP_FRAME);
    party_ready(&b, ZMTP_REP, ZMTP_DEALER, 1, 256);
    party_receive(&b, a.out, a.out_size, 1000);
    CHECK(b.last == (int32_t)ZMTP_TOO_LONG);
}

/** What a party of this type says to a message that comes in. */
static int32_t takes(uint8_t type, uint8_t peer_type, const char *octets, uint32_t size)
{
    party_ready(&b, type, peer_type, 1, 64);
    party_receive(&b, (const uint8_t *)octets, size, size);
    return b.last;
}

static void messages_out_of_turn_are_the_peers_fault(void)
{
    CHECK(takes(ZMTP_PUSH, ZMTP_PULL, "\0\1x", 3) == (int32_t)ZMTP_UNEXPECTED);
    CHECK(takes(ZMTP_REQ, ZMTP_REP, "\1\0\0\1x", 5) == (int32_t)ZMTP_UNEXPECTED);
    CHECK(takes(ZMTP_REP, ZMTP_REQ, "\0\1x", 3) == (int32_t)ZMTP_UNEXPECTED);
    CHECK(takes(ZMTP_REP, ZMTP_REQ, "\0\0", 2) == (int32_t)ZMTP_UNEXPECTED);
    CHECK(takes(ZMTP_PUB, ZMTP_SUB, "\0\5xtemp", 7) == (int32_t)ZMTP_NONE);
    CHECK(takes(ZMTP_PUB, ZMTP_SUB, "\1\1\1\0\1\1", 6) == (int32_t)ZMTP_NONE);
    CHECK_TEXT(b.told, "");
    party_receive(&b, (const uint8_t *)"\0\1\1\0\2\0a", 7, 7);
    CHECK_TEXT(b.told, "subscribe \ncancel 61\n");
    CHECK(party_put(&b, 0, "temp=1", 6) == 8);
    party_ready(&b, ZMTP_SUB, ZMTP_PUB, 1, 64);
    CHECK(party_put(&b, 0, "x", 1) == (int32_t)ZMTP_WRONG_TURN);
    party_ready(&b, ZMTP_PULL, ZMTP_PUSH, 1, 64);
    CHECK(party_put(&b, 0, "x", 1) == (int32_t)ZMTP_WRONG_TURN);
}

static void a_long_body_can_be_streamed(void)
{
    uint8_t head[16];
    party_ready(&a, ZMTP_PUSH, ZMTP_PULL, 1, 64);
    CHECK(zmtp_put_head(&a.zmtp, 0, 70000, head, 8) == (int32_t)ZMTP_ROOM);
    CHECK(zmtp_put_head(&a.zmtp, 0, 70000, head, sizeof head) == 9);
    CHECK(memcmp(head, "\2\0\0\0\0\0\1\x11\x70", 9) == 0);
    CHECK(zmtp_frame_size(70000) == 70009u);
    CHECK(zmtp_frame_size(255) == 257u);
}

/* ---- links ---- */

static uint8_t link_in[64];
static uint8_t link_out[128];
static int heard_frames;

static void heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    (void)link;
    (void)event;
    heard_frames += what == (int32_t)ZMTP_FRAME;
}

static void link_ready(zmtp_link_t *link, uint8_t type, uint8_t peer_type)
{
    static zmtp_settings_t settings;
    static const zmtp_link_memory_t MEMORY = {link_in, sizeof link_in, link_out, sizeof link_out};
    uint8_t peer[128];
    uint32_t size = party_peer(peer_type, 1, peer);
    settings.socket_type = type;
    CHECK(zmtp_link_open(link, &settings, &MEMORY, heard, NULL) == 0);
    CHECK(zmtp_link_received(link, peer, size) == 0);
    zmtp_link_sent(link, zmtp_link_waiting(link).size);
    link->state = ZMTP_LINK_OPEN;
}

static void a_message_goes_out_whole_or_not_at_all(void)
{
    static uint8_t body[200];
    zmtp_link_t link;
    zmtp_slice_t frames[2] = {{body, 20}, {body, 40}};
    link_ready(&link, ZMTP_REQ, ZMTP_ROUTER);
    frames[1].size = 120;
    CHECK(zmtp_link_send(&link, frames, 2) == (int32_t)ZMTP_TOO_LONG);
    CHECK(zmtp_link_waiting(&link).size == 0u);
    frames[1].size = 40;
    CHECK(zmtp_link_send(&link, frames, 2) == 0);
    CHECK(zmtp_link_waiting(&link).size == 66u);
    link_ready(&link, ZMTP_DEALER, ZMTP_ROUTER);
    CHECK(zmtp_link_send(&link, frames, 2) == 0);
    CHECK(zmtp_link_send(&link, frames, 2) == 0);
    CHECK(zmtp_link_send(&link, frames, 2) == (int32_t)ZMTP_ROOM);
    CHECK(zmtp_link_waiting(&link).size == 128u);
    zmtp_link_sent(&link, 66);
    CHECK(zmtp_link_room(&link) == 66u);
    CHECK(zmtp_link_send(&link, frames, 2) == 0);
    CHECK(zmtp_link_send_one(&link, body, 0) == 0);
    CHECK(zmtp_link_send_one(&link, body, 0) == (int32_t)ZMTP_ROOM);
    CHECK(zmtp_link_waiting(&link).size == 128u);
    CHECK(zmtp_link_received(&link, (const uint8_t *)"\4\7\4PING\0\0", 9) == 0);
    CHECK(zmtp_link_waiting(&link).size == 128u);
    zmtp_link_sent(&link, 128);
    CHECK(zmtp_link_waiting(&link).size == 7u);
    heard_frames = 0;
    CHECK(zmtp_link_received(&link, (const uint8_t *)"\0\1a\1\1b\0\1c", 9) == 0);
    CHECK(heard_frames == 3);
    CHECK(zmtp_link_received(&link, (const uint8_t *)"\x10", 1) == (int32_t)ZMTP_BAD_FRAME);
}

static void a_round_goes_over_all_links_with_room(void)
{
    static zmtp_link_t links[3];
    uint32_t last = 2;
    link_ready(&links[0], ZMTP_PUSH, ZMTP_PULL);
    link_ready(&links[2], ZMTP_PUSH, ZMTP_PULL);
    CHECK(zmtp_links_next(links, 3, &last, 16) == &links[0]);
    CHECK(zmtp_links_next(links, 3, &last, 16) == &links[2]);
    CHECK(zmtp_links_next(links, 3, &last, 16) == &links[0]);
    CHECK(zmtp_links_next(links, 3, &last, 129) == NULL);
    links[2].state = ZMTP_LINK_FREE;
    CHECK(zmtp_links_next(links, 3, &last, 16) == &links[0]);
}

/* ---- subscriptions ---- */

static int matches(const zmtp_subscriptions_t *subscriptions, const char *topic)
{
    return zmtp_subscriptions_match(subscriptions, (const uint8_t *)topic, (uint32_t)strlen(topic));
}

static int add(zmtp_subscriptions_t *subscriptions, const char *prefix)
{
    return zmtp_subscriptions_add(subscriptions, (const uint8_t *)prefix, (uint32_t)strlen(prefix));
}

static void cancel(zmtp_subscriptions_t *subscriptions, const char *prefix)
{
    zmtp_subscriptions_cancel(subscriptions, (const uint8_t *)prefix, (uint32_t)strlen(prefix));
}

static void prefixes_are_counted_in_the_callers_memory(void)
{
    uint8_t memory[16];
    zmtp_subscriptions_t subscriptions = {memory, sizeof memory, 0};
    CHECK(!matches(&subscriptions, "temp"));
    CHECK(add(&subscriptions, "temp") && add(&subscriptions, "temp") && add(&subscriptions, "hum"));
    CHECK(matches(&subscriptions, "temperature") && matches(&subscriptions, "hum") && !matches(&subscriptions, "tem"));
    CHECK(!add(&subscriptions, "wind"));
    cancel(&subscriptions, "wind");
    cancel(&subscriptions, "temp");
    CHECK(matches(&subscriptions, "temp"));
    cancel(&subscriptions, "temp");
    CHECK(!matches(&subscriptions, "temp") && matches(&subscriptions, "humid"));
    CHECK(add(&subscriptions, ""));
    CHECK(matches(&subscriptions, "") && matches(&subscriptions, "temp"));
    CHECK(add(&subscriptions, "wind"));
}

int main(void)
{
    TEST(types_are_connected_as_in_rfc_37);
    TEST(a_handshake_is_one_write_each_way);
    TEST(who_waits_speaks_when_a_signature_is_in_or_it_is_told_to);
    TEST(req_and_rep_take_turns);
    TEST(rep_answers_a_dealer_behind_its_envelope);
    TEST(messages_out_of_turn_are_the_peers_fault);
    TEST(a_long_body_can_be_streamed);
    TEST(a_message_goes_out_whole_or_not_at_all);
    TEST(a_round_goes_over_all_links_with_room);
    TEST(prefixes_are_counted_in_the_callers_memory);
    return checks_failed != 0;
}
