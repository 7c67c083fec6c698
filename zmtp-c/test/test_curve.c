/* CURVE of a client, with libsodium: the golden conversations of vectors/zmtp, each cut at every octet, and every octet of them changed. */

#include "check.h"
#include "json.h"
#include "party.h"
#include "zmtp_sodium.h"

int checks_failed = 0;
const char *check_about = "";

#define OCTETS_MAX 8192u
#define BUFFER 600u

static const char *folder;
static party_t party;
static zmtp_curve_t curve;
static uint8_t drawn[64]; /* what a conversation draws */
static uint32_t drawn_at;

static void draw(uint8_t *out, uint32_t size)
{
    memcpy(out, &drawn[drawn_at], size);
    drawn_at += size;
}

static zmtp_crypto_t crypto;
static uint8_t keys[3][ZMTP_CURVE_KEY]; /* ours, our secret, the server's */
static const zmtp_curve_keys_t KEYS = {&crypto, keys[0], keys[1], keys[2]};

static void begin(const char *row)
{
    zmtp_settings_t settings;
    memset(&settings, 0, sizeof settings);
    crypto = zmtp_sodium;
    crypto.random = draw;
    drawn_at = 0;
    (void)json_octets(json_text(row, "random"), drawn, sizeof drawn);
    (void)json_octets(json_text(row, "secret"), keys[1], ZMTP_CURVE_KEY);
    (void)json_octets(json_text(row, "server"), keys[2], ZMTP_CURVE_KEY);
    zmtp_sodium_public_key(keys[0], keys[1]);
    settings.socket_type = party_type(json_text(row, "socket_type"));
    settings.mechanism = ZMTP_CURVE;
    settings.curve = &KEYS;
    party_open(&party, &settings, BUFFER);
    CHECK(zmtp_use_curve(&party.zmtp, &curve) == 0);
}

/** Carries out one step, with one octet of what is read changed, if `changed` lies in it. */
static void take_step(const char *step, uint32_t cut, uint32_t *changed, char *told, char *written)
{
    static uint8_t octets[OCTETS_MAX];
    const char *event;
    const char *frame = json_first(json_member(step, "sends"));
    uint32_t size = (uint32_t)json_octets(json_text(step, "reads"), octets, sizeof octets);
    if (*changed < size) {
        octets[*changed] ^= 0x40;
    }
    *changed -= size;
    party_receive(&party, octets, size, cut);
    for (event = json_first(json_member(step, "events")); event != NULL; event = json_next(event)) {
        (void)strcat(strcat(told, json_string(event)), "\n");
    }
    party_poll(&party);
    for (; frame != NULL; frame = json_next(frame)) {
        size = (uint32_t)json_octets(json_string(frame), octets, sizeof octets);
        (void)party_put(&party, json_next(frame) != NULL, octets, size);
    }
    (void)strcat(written, json_text(step, "writes"));
}

static int is_ours(const char *row)
{
    return (strcmp(json_text(row, "mechanism"), "CURVE") == 0) && (strcmp(json_text(row, "end"), "client") == 0);
}

/** Holds a conversation; `changed` is the octet that is another one, beyond all: none. */
static void hold(const char *row, uint32_t cut, uint32_t changed, char *told, char *written)
{
    const char *step;
    begin(row);
    told[0] = 0;
    written[0] = 0;
    for (step = json_first(json_member(row, "steps")); step != NULL; step = json_next(step)) {
        take_step(step, cut, &changed, told, written);
    }
}

static char told[OCTETS_MAX];
static char written[OCTETS_MAX];

static void conversations_of_curve_are_held(void)
{
    const char *row;
    int held = 0;
    for (row = json_first(json_file(folder, "conversations.json")); row != NULL; row = json_next(row)) {
        uint32_t cut;
        for (cut = 0; is_ours(row) && (cut <= 300u); cut++) {
            uint8_t expected[OCTETS_MAX];
            check_about = json_text(row, "name");
            hold(row, cut, UINT32_MAX / 2u, told, written);
            CHECK_TEXT(party.told, told);
            CHECK(party.out_size == json_octets(written, expected, sizeof expected));
            CHECK(memcmp(party.out, expected, party.out_size) == 0);
            held++;
        }
    }
    CHECK(held == (2 * 301));
}

static void a_changed_octet_of_a_box_ends_the_connection(void)
{
    const char *row;
    for (row = json_first(json_file(folder, "conversations.json")); row != NULL; row = json_next(row)) {
        uint32_t changed;
        /* Behind the greeting (64) and the name of WELCOME: its nonce and box. */
        for (changed = 64u + 10u; is_ours(row) && (changed < (64u + 170u)); changed++) {
            check_about = json_text(row, "name");
            hold(row, 0, changed, told, written);
            CHECK(strncmp(party.told, "fault -13\n", 10) == 0);
        }
    }
}

static void a_number_counts_once(void)
{
    const char *row = json_first(json_file(folder, "conversations.json"));
    const char *step;
    const char *last = "";
    static uint8_t octets[OCTETS_MAX];
    uint32_t size;
    check_about = "a frame that comes again";
    hold(row, 0, UINT32_MAX / 2u, told, written);
    for (step = json_first(json_member(row, "steps")); step != NULL; step = json_next(step)) {
        last = (json_member(step, "reads") != NULL) ? json_text(step, "reads") : last;
    }
    party_forget(&party);
    size = (uint32_t)json_octets(last, octets, sizeof octets);
    party_receive(&party, octets, size, size);
    CHECK_TEXT(party.told, "fault -13\n");
    party_poll(&party);
    CHECK(party.out_size == 0u);
}

int main(int count, char **arguments)
{
    folder = (count > 1) ? arguments[1] : "../vectors/zmtp";
    if (sodium_init() < 0) {
        return 1;
    }
    TEST(conversations_of_curve_are_held);
    TEST(a_changed_octet_of_a_box_ends_the_connection);
    TEST(a_number_counts_once);
    return checks_failed != 0;
}
