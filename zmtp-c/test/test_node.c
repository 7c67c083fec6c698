/* The reliable publisher: each promise of `broker::publisher` by name, and the golden bytes of vectors/wire. */

#include <stdlib.h>

#include "../src/bodkin_wire.h"
#include "bodkin_node.h"
#include "check.h"
#include "json.h"
#include "party.h"

int checks_failed = 0;
const char *check_about = "";

#define RUN 7u
#define CAPACITY_MAX 8u
#define PAYLOAD_MAX 8u
#define OUT_MAX 2048u

static const char *folder;

static zmtp_link_t links[2];
static uint8_t in[2][256];
static uint8_t out[2][OUT_MAX];
static bodkin_node_t node;
static bodkin_topic_t topics[2];
static bodkin_kept_t kept[2][CAPACITY_MAX];
static uint8_t payloads[2][CAPACITY_MAX * PAYLOAD_MAX];
static uint32_t now_ms;
static char told[1024];

static uint64_t utc_ns(void)
{
    return 1700000000123456789u;
}

static void tell(bodkin_node_t *of, bodkin_told_t what, const bodkin_topic_t *topic, uint64_t number, uint8_t reason)
{
    static const char *const WORDS[] = {"leads", "leaderless", "covered", "dropped", "not taken", "excess", "lost", "guarantee"};
    size_t size = strlen(told);
    (void)of;
    (void)topic;
    (void)snprintf(&told[size], sizeof told - size, "%s %u%s ", WORDS[what], (unsigned)number, (reason != 0u) ? "!" : "");
}

static void ignore(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    (void)link;
    (void)what;
    (void)event;
}

/** What goes out on a session, in words. */
static const char *sent(uint32_t session)
{
    static char words[1024];
    zmtp_slice_t left;
    int frame = 0;
    words[0] = 0;
    bodkin_turn(&node, now_ms);
    left = zmtp_link_waiting(&links[session]);
    while (left.size > 0u) {
        const uint8_t *body = &left.octets[2];
        uint32_t size = left.octets[1];
        bodkin_reader_t reader = {{body, size}, 0};
        char word[96] = "";
        uint8_t version = bodkin_read_octet(&reader);
        uint8_t flags = bodkin_read_octet(&reader); /* of a header; of a command its kind */
        uint64_t numbers[4];
        int i;
        CHECK((version == 1u) || (frame == 0) || (frame == 1) || (frame == 3));
        for (i = 0; i < 4; i++) {
            numbers[i] = bodkin_read_number(&reader);
        }
        if (frame == 2) {
            (void)snprintf(word, sizeof word, "%s%u ", (flags == 1u) ? "again " : "", (unsigned)numbers[2]);
        } else if (frame == 3) {
            (void)snprintf(word, sizeof word, "%.*s ", (int)size, (const char *)body);
        } else if ((frame == 0) && (left.octets[0] == 0u)) {
            if (flags == (uint8_t)BODKIN_KIND_HELLO) {
                (void)strcpy(word, "hello ");
            } else if (flags == (uint8_t)BODKIN_KIND_RESUME) {
                (void)snprintf(word, sizeof word, "resume %u..%u ", (unsigned)numbers[2], (unsigned)numbers[3]);
            } else if (flags == (uint8_t)BODKIN_KIND_LAST) {
                (void)snprintf(word, sizeof word, "last %u ", (unsigned)numbers[3]);
            } else {
                (void)snprintf(word, sizeof word, "%u ", (unsigned)flags);
            }
        } else {
            /* The event type, or the payload. */
        }
        (void)strcat(words, word);
        frame = (left.octets[0] == 1u) ? (frame + 1) : 0;
        left.octets = &body[size];
        left.size -= size + 2u;
    }
    zmtp_link_sent(&links[session], zmtp_link_waiting(&links[session]).size);
    return words;
}

static void open_session(uint32_t session)
{
    static const zmtp_settings_t SETTINGS = {.socket_type = ZMTP_DEALER};
    static const zmtp_event_t NOTHING = {0};
    zmtp_link_memory_t memory = {in[session], sizeof in[session], out[session], OUT_MAX};
    uint8_t peer[128];
    uint32_t size = party_peer(ZMTP_ROUTER, 1, peer);
    CHECK(zmtp_link_open(&links[session], &SETTINGS, &memory, ignore, NULL) == 0);
    CHECK(zmtp_link_received(&links[session], peer, size) == 0);
    zmtp_link_sent(&links[session], zmtp_link_waiting(&links[session]).size);
    CHECK(bodkin_heard(&node, session, &links[session], ZMTP_READY, &NOTHING, now_ms) == 0);
}

static void begin(uint32_t retention, uint32_t capacity, uint8_t drops_oldest)
{
    static const char *const NAMES[2] = {"HOT", "COLD"};
    uint32_t i;
    memset(topics, 0, sizeof topics);
    memset(&node, 0, sizeof node);
    for (i = 0; i < 2u; i++) {
        topics[i].name = NAMES[i];
        topics[i].kept = kept[i];
        topics[i].payloads = payloads[i];
        topics[i].capacity = capacity;
        topics[i].payload_max = PAYLOAD_MAX;
        topics[i].retention = retention;
        topics[i].drops_oldest = drops_oldest;
    }
    node.name = "press-4";
    node.incarnation = RUN;
    node.topics = topics;
    node.topics_count = 2;
    node.utc_ns = utc_ns;
    node.told = tell;
    now_ms = 0xfffffff0u; /* the clock wraps around in the tests */
    told[0] = 0;
    CHECK(bodkin_open(&node) == 0);
    open_session(0);
    open_session(1);
    CHECK_TEXT(sent(0), "hello ");
    CHECK_TEXT(sent(1), "hello ");
}

static void publish(int count)
{
    while (count-- > 0) {
        CHECK(bodkin_publish(&node, &topics[0], "x", 1) == 0);
    }
}

static int32_t heard(uint32_t session, const bodkin_command_t *command)
{
    zmtp_event_t event = {command->octets, command->size, 0, 0, 0};
    return bodkin_heard(&node, session, &links[session], ZMTP_FRAME, &event, now_ms);
}

static void leader(uint32_t session, uint64_t epoch, uint8_t leads)
{
    bodkin_command_t command;
    bodkin_begin(&command, BODKIN_KIND_LEADER, epoch);
    command.octets[command.size++] = leads;
    CHECK(heard(session, &command) == 0);
}

static void covered(uint32_t session, uint64_t epoch, uint64_t incarnation, uint64_t through)
{
    bodkin_command_t command;
    bodkin_begin(&command, BODKIN_KIND_COVERED, epoch);
    bodkin_add_number(&command, incarnation);
    bodkin_add_number(&command, through);
    bodkin_add_text(&command, "HOT");
    CHECK(heard(session, &command) == 0);
}

static void refused(uint64_t sequence, uint8_t reason, uint64_t retry_ms)
{
    bodkin_command_t command;
    bodkin_begin(&command, BODKIN_KIND_REFUSED, 1);
    bodkin_add_number(&command, sequence);
    command.octets[command.size++] = reason;
    bodkin_add_number(&command, retry_ms * 1000000u);
    bodkin_add_text(&command, "HOT");
    bodkin_add_text(&command, "because");
    CHECK(heard(0, &command) == 0);
}

static void expect_told(const char *expected)
{
    CHECK_TEXT(told, expected);
    told[0] = 0;
}

static void what_is_kept_goes_to_the_next_leader_in_order_and_then_what_is_new(void)
{
    begin(1, 8, 0);
    publish(1);
    CHECK_TEXT(sent(0), "");
    leader(0, 1, 1);
    CHECK_TEXT(sent(0), "resume 1..1 again 1 ");
    publish(3);
    CHECK_TEXT(sent(0), "2 3 4 ");
    covered(0, 1, RUN, 2);
    leader(1, 2, 1);
    publish(1);
    CHECK_TEXT(sent(1), "resume 3..5 again 3 again 4 again 5 ");
    covered(0, 1, RUN, 5);
    leader(0, 1, 1);
    leader(0, 2, 1);
    CHECK(node.leader == 1u);
    expect_told("leads 0 covered 2 leads 1 ");
}

static void another_connection_to_the_same_leader_gets_everything_again(void)
{
    static const zmtp_event_t NOTHING = {0};
    begin(0, 8, 0);
    leader(0, 1, 1);
    publish(2);
    CHECK_TEXT(sent(0), "1 2 ");
    CHECK(bodkin_heard(&node, 0, &links[0], ZMTP_GONE, &NOTHING, now_ms) == 0);
    CHECK(bodkin_heard(&node, 1, &links[1], ZMTP_GONE, &NOTHING, now_ms) == 0);
    expect_told("leads 0 leaderless 0 ");
    publish(1);
    bodkin_turn(&node, now_ms);
    open_session(0);
    leader(0, 1, 1);
    CHECK_TEXT(sent(0), "hello resume 1..3 again 1 again 2 again 3 ");
}

static void the_newest_are_kept_although_they_are_covered(void)
{
    begin(2, 4, 0);
    leader(0, 1, 1);
    publish(3);
    (void)sent(0);
    covered(0, 1, RUN, 3);
    CHECK(topics[0].oldest == 2u);
    leader(1, 2, 1);
    CHECK_TEXT(sent(1), "resume 2..3 again 2 again 3 ");
}

static void what_is_uncovered_blocks_or_is_dropped_and_told(void)
{
    begin(1, 2, 0);
    leader(0, 1, 1);
    publish(2);
    CHECK(bodkin_publish(&node, &topics[0], "x", 1) == (int32_t)ZMTP_ROOM);
    CHECK(bodkin_publish(&node, &topics[0], "123456789", 9) == (int32_t)ZMTP_TOO_LONG);
    (void)sent(0);
    covered(0, 1, RUN, 2);
    publish(2);
    CHECK(bodkin_publish(&node, &topics[0], "x", 1) == (int32_t)ZMTP_ROOM);
    begin(1, 2, 1);
    publish(3);
    expect_told("dropped 1 ");
    leader(0, 1, 1);
    CHECK_TEXT(sent(0), "resume 2..3 again 2 again 3 ");
    refused(2, BODKIN_FULL, 50);
    publish(1);
    now_ms += 50u;
    CHECK_TEXT(sent(0), "resume 3..4 again 3 again 4 ");
    publish(1);
    CHECK_TEXT(sent(0), "5 ");
}

static void a_refused_event_comes_again_in_its_place(void)
{
    begin(0, 8, 0);
    leader(0, 1, 1);
    publish(4);
    (void)sent(0);
    refused(2, BODKIN_FULL, 50);
    refused(3, BODKIN_FULL, 50);
    publish(1);
    CHECK_TEXT(sent(0), "");
    now_ms += 50u;
    CHECK_TEXT(sent(0), "again 2 again 3 again 4 5 ");
    refused(4, BODKIN_NOT_AUTHORIZED, 0);
    refused(5, BODKIN_NOT_LEADING, 0);
    refused(9, BODKIN_NOT_AUTHORIZED, 0);
    expect_told("leads 0 not taken 4! ");
    leader(1, 2, 1);
    CHECK_TEXT(sent(1), "resume 1..5 again 1 again 2 again 3 again 5 ");
}

static void the_last_event_of_a_silent_topic_is_named_until_it_is_covered(void)
{
    begin(0, 8, 0);
    leader(0, 1, 1);
    publish(1);
    CHECK_TEXT(sent(0), "1 ");
    now_ms += 99u;
    CHECK_TEXT(sent(0), "");
    now_ms += 1u;
    CHECK_TEXT(sent(0), "last 1 ");
    now_ms += 50u;
    CHECK_TEXT(sent(0), "");
    now_ms += 50u;
    CHECK_TEXT(sent(0), "last 1 ");
    covered(0, 1, RUN, 1);
    now_ms += 1000u;
    CHECK_TEXT(sent(0), "");
}

static void what_was_not_published_or_is_of_another_run_is_not_covered(void)
{
    begin(0, 8, 0);
    leader(0, 1, 1);
    publish(1);
    (void)sent(0);
    covered(0, 1, RUN, 2);
    covered(0, 1, RUN - 1u, 1);
    covered(1, 1, RUN, 1);
    covered(0, 2, RUN, 1);
    CHECK(topics[0].covered == 0u);
    covered(0, 1, RUN, 1);
    CHECK(topics[0].covered == 1u);
}

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define TRACE_METADATA "{\"traceparent\":\"" TRACE "\"}"

static void an_event_says_which_trace_it_is_of_whenever_it_is_sent(void)
{
    static char traces[2u * BODKIN_TRACE_SIZE];
    check_about = "traces";
    begin(2, 2, 0);
    topics[0].traces = traces;
    leader(0, 3, 1);
    CHECK(bodkin_publish_traced(&node, &topics[0], "x", 1, TRACE) == 0);
    publish(1);
    CHECK_TEXT(sent(0), "1 " TRACE_METADATA " 2 ");
    leader(1, 4, 1);
    CHECK_TEXT(sent(1), "resume 1..2 again 1 " TRACE_METADATA " again 2 ");
    /* The place of an event that was of a trace is used again. */
    covered(1, 4, RUN, 2);
    publish(1);
    CHECK_TEXT(sent(1), "3 ");
    CHECK(bodkin_publish_traced(&node, &topics[0], "x", 1, NULL) == 0);
    CHECK_TEXT(sent(1), "4 ");
}

static void what_is_no_trace_or_has_no_memory_is_not_taken(void)
{
    static char traces[2u * BODKIN_TRACE_SIZE];
    static const char *const WRONG[] = {
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"};
    uint32_t i;
    check_about = "traces";
    begin(2, 2, 0);
    leader(0, 3, 1);
    CHECK(bodkin_publish_traced(&node, &topics[0], "x", 1, TRACE) == (int32_t)ZMTP_ARGUMENT);
    topics[0].traces = traces;
    for (i = 0; i < (sizeof WRONG / sizeof WRONG[0]); i++) {
        CHECK(bodkin_publish_traced(&node, &topics[0], "x", 1, WRONG[i]) == (int32_t)ZMTP_ARGUMENT);
    }
    CHECK_TEXT(sent(0), "");
}

static void topics_take_turns(void)
{
    begin(0, 8, 0);
    leader(0, 1, 1);
    publish(2);
    CHECK(bodkin_publish(&node, &topics[1], "y", 1) == 0);
    CHECK(bodkin_publish(&node, &topics[1], "y", 1) == 0);
    CHECK_TEXT(sent(0), "1 1 2 2 ");
}

static void without_room_nothing_is_lost(void)
{
    uint32_t size;
    begin(0, 8, 0);
    leader(0, 1, 1);
    publish(8);
    links[0].out_size = 128;
    CHECK_TEXT(sent(0), "1 2 ");
    CHECK_TEXT(sent(0), "3 4 ");
    links[0].out_size = OUT_MAX;
    CHECK_TEXT(sent(0), "5 6 7 8 ");
    size = zmtp_link_waiting(&links[0]).size;
    CHECK(size == 0u);
}

static void a_broker_that_breaks_the_rules_is_closed(void)
{
    bodkin_command_t command;
    zmtp_event_t event = {command.octets, 0, 0, 0, 0};
    begin(0, 8, 0);
    CHECK(heard(0, &(bodkin_command_t){{1, 65}, 2}) == (int32_t)ZMTP_BAD_COMMAND);
    CHECK(heard(0, &(bodkin_command_t){{2, 65, 0, 0, 0, 0, 0, 0, 0, 1, 1}, 11}) == (int32_t)ZMTP_BAD_COMMAND);
    CHECK(heard(0, &(bodkin_command_t){{1, 64, 0, 0, 0, 0, 0, 0, 0, 1, 1}, 11}) == (int32_t)ZMTP_BAD_COMMAND);
    bodkin_begin(&command, BODKIN_KIND_COVERED, 1);
    bodkin_add_number(&command, RUN);
    bodkin_add_number(&command, 1);
    bodkin_add_text(&command, "WARM");
    CHECK(heard(0, &command) == (int32_t)ZMTP_BAD_COMMAND);
    event.size = command.size;
    event.more = 1;
    CHECK(bodkin_heard(&node, 0, &links[0], ZMTP_FRAME, &event, now_ms) == (int32_t)ZMTP_BAD_COMMAND);
}

static int32_t guaranteed(uint32_t session, uint64_t epoch, uint8_t deadlines, uint8_t losses)
{
    bodkin_command_t command;
    uint64_t figure;
    bodkin_begin(&command, BODKIN_KIND_GUARANTEED, epoch);
    bodkin_add_octet(&command, deadlines);
    bodkin_add_octet(&command, losses);
    for (figure = 0; figure < 7u; figure++) {
        bodkin_add_number(&command, figure);
    }
    return heard(session, &command);
}

static void what_is_guaranteed_is_told_to_who_asks_for_it(void)
{
    begin(0, 8, 0);
    node.watches_guarantee = 1;
    open_session(0);
    links[0].out_size = 128;
    CHECK_TEXT(sent(0), "hello 79 ");
    CHECK_TEXT(sent(0), "");
    leader(0, 3, 1);
    expect_told("leads 0 ");
    CHECK(guaranteed(0, 3, BODKIN_HELD, BODKIN_SUSPENDED) == 0);
    expect_told("guarantee 3! ");
    CHECK(guaranteed(1, 3, BODKIN_HELD, BODKIN_HELD) == 0); /* it does not lead */
    CHECK(guaranteed(0, 2, BODKIN_HELD, BODKIN_HELD) == 0); /* nor did it then */
    expect_told("");
    CHECK(guaranteed(0, 3, 5, BODKIN_HELD) == (int32_t)ZMTP_BAD_COMMAND);
    CHECK(guaranteed(0, 3, BODKIN_HELD, 0) == (int32_t)ZMTP_BAD_COMMAND);
}

static uint64_t number(const char *means, const char *name)
{
    const char *value = json_member(means, name);
    return (value == NULL) ? 0u : strtoull(value, NULL, 10);
}

static void headers_are_written_as_in_the_golden_bytes(void)
{
    const char *row;
    int compared = 0;
    for (row = json_first(json_member(json_file(folder, "event-header.json"), "frames")); row != NULL; row = json_next(row)) {
        const char *means = json_member(row, "means");
        const char *flags = json_member(means, "flags");
        uint8_t expected[BODKIN_HEADER_SIZE];
        uint8_t written[BODKIN_HEADER_SIZE];
        int is_published = (number(means, "publisher") == 0u) && (strncmp(json_member(flags, "recovered"), "false", 5) == 0) &&
                           (strncmp(json_member(flags, "last"), "false", 5) == 0);
        check_about = json_text(row, "about");
        if (is_published) {
            (void)json_octets(json_text(row, "hex"), expected, sizeof expected);
            bodkin_write_header(written, strncmp(json_member(flags, "resend"), "true", 4) == 0, number(means, "incarnation"),
                                number(means, "sequence"), number(means, "created_utc_ns"), number(means, "epoch"));
            CHECK(memcmp(written, expected, sizeof expected) == 0);
            compared++;
        }
    }
    CHECK(compared == 2);
}

/** Which commands of brokers a publisher takes, and those that it sends. */
static int is_of(const char *kind, const char *const *kinds)
{
    while ((*kinds != NULL) && (strcmp(*kinds, kind) != 0)) {
        kinds++;
    }
    return *kinds != NULL;
}

static void commands_are_read_and_written_as_in_the_golden_bytes(void)
{
    static const char *const TAKEN[] = {"Leader", "Covered", "Refused", "Lost", "Excess", "ClockRequest", "Guaranteed", NULL};
    const char *row;
    int taken = 0;
    for (row = json_first(json_member(json_file(folder, "client.json"), "frames")); row != NULL; row = json_next(row)) {
        const char *means = json_member(row, "means");
        const char *kind = json_text(means, "frame");
        uint8_t octets[2048];
        zmtp_event_t event = {octets, (uint32_t)json_octets(json_text(row, "hex"), octets, sizeof octets), 0, 0, 0};
        bodkin_command_t command;
        check_about = json_text(row, "about");
        if (strcmp(kind, "Hello") == 0) {
            bodkin_begin(&command, BODKIN_KIND_HELLO, number(means, "epoch"));
            bodkin_add_number(&command, number(means, "incarnation"));
            bodkin_add_text(&command, json_text(means, "name"));
            CHECK((command.size == event.size) && (memcmp(command.octets, octets, command.size) == 0));
        } else if (strcmp(kind, "WatchGuarantee") == 0) {
            bodkin_begin(&command, BODKIN_KIND_WATCH_GUARANTEE, number(means, "epoch"));
            CHECK((command.size == event.size) && (memcmp(command.octets, octets, command.size) == 0));
        } else if (is_of(kind, TAKEN)) {
            begin(0, 8, 0);
            topics[0].name = json_text(means, "topic");
            CHECK(bodkin_heard(&node, 0, &links[0], ZMTP_FRAME, &event, now_ms) == 0);
            taken++;
        } else {
            begin(0, 8, 0);
            CHECK(bodkin_heard(&node, 0, &links[0], ZMTP_FRAME, &event, now_ms) == (int32_t)ZMTP_BAD_COMMAND);
        }
    }
    CHECK(taken >= 12);
}

int main(int count, char **arguments)
{
    folder = (count > 1) ? arguments[1] : "../vectors/wire";
    TEST(what_is_kept_goes_to_the_next_leader_in_order_and_then_what_is_new);
    TEST(another_connection_to_the_same_leader_gets_everything_again);
    TEST(the_newest_are_kept_although_they_are_covered);
    TEST(what_is_uncovered_blocks_or_is_dropped_and_told);
    TEST(a_refused_event_comes_again_in_its_place);
    TEST(the_last_event_of_a_silent_topic_is_named_until_it_is_covered);
    TEST(what_was_not_published_or_is_of_another_run_is_not_covered);
    TEST(an_event_says_which_trace_it_is_of_whenever_it_is_sent);
    TEST(what_is_no_trace_or_has_no_memory_is_not_taken);
    TEST(topics_take_turns);
    TEST(without_room_nothing_is_lost);
    TEST(a_broker_that_breaks_the_rules_is_closed);
    TEST(what_is_guaranteed_is_told_to_who_asks_for_it);
    TEST(headers_are_written_as_in_the_golden_bytes);
    TEST(commands_are_read_and_written_as_in_the_golden_bytes);
    return checks_failed != 0;
}
