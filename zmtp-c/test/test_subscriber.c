/* The subscriber: each promise of `broker::subscriber` by name, and the golden bytes of vectors/wire. */

#include <stdlib.h>

#include "../src/bodkin_wire.h"
#include "bodkin_subscriber.h"
#include "check.h"
#include "json.h"
#include "party.h"

int checks_failed = 0;
const char *check_about = "";

#define OUT_MAX 2048u
#define PAYLOAD_MAX 8u

static const char *vectors;

static zmtp_link_t links[2];
static uint8_t in[2][BODKIN_COMMAND_MAX];
static uint8_t out[2][OUT_MAX];
static bodkin_node_t node;
static bodkin_subscriber_t subscriber;
static bodkin_stream_t streams[4];
static bodkin_subscription_t subscription;
static uint8_t payloads[2u * PAYLOAD_MAX];
static char said[1024];
static int32_t fault;

static void say(const char *words)
{
    (void)strncat(said, words, sizeof said - strlen(said) - 1u);
}

static void hear(bodkin_subscriber_t *of, const bodkin_event_t *event)
{
    char words[160];
    (void)of;
    (void)snprintf(words, sizeof words, "%u/%u/%u=%.*s%s%s%s%s%.*s ", (unsigned)event->publisher, (unsigned)event->incarnation, (unsigned)event->sequence, (int)event->payload.size,
                   (const char *)event->payload.octets, (event->size > event->payload.size) ? "+" : "", event->is_late ? " late" : "", event->is_marked ? " marked" : "",
                   (event->trace.size > 0u) ? " of " : "", (int)event->trace.size, (const char *)event->trace.octets);
    say(words);
}

static void told(bodkin_subscriber_t *of, bodkin_hears_told_t what, const bodkin_subscription_t *about, uint64_t from, uint64_t count)
{
    static const char *const WORDS[] = {"subscribed", "not subscribed", "missed", "too many"};
    char words[64];
    (void)of;
    CHECK(about == &subscription);
    (void)snprintf(words, sizeof words, "%s %u %u ", WORDS[what], (unsigned)from, (unsigned)count);
    say(words);
}

static void heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    int32_t result = bodkin_heard(&node, (uint32_t)(link - links), link, what, event, 0);
    fault = (result < 0) ? result : fault;
}

static void open_session(uint32_t session)
{
    static const zmtp_settings_t SETTINGS = {.socket_type = ZMTP_DEALER};
    static const zmtp_event_t NOTHING = {0};
    zmtp_link_memory_t memory = {in[session], sizeof in[session], out[session], OUT_MAX};
    uint8_t peer[128];
    uint32_t size = party_peer(ZMTP_ROUTER, 1, peer);
    (void)bodkin_heard(&node, session, &links[session], ZMTP_GONE, &NOTHING, 0);
    CHECK(zmtp_link_open(&links[session], &SETTINGS, &memory, heard, NULL) == 0);
    CHECK(zmtp_link_received(&links[session], peer, size) == 0);
    bodkin_turn(&node, 0);
    zmtp_link_sent(&links[session], zmtp_link_waiting(&links[session]).size);
}

static void receive(uint32_t session, uint8_t flags, const void *body, uint32_t size)
{
    uint8_t frame[256];
    frame[0] = flags;
    frame[1] = (uint8_t)size;
    memcpy(&frame[2], body, size);
    CHECK(zmtp_link_received(&links[session], frame, size + 2u) == 0);
}

/** A header of so many octets, with these flags. */
static void receive_headed(uint32_t session, uint64_t epoch, uint8_t flags, uint64_t publisher, uint64_t incarnation, uint64_t sequence, const char *payload, uint32_t size)
{
    uint8_t header[BODKIN_HEADER_SIZE];
    bodkin_write_header(header, 0, incarnation, sequence, 0, epoch);
    header[1] = flags;
    header[9] = (uint8_t)publisher;
    receive(session, 1, "PRESSURE", 8);
    receive(session, 1, payload, (uint32_t)strlen(payload));
    receive(session, 0, header, size);
}

/** An event of epoch 3 with metadata behind its header. */
static void receive_described(uint64_t sequence, const char *metadata)
{
    uint8_t header[BODKIN_HEADER_SIZE];
    bodkin_write_header(header, 0, 1, sequence, 0, 3);
    header[9] = 26;
    receive(0, 1, "PRESSURE", 8);
    receive(0, 1, "x", 1);
    receive(0, 1, header, sizeof header);
    receive(0, 0, metadata, (uint32_t)strlen(metadata));
}

static void receive_event(uint32_t session, uint64_t epoch, uint64_t publisher, uint64_t incarnation, uint64_t sequence)
{
    receive_headed(session, epoch, 0, publisher, incarnation, sequence, "x", BODKIN_HEADER_SIZE);
}

static void receive_leader(uint32_t session, uint64_t epoch, uint8_t leads)
{
    bodkin_command_t command;
    bodkin_begin(&command, BODKIN_KIND_LEADER, epoch);
    bodkin_add_octet(&command, leads);
    receive(session, 0, command.octets, command.size);
}

/** What goes out on a session: the commands' kinds and, of acknowledgements, how far. */
static const char *sent(uint32_t session)
{
    static char words[512];
    zmtp_slice_t left;
    words[0] = 0;
    bodkin_turn(&node, 0);
    left = zmtp_link_waiting(&links[session]);
    while (left.size > 0u) {
        uint32_t size = left.octets[1];
        bodkin_reader_t reader = {{&left.octets[2], size}, 0};
        char word[64];
        uint8_t kind;
        uint64_t numbers[4];
        int i;
        (void)bodkin_read_octet(&reader);
        kind = bodkin_read_octet(&reader);
        for (i = 0; i < 4; i++) {
            numbers[i] = bodkin_read_number(&reader);
        }
        if (kind == (uint8_t)BODKIN_KIND_DELIVERED) {
            (void)snprintf(word, sizeof word, "%u/%u to %u ", (unsigned)numbers[1], (unsigned)numbers[2], (unsigned)numbers[3]);
        } else {
            (void)snprintf(word, sizeof word, "%u ", kind);
        }
        (void)strcat(words, word);
        left.octets += size + 2u;
        left.size -= size + 2u;
    }
    zmtp_link_sent(&links[session], zmtp_link_waiting(&links[session]).size);
    return words;
}

static void begin(uint32_t streams_count)
{
    memset(streams, 0, sizeof streams);
    memset(&subscriber, 0, sizeof subscriber);
    memset(&node, 0, sizeof node);
    subscription = (bodkin_subscription_t){.name = "PRESSURE", .streams = streams, .streams_count = streams_count, .waited_for_ms = 30000, .deadline_ms = 50,
                                           .has_loss_tolerance = 1};
    subscriber = (bodkin_subscriber_t){.subscriptions = &subscription, .subscriptions_count = 1, .payloads = payloads, .payload_max = PAYLOAD_MAX, .heard = hear, .told = told};
    node.name = "display";
    node.incarnation = 7;
    node.subscriber = &subscriber;
    said[0] = 0;
    fault = 0;
    CHECK(bodkin_open(&node) == 0);
    open_session(0);
    open_session(1);
    receive_leader(0, 3, 1);
    receive_leader(1, 3, 0);
    CHECK_TEXT(sent(0), "68 ");
    CHECK_TEXT(sent(1), "68 ");
}

static void it_subscribes_once_a_connection_when_the_broker_has_said_whether_it_leads(void)
{
    check_about = "subscribing";
    begin(4);
    receive_leader(0, 3, 1);
    CHECK_TEXT(sent(0), "");
    open_session(0);
    CHECK_TEXT(sent(0), "");
    receive_leader(0, 3, 1);
    CHECK_TEXT(sent(0), "68 ");
}

static void each_event_is_heard_once_and_acknowledged_to_who_leads(void)
{
    check_about = "events";
    begin(4);
    receive_event(0, 3, 26, 1, 41);
    receive_event(0, 3, 26, 1, 42);
    receive_event(0, 3, 26, 1, 42);
    CHECK_TEXT(said, "26/1/41=x 26/1/42=x ");
    CHECK_TEXT(sent(1), "");
    CHECK_TEXT(sent(0), "26/1 to 42 ");
    CHECK_TEXT(sent(0), "");
}

static void what_comes_again_after_a_fail_over_is_a_duplicate(void)
{
    check_about = "a fail-over";
    begin(4);
    receive_event(0, 3, 26, 1, 41);
    receive_event(0, 3, 26, 1, 42);
    open_session(0);
    receive_leader(1, 4, 1);
    receive_event(1, 4, 26, 1, 41);
    receive_event(1, 4, 26, 1, 42);
    receive_event(1, 4, 26, 1, 43);
    CHECK_TEXT(said, "26/1/41=x 26/1/42=x 26/1/43=x ");
    CHECK_TEXT(sent(1), "26/1 to 43 ");
}

static void an_event_of_a_lower_epoch_is_not_believed_and_one_of_a_higher_shows_who_leads(void)
{
    check_about = "epochs";
    begin(4);
    receive_event(1, 4, 26, 1, 1);
    receive_event(0, 3, 26, 1, 2);
    CHECK_TEXT(said, "26/1/1=x ");
    CHECK_TEXT(sent(0), "");
    CHECK_TEXT(sent(1), "26/1 to 1 ");
}

static void what_is_missing_is_told_and_may_come_late(void)
{
    check_about = "gaps";
    begin(4);
    receive_event(0, 3, 26, 1, 1);
    receive_event(0, 3, 26, 1, 5);
    receive_event(0, 3, 26, 1, 3);
    receive_event(0, 3, 26, 1, 3);
    receive_headed(0, 3, 4, 26, 1, 7, "", BODKIN_HEADER_SIZE);
    CHECK_TEXT(said, "26/1/1=x missed 2 3 26/1/5=x 26/1/3=x late missed 6 2 ");
    said[0] = 0;
    receive_event(0, 3, 26, 1, 1000);
    receive_event(0, 3, 26, 1, 936); /* 64 places are remembered */
    receive_event(0, 3, 26, 1, 937);
    CHECK_TEXT(said, "missed 8 992 26/1/1000=x 26/1/937=x late ");
    CHECK_TEXT(sent(0), "26/1 to 1000 ");
}

static void a_stream_begins_at_present_or_with_the_first_event(void)
{
    check_about = "beginnings";
    begin(4);
    subscription.begins_first = 1;
    receive_event(0, 3, 26, 1, 3);
    CHECK_TEXT(said, "missed 1 2 26/1/3=x ");
    begin(4);
    receive_event(0, 3, 26, 1, 3);
    receive_event(0, 3, 26, 1, 2); /* was before its time */
    receive_event(0, 3, 26, 2, 2); /* begun anew: all of it is */
    CHECK_TEXT(said, "26/1/3=x missed 1 1 26/2/2=x ");
}

static void the_run_before_is_remembered_and_no_earlier_one(void)
{
    check_about = "incarnations";
    begin(2);
    receive_event(0, 3, 26, 1, 1);
    receive_event(0, 3, 26, 2, 1);
    receive_event(0, 3, 26, 1, 2);
    receive_event(0, 3, 26, 3, 1);
    receive_event(0, 3, 26, 1, 3);
    receive_event(0, 3, 26, 2, 2);
    CHECK_TEXT(said, "26/1/1=x 26/2/1=x 26/1/2=x 26/3/1=x 26/2/2=x ");
    said[0] = 0;
    receive_event(0, 3, 27, 1, 1);
    CHECK_TEXT(said, "too many 0 1 ");
}

static void what_a_graph_has_made_is_heard_and_numbers_that_it_passes_over_are_no_losses(void)
{
    check_about = "derived events";
    begin(4);
    receive_headed(0, 3, 16, 4, 1, 1, "a", BODKIN_HEADER_SIZE);
    receive_headed(0, 3, 16, 4, 1, 5, "b", BODKIN_HEADER_SIZE);
    receive_headed(0, 3, 48, 4, 1, 9, "c", BODKIN_HEADER_SIZE);
    CHECK_TEXT(said, "4/1/1=a 4/1/5=b 4/1/9=c marked ");
    CHECK(fault == 0);
    receive_headed(0, 3, 64, 4, 1, 10, "d", BODKIN_HEADER_SIZE);
    CHECK(fault == (int32_t)ZMTP_BAD_COMMAND);
}

static void a_long_payload_is_cut_and_what_has_no_header_is_not_heard(void)
{
    check_about = "forms of events";
    begin(4);
    receive_headed(0, 3, 0, 26, 1, 1, "0123456789", BODKIN_HEADER_SIZE);
    receive(0, 1, "PRESSURE", 8);
    receive(0, 0, "x", 1);
    receive(0, 1, "COLD", 4);
    receive(0, 1, "x", 1);
    CHECK(fault == 0);
    receive(0, 0, "short", 5);
    CHECK(fault == (int32_t)ZMTP_BAD_COMMAND);
    CHECK_TEXT(said, "26/1/1=01234567+ ");
}

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static void an_event_says_which_trace_it_is_of(void)
{
    char text[251];
    check_about = "traces";
    begin(4);
    receive_described(1, "{\"traceparent\":\"" TRACE "\"}");
    receive_described(2, "{ \"room\":\"\\\"traceparent\\\"\", \"n\":7, \"traceparent\" : \"" TRACE "\", \"a\":\"traceparent\"}");
    receive_described(3, "{\"room\":\"" TRACE "\",\"traceparent\":\"none\"}");
    receive_described(4, "{\"a\":\"traceparent");
    receive_described(5, "");
    receive_event(0, 3, 26, 1, 6);
    CHECK_TEXT(said, "26/1/1=x of " TRACE " 26/1/2=x of " TRACE " 26/1/3=x 26/1/4=x 26/1/5=x 26/1/6=x ");
    CHECK(fault == 0);

    /* What is longer than the link's buffer is passed over, and the next event is heard as ever. */
    said[0] = 0;
    (void)snprintf(text, sizeof text, "{\"traceparent\":\"" TRACE "\",\"room\":\"%0150d\"}", 7);
    CHECK(strlen(text) > sizeof in[0]);
    receive_described(7, text);
    receive_described(8, "{\"traceparent\":\"" TRACE "\"}");
    CHECK_TEXT(said, "26/1/7=x 26/1/8=x of " TRACE " ");
    CHECK(fault == 0);
}

static void nothing_comes_behind_metadata_and_none_behind_half_a_header(void)
{
    uint8_t header[BODKIN_HEADER_SIZE];
    check_about = "faults of metadata";
    bodkin_write_header(header, 0, 1, 1, 0, 3);
    begin(4);
    receive(0, 1, "PRESSURE", 8);
    receive(0, 1, "x", 1);
    receive(0, 1, header, sizeof header);
    receive(0, 1, "{}", 2);
    CHECK(fault == (int32_t)ZMTP_BAD_COMMAND);
    begin(4);
    receive(0, 1, "PRESSURE", 8);
    receive(0, 1, "x", 1);
    receive(0, 1, header, sizeof header - 1u);
    CHECK(fault == (int32_t)ZMTP_BAD_COMMAND);
    CHECK_TEXT(said, "");
}

static void who_wants_metadata_says_so_in_its_ready(void)
{
    static const zmtp_settings_t SETTINGS = {
        .socket_type = ZMTP_DEALER, .property = BODKIN_METADATA_PROPERTY, .property_value = {(const uint8_t *)BODKIN_METADATA_WANTED, sizeof BODKIN_METADATA_WANTED - 1u}};
    static const char PROPERTY[] = "\21X-Bodkin-Metadata\0\0\0\3yes";
    zmtp_link_memory_t memory = {in[0], sizeof in[0], out[0], OUT_MAX};
    uint8_t peer[128];
    uint32_t size = party_peer(ZMTP_ROUTER, 1, peer);
    zmtp_slice_t waiting;
    check_about = "the property";
    begin(4);
    CHECK(zmtp_link_open(&links[0], &SETTINGS, &memory, heard, NULL) == 0);
    CHECK(zmtp_link_received(&links[0], peer, size) == 0);
    waiting = zmtp_link_waiting(&links[0]);
    CHECK((waiting.size > sizeof PROPERTY) && (memcmp(&waiting.octets[waiting.size - (sizeof PROPERTY - 1u)], PROPERTY, sizeof PROPERTY - 1u) == 0));
}

static void whether_it_is_subscribed_is_told(void)
{
    bodkin_command_t command;
    check_about = "answers";
    begin(4);
    bodkin_begin(&command, BODKIN_KIND_SUBSCRIBED, 3);
    bodkin_add_text(&command, "PRESSURE");
    receive(0, 0, command.octets, command.size);
    bodkin_begin(&command, BODKIN_KIND_SUBSCRIBE_REFUSED, 3);
    bodkin_add_octet(&command, 9);
    bodkin_add_text(&command, "PRESSURE");
    bodkin_add_text(&command, "a deadline of 51 ms would be admitted");
    receive(1, 0, command.octets, command.size);
    bodkin_begin(&command, BODKIN_KIND_LOST, 3);
    bodkin_add_number(&command, 26);
    bodkin_add_number(&command, 1);
    bodkin_add_number(&command, 2);
    bodkin_add_text(&command, "PRESSURE");
    receive(0, 0, command.octets, command.size);
    CHECK_TEXT(said, "subscribed 0 0 not subscribed 1 9 ");
    CHECK(fault == 0);
    bodkin_begin(&command, BODKIN_KIND_SUBSCRIBED, 3);
    bodkin_add_text(&command, "COLD");
    receive(0, 0, command.octets, command.size);
    CHECK(fault == (int32_t)ZMTP_BAD_COMMAND);
}

/** The golden frame of this description is what goes out first on session 0. */
static void expect_golden(const char *about)
{
    const char *row = json_first(json_member(vectors, "frames"));
    uint8_t octets[256];
    zmtp_slice_t waiting;
    while ((row != NULL) && (strcmp(json_text(row, "about"), about) != 0)) {
        row = json_next(row);
    }
    check_about = about;
    bodkin_turn(&node, 0);
    waiting = zmtp_link_waiting(&links[0]);
    CHECK(row != NULL);
    CHECK((row != NULL) && (waiting.size >= (json_octets(json_text(row, "hex"), octets, sizeof octets) + 2u)) &&
          (memcmp(&waiting.octets[2], octets, json_octets(json_text(row, "hex"), octets, sizeof octets)) == 0));
    zmtp_link_sent(&links[0], waiting.size);
}

static void commands_are_written_as_in_the_golden_bytes(void)
{
    begin(4);
    receive_event(0, 3, 26, 1, 41);
    expect_golden("the subscriber has everything up to 41");
    receive_headed(0, 3, 4, 27, 5, 0, "", BODKIN_HEADER_SIZE);
    open_session(0);
    receive_leader(0, 3, 1);
    expect_golden("a required one, which has two streams in part");
}

int main(int count, char **arguments)
{
    vectors = json_file((count > 1) ? arguments[1] : "../vectors/wire", "client.json");
    TEST(it_subscribes_once_a_connection_when_the_broker_has_said_whether_it_leads);
    TEST(each_event_is_heard_once_and_acknowledged_to_who_leads);
    TEST(what_comes_again_after_a_fail_over_is_a_duplicate);
    TEST(an_event_of_a_lower_epoch_is_not_believed_and_one_of_a_higher_shows_who_leads);
    TEST(what_is_missing_is_told_and_may_come_late);
    TEST(a_stream_begins_at_present_or_with_the_first_event);
    TEST(the_run_before_is_remembered_and_no_earlier_one);
    TEST(what_a_graph_has_made_is_heard_and_numbers_that_it_passes_over_are_no_losses);
    TEST(a_long_payload_is_cut_and_what_has_no_header_is_not_heard);
    TEST(an_event_says_which_trace_it_is_of);
    TEST(nothing_comes_behind_metadata_and_none_behind_half_a_header);
    TEST(who_wants_metadata_says_so_in_its_ready);
    TEST(whether_it_is_subscribed_is_told);
    TEST(commands_are_written_as_in_the_golden_bytes);
    return checks_failed != 0;
}
