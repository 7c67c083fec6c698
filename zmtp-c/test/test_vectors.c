/* The golden bytes of vectors/zmtp, in both directions, each cut at every octet. Of CURVE, which is not ours here, the greeting is refused. */

#include <stdlib.h>

#include "../src/internal.h"
#include "check.h"
#include "json.h"
#include "party.h"

int checks_failed = 0;
const char *check_about = "";

static const char *folder;
static party_t party;

/** Room for a message of 256 frames. */
#define OCTETS_MAX 8192u

static void expect_out(const char *hexadecimal)
{
    static uint8_t expected[OCTETS_MAX];
    size_t size = json_octets(hexadecimal, expected, sizeof expected);
    CHECK(party.out_size == size);
    CHECK(memcmp(party.out, expected, size) == 0);
}

static zmtp_settings_t settings_of(const char *row)
{
    zmtp_settings_t settings;
    memset(&settings, 0, sizeof settings);
    settings.socket_type = ZMTP_DEALER;
    if (json_member(row, "socket_type") != NULL) {
        settings.socket_type = party_type(json_text(row, "socket_type"));
    }
    settings.mechanism = (strcmp(json_text(row, "mechanism"), "PLAIN") == 0) ? ZMTP_PLAIN : ZMTP_NULL;
    return settings;
}

static int is_curve(const char *row)
{
    return strcmp(json_text(row, "mechanism"), "CURVE") == 0;
}

static void greetings_are_written_and_read(void)
{
    const char *row;
    for (row = json_first(json_file(folder, "greetings.json")); row != NULL; row = json_next(row)) {
        uint8_t octets[64];
        zmtp_settings_t settings = settings_of(row);
        uint32_t cut;
        check_about = json_text(row, "name");
        settings.is_server = (uint8_t)(strncmp(json_member(row, "as_server"), "true", 4) == 0);
        CHECK(json_octets(json_text(row, "bytes"), octets, sizeof octets) == 64u);
        party_open(&party, &settings, 64);
        party_poll(&party);
        CHECK(is_curve(row) || (memcmp(party.out, octets, 64) == 0));
        for (cut = 0; cut <= 64u; cut++) {
            party_open(&party, &settings, 64);
            party_receive(&party, octets, 64, cut);
            CHECK(party.last == (is_curve(row) ? (int32_t)ZMTP_BAD_MECHANISM : (int32_t)ZMTP_NONE));
        }
    }
}

/** A type of ours that fits one of theirs. */
static uint8_t counterpart(uint8_t theirs)
{
    uint8_t ours = 0;
    while (!zmtp_types_fit(ours, theirs)) {
        ours++;
    }
    return ours;
}

static void ready_is_written(const char *row)
{
    zmtp_settings_t settings = settings_of(row);
    const char *property = json_first(json_member(row, "properties"));
    uint8_t identity[16];
    if (property != NULL) {
        settings.identity.size = (uint32_t)json_octets(json_string(json_next(json_first(property))), identity, sizeof identity);
        settings.identity.octets = identity;
    }
    party_open(&party, &settings, 64);
    party_poll(&party);
    memmove(party.out, &party.out[64], party.out_size - 64u);
    party.out_size -= 64u;
    expect_out(json_text(row, "bytes"));
}

static void ready_is_read(const char *row)
{
    uint8_t octets[128];
    uint8_t peer[128];
    char expected[32];
    uint32_t size = (uint32_t)json_octets(json_text(row, "bytes"), octets, sizeof octets);
    uint8_t theirs = party_type(json_text(row, "socket_type"));
    zmtp_settings_t settings;
    uint32_t cut;
    memset(&settings, 0, sizeof settings);
    settings.socket_type = counterpart(theirs);
    (void)party_peer(theirs, 1, peer);
    (void)snprintf(expected, sizeof expected, "ready %s\n", party_type_name(theirs));
    for (cut = 0; cut <= size; cut++) {
        party_open(&party, &settings, 64);
        party_receive(&party, peer, 64, 64);
        party_receive(&party, octets, size, cut);
        CHECK_TEXT(party.told, expected);
    }
}

static void ready_of_every_type_is_written_and_read(void)
{
    const char *row;
    for (row = json_first(json_file(folder, "ready.json")); row != NULL; row = json_next(row)) {
        check_about = json_text(row, "name");
        if (party_type(json_text(row, "socket_type")) <= (uint8_t)ZMTP_PAIR) {
            ready_is_written(row);
        }
        ready_is_read(row);
    }
}

/** The frames of a message, as party_t.told has them, and as zmtp_put writes them. */
static void message_of(const char *frames, uint8_t type, char *told)
{
    const char *frame;
    static uint8_t octets[OCTETS_MAX];
    party_ready(&party, type, type, 1, 64);
    (void)strcpy(told, "message ");
    for (frame = json_first(frames); frame != NULL; frame = json_next(frame)) {
        uint32_t size = (uint32_t)json_octets(json_string(frame), octets, sizeof octets);
        int more = json_next(frame) != NULL;
        (void)strcat(told, json_string(frame));
        (void)strcat(told, more ? " " : "\n");
        CHECK(party_put(&party, more, octets, size) > 0);
    }
}

/** What was told without the marks between a frame's fragments. */
static void join_fragments(char *told)
{
    char *to = told;
    for (; *told != 0; told++) {
        if (*told != '+') {
            *to++ = *told;
        }
    }
    *to = 0;
}

static void messages_are_written_and_read(void)
{
    const char *row;
    static char expected[OCTETS_MAX];
    static char fragments[OCTETS_MAX];
    static uint8_t octets[OCTETS_MAX];
    for (row = json_first(json_file(folder, "messages.json")); row != NULL; row = json_next(row)) {
        uint32_t size = (uint32_t)json_octets(json_text(row, "bytes"), octets, sizeof octets);
        uint32_t cut;
        check_about = json_text(row, "name");
        message_of(json_member(row, "frames"), ZMTP_PAIR, expected);
        expect_out(json_text(row, "bytes"));
        for (cut = 0; cut <= size; cut++) {
            party_ready(&party, ZMTP_PAIR, ZMTP_PAIR, 1, 1024);
            party_receive(&party, octets, size, cut);
            CHECK_TEXT(party.told, expected);
            /* In a buffer that is too short for it the same comes in the same fragments, however it is cut. */
            party_ready(&party, ZMTP_PAIR, ZMTP_PAIR, 1, 64);
            party_receive(&party, octets, size, cut);
            if (cut == 0u) {
                (void)strcpy(fragments, party.told);
            }
            CHECK_TEXT(party.told, fragments);
            join_fragments(party.told);
            CHECK_TEXT(party.told, expected);
        }
    }
}

/** Writes the command that a row means, if it is one of those that we send. */
static void command_is_written(const char *row, uint8_t minor)
{
    char verb[16] = "";
    char argument[64] = "";
    uint8_t octets[32];
    uint32_t size;
    int32_t written = 0;
    (void)sscanf(json_text(row, "event"), "%15s %63s", verb, argument);
    if ((strcmp(verb, "subscribe") == 0) || (strcmp(verb, "cancel") == 0)) {
        size = (uint32_t)json_octets(argument, octets, sizeof octets);
        party_ready(&party, ZMTP_SUB, ZMTP_PUB, minor, 64);
        written = (verb[0] == 's') ? zmtp_subscribe(&party.zmtp, octets, size, party.out, PARTY_OUT_MAX)
                                   : zmtp_cancel(&party.zmtp, octets, size, party.out, PARTY_OUT_MAX);
    } else if (strcmp(verb, "ping") == 0) {
        /* The context is what the answer brings back behind its name. */
        const char *answer = json_text(row, "answer");
        size = (strlen(answer) > 14u) ? (uint32_t)json_octets(&answer[14], octets, sizeof octets) : 0u;
        party_ready(&party, ZMTP_DEALER, ZMTP_ROUTER, minor, 64);
        written = zmtp_ping(&party.zmtp, (uint16_t)(10 * atoi(argument)), octets, size, party.out, PARTY_OUT_MAX);
    } else {
        return;
    }
    CHECK(written > 0);
    party.out_size = (uint32_t)written;
    expect_out(json_text(row, "bytes"));
}

static void commands_are_written_and_read(void)
{
    const char *row;
    uint8_t octets[64];
    char expected[128];
    for (row = json_first(json_file(folder, "commands.json")); row != NULL; row = json_next(row)) {
        uint32_t size = (uint32_t)json_octets(json_text(row, "bytes"), octets, sizeof octets);
        uint8_t minor = (uint8_t)json_number(row, "minor", 1);
        int is_error = strncmp(json_text(row, "event"), "error", 5) == 0;
        uint32_t cut;
        check_about = json_text(row, "name");
        command_is_written(row, minor);
        (void)snprintf(expected, sizeof expected, "%s\n", is_error ? "fault -10 400" : json_text(row, "event"));
        for (cut = 0; cut <= size; cut++) {
            party_ready(&party, ZMTP_PUB, ZMTP_SUB, minor, 64);
            party_receive(&party, octets, size, cut);
            CHECK_TEXT(party.told, expected);
            party_poll(&party);
            if (json_member(row, "answer") != NULL) {
                expect_out(json_text(row, "answer"));
            }
        }
    }
}

static void begin(const char *row)
{
    zmtp_settings_t settings = settings_of(row);
    const char *property = json_first(json_member(row, "properties"));
    static const uint8_t NOTHING[1] = {0};
    settings.is_server = (uint8_t)(strcmp(json_text(row, "end"), "server") == 0);
    if (settings.is_server) {
        uint8_t theirs = party_type(json_string(json_first(json_member(row, "takes"))));
        settings.socket_type = (theirs == (uint8_t)ZMTP_DEALER) ? (uint8_t)ZMTP_ROUTER : counterpart(theirs);
    }
    if (property != NULL) {
        settings.identity.octets = NOTHING; /* the only property there is: an empty identity */
    }
    settings.username.octets = (const uint8_t *)json_text(row, "username");
    settings.username.size = (uint32_t)strlen((const char *)settings.username.octets);
    settings.password.octets = (const uint8_t *)json_text(row, "password");
    settings.password.size = (uint32_t)strlen((const char *)settings.password.octets);
    party_open(&party, &settings, 128);
    party.shows_delimiter = (settings.socket_type == (uint8_t)ZMTP_REQ) || (settings.socket_type == (uint8_t)ZMTP_REP);
}

/** Carries out one step; what is expected to have been told and written so far is appended. */
static void take_step(const char *step, uint32_t cut, char *told, char *written)
{
    static uint8_t octets[OCTETS_MAX];
    const char *event;
    const char *frame = json_first(json_member(step, "sends"));
    uint32_t size = (uint32_t)json_octets(json_text(step, "reads"), octets, sizeof octets);
    party_receive(&party, octets, size, cut);
    for (event = json_first(json_member(step, "events")); event != NULL; event = json_next(event)) {
        (void)strcat(strcat(told, json_string(event)), "\n");
    }
    party_poll(&party);
    if ((frame != NULL) && party.shows_delimiter) {
        frame = json_next(frame);
    }
    for (; frame != NULL; frame = json_next(frame)) {
        size = (uint32_t)json_octets(json_string(frame), octets, sizeof octets);
        CHECK(party_put(&party, json_next(frame) != NULL, octets, size) > 0);
    }
    (void)strcat(written, json_text(step, "writes"));
}

static void conversations_are_held(void)
{
    const char *row;
    static char told[OCTETS_MAX];
    static char written[OCTETS_MAX];
    for (row = json_first(json_file(folder, "conversations.json")); row != NULL; row = json_next(row)) {
        uint32_t cut;
        if (is_curve(row)) {
            continue;
        }
        check_about = json_text(row, "name");
        for (cut = 0; cut <= 200u; cut++) {
            const char *step;
            begin(row);
            told[0] = 0;
            written[0] = 0;
            for (step = json_first(json_member(row, "steps")); step != NULL; step = json_next(step)) {
                take_step(step, cut, told, written);
            }
            CHECK_TEXT(party.told, told);
            expect_out(written);
        }
    }
}

int main(int count, char **arguments)
{
    folder = (count > 1) ? arguments[1] : "../vectors/zmtp";
    TEST(greetings_are_written_and_read);
    TEST(ready_of_every_type_is_written_and_read);
    TEST(messages_are_written_and_read);
    TEST(commands_are_written_and_read);
    TEST(conversations_are_held);
    return checks_failed != 0;
}
