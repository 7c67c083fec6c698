/*
 * CURVE of either end, by libsodium's functions and by those of NaCl's form (nacl.c): the golden conversations of vectors/zmtp, each cut at every octet and with octets
 * changed, and both ends with each other.
 */
#include "check.h"
#include "json.h"
#include "nacl.h"
#include "party.h"
#include "zmtp_sodium.h"

int checks_failed = 0;
const char *check_about = "";

#define OCTETS_MAX 8192u
#define BUFFER 600u
#define CUTS 301u
/** An octet to be changed that no conversation has. */
#define NO_OCTET (UINT32_MAX / 2u)

static const char *conversations;
static party_t party;
static zmtp_curve_t curve;
static uint8_t drawn[256]; /* what a conversation draws */
static uint32_t drawn_at;

static void draw(uint8_t *out, uint32_t size)
{
    memcpy(out, &drawn[drawn_at], size);
    drawn_at += size;
}

#define CRYPTOS 2u
static zmtp_crypto_t cryptos[CRYPTOS];

static uint8_t keys[3][ZMTP_CURVE_KEY]; /* ours, our secret, the server's */
static int is_anybody_admitted = 1;

/** Tells of who asks to come in, as conversations do. */
static int admit(void *context, const uint8_t *client)
{
    party_t *asked = context;
    uint32_t i;
    (void)strcat(asked->told, "authenticate ");
    asked->told_size += 13u;
    for (i = 0; i < ZMTP_CURVE_KEY; i++) {
        (void)sprintf(&asked->told[asked->told_size], "%02x", client[i]);
        asked->told_size += 2u;
    }
    (void)strcat(asked->told, "\n");
    asked->told_size++;
    return is_anybody_admitted;
}

static zmtp_curve_keys_t own = {.public_key = keys[0], .secret = keys[1], .server = keys[2], .admit = admit, .context = &party};

static int is_server(const char *row)
{
    return strcmp(json_text(row, "end"), "server") == 0;
}

static void begin(const char *row, const zmtp_crypto_t *crypto)
{
    zmtp_settings_t settings;
    memset(&settings, 0, sizeof settings);
    own.crypto = crypto;
    drawn_at = 0;
    (void)json_octets(json_text(row, "random"), drawn, sizeof drawn);
    (void)json_octets(json_text(row, "secret"), keys[1], ZMTP_CURVE_KEY);
    zmtp_sodium_public_key(keys[0], keys[1]);
    settings.socket_type = ZMTP_ROUTER;
    settings.is_server = (uint8_t)is_server(row);
    if (!is_server(row)) {
        (void)json_octets(json_text(row, "server"), keys[2], ZMTP_CURVE_KEY);
        settings.socket_type = party_type(json_text(row, "socket_type"));
    }
    settings.mechanism = ZMTP_CURVE;
    settings.curve = &own;
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

static char told[OCTETS_MAX];
static char written[OCTETS_MAX];

/** Holds a conversation, with what is expected of it in `told` and `written`. */
static void hold(const char *row, const zmtp_crypto_t *crypto, uint32_t cut, uint32_t changed)
{
    const char *step;
    begin(row, crypto);
    told[0] = 0;
    written[0] = 0;
    for (step = json_first(json_member(row, "steps")); step != NULL; step = json_next(step)) {
        take_step(step, cut, &changed, told, written);
    }
}

/** The first conversation of CURVE from here on, or null. */
static const char *of_curve(const char *row)
{
    while ((row != NULL) && (strcmp(json_text(row, "mechanism"), "CURVE") != 0)) {
        row = json_next(row);
    }
    return row;
}

static const char *first(void)
{
    return of_curve(json_first(conversations));
}

static void conversations_of_curve_are_held(void)
{
    const char *row;
    uint32_t held = 0;
    for (row = first(); row != NULL; row = of_curve(json_next(row))) {
        uint32_t at;
        for (at = 0; at < (CRYPTOS * CUTS); at++) {
            uint8_t expected[OCTETS_MAX];
            check_about = json_text(row, "name");
            hold(row, &cryptos[at / CUTS], at % CUTS, NO_OCTET);
            CHECK_TEXT(party.told, told);
            CHECK(party.out_size == json_octets(written, expected, sizeof expected));
            CHECK(memcmp(party.out, expected, party.out_size) == 0);
            held++;
        }
    }
    CHECK(held == (3u * CRYPTOS * CUTS));
}

/** Changes each octet from `begin` to `end` of all that is read: the connection ends by this fault. */
static void refuses_changes(const char *row, uint32_t begin_at, uint32_t end_at, const char *fault)
{
    uint32_t changed;
    uint32_t i;
    check_about = json_text(row, "name");
    for (changed = begin_at; changed < end_at; changed++) {
        for (i = 0; i < CRYPTOS; i++) {
            hold(row, &cryptos[i], 0, changed);
            CHECK(strncmp(party.told, fault, strlen(fault)) == 0);
        }
    }
}

static void a_changed_octet_of_a_box_ends_the_connection(void)
{
    const uint32_t hello = 64u + 2u + 6u; /* behind the greeting, and the head and name of HELLO */
    const uint32_t initiate = 64u + 202u + 9u + 9u;
    const char *row;
    for (row = first(); row != NULL; row = of_curve(json_next(row))) {
        if (is_server(row)) {
            refuses_changes(row, hello, hello + 2u + 72u, "fault -5\n");
            refuses_changes(row, hello + 2u + 72u, 64u + 202u, "fault -13\n");
            refuses_changes(row, initiate, initiate + 96u + 8u + 16u + 128u, "fault -13\n");
        } else {
            /* Behind the name of WELCOME: its nonce and box. */
            refuses_changes(row, 64u + 10u, 64u + 170u, "fault -13\n");
        }
    }
}

static void a_number_counts_once(void)
{
    const char *row;
    check_about = "a frame that comes again";
    for (row = first(); row != NULL; row = of_curve(json_next(row))) {
        const char *step;
        const char *last = "";
        static uint8_t octets[OCTETS_MAX];
        uint32_t size;
        hold(row, &cryptos[0], 0, NO_OCTET);
        for (step = json_first(json_member(row, "steps")); step != NULL; step = json_next(step)) {
            last = (json_member(step, "reads") != NULL) ? json_text(step, "reads") : last;
        }
        party_forget(&party);
        size = (uint32_t)json_octets(last, octets, sizeof octets);
        party_receive(&party, octets, size, size);
        CHECK_TEXT(party.told, "fault -13\n");
        party_poll(&party);
        CHECK(party.out_size == 0u); /* whoever sent that again may not be the peer */
    }
}

static void who_is_not_admitted_is_told_in_clear(void)
{
    const char *row = first();
    check_about = "a stranger";
    while (!is_server(row)) {
        row = of_curve(json_next(row));
    }
    is_anybody_admitted = 0;
    hold(row, &cryptos[0], 0, NO_OCTET);
    is_anybody_admitted = 1;
    CHECK(strstr(party.told, "\nfault -8\n") != NULL);
    CHECK(party.out_size == (64u + 170u + 2u + 6u + 1u + (uint32_t)strlen(zmtp_reason(ZMTP_DENIED))));
    CHECK(memcmp(&party.out[64u + 170u + 2u], "\5ERROR", 6) == 0);
    CHECK(!zmtp_is_ready(&party.zmtp));
}

static void both_ends_talk_whoever_seals_and_opens(void)
{
    static party_t client;
    static zmtp_curve_t of_client;
    static uint8_t pair[2][ZMTP_CURVE_KEY];
    static uint8_t body[400];
    zmtp_settings_t settings;
    zmtp_curve_keys_t theirs = {.public_key = pair[0], .secret = pair[1], .server = keys[0]};
    uint32_t i;
    check_about = "both ends";
    for (i = 0; i < (CRYPTOS * CRYPTOS); i++) {
        int round;
        begin(first(), &cryptos[i % CRYPTOS]);
        randombytes_buf(drawn, sizeof drawn);
        drawn_at = 0;
        randombytes_buf(pair[1], ZMTP_CURVE_KEY);
        zmtp_sodium_public_key(pair[0], pair[1]);
        settings = (zmtp_settings_t){.socket_type = ZMTP_PAIR, .mechanism = ZMTP_CURVE, .is_server = 1, .curve = &own};
        party_open(&party, &settings, 512);
        CHECK(zmtp_use_curve(&party.zmtp, &curve) == 0);
        theirs.crypto = &cryptos[i / CRYPTOS];
        settings = (zmtp_settings_t){.socket_type = ZMTP_PAIR, .mechanism = ZMTP_CURVE, .curve = &theirs};
        party_open(&client, &settings, 512);
        CHECK(zmtp_use_curve(&client.zmtp, &of_client) == 0);
        for (round = 0; round < 6; round++) {
            uint32_t size;
            party_poll(&client);
            size = client.out_size;
            client.out_size = 0;
            party_receive(&party, client.out, size, size);
            party_poll(&party);
            size = party.out_size;
            party.out_size = 0;
            party_receive(&client, party.out, size, size);
            if (zmtp_is_ready(&client.zmtp)) {
                (void)party_put(&client, 1, "of the client", 13);
                (void)party_put(&client, 0, body, sizeof body);
                (void)party_put(&party, 0, "of the server", 13);
            }
        }
        CHECK(memcmp(curve.peer, pair[0], ZMTP_CURVE_KEY) == 0);
        CHECK(strstr(party.told, "ready PAIR\nmessage 6f662074686520636c69656e74 00") != NULL);
        CHECK(strstr(client.told, "ready PAIR\nmessage 6f662074686520736572766572\n") != NULL);
        CHECK((strstr(party.told, "fault") == NULL) && (strstr(client.told, "fault") == NULL));
    }
}

static void keys_of_small_order_are_good_for_nothing(void)
{
    static const uint8_t ZERO[ZMTP_CURVE_KEY] = {0};
    static const uint8_t ONE[ZMTP_CURVE_KEY] = {1};
    uint8_t key[ZMTP_CURVE_KEY];
    uint8_t secret[ZMTP_CURVE_KEY];
    uint32_t i;
    check_about = "keys of small order";
    randombytes_buf(secret, sizeof secret);
    for (i = 0; i < CRYPTOS; i++) {
        CHECK(!cryptos[i].shared(key, ZERO, secret));
        CHECK(!cryptos[i].shared(key, ONE, secret));
        cryptos[i].public_key(key, secret);
        CHECK(cryptos[i].shared(key, key, secret));
    }
}

static void a_server_asks_for_more_room(void)
{
    zmtp_settings_t settings = {.socket_type = ZMTP_ROUTER, .mechanism = ZMTP_CURVE, .is_server = 1, .curve = &own};
    check_about = "room";
    party_open(&party, &settings, ZMTP_CURVE_SERVER_BUFFER_MIN - 1u);
    CHECK(zmtp_use_curve(&party.zmtp, &curve) == (int32_t)ZMTP_ARGUMENT);
    settings.is_server = 0;
    party_open(&party, &settings, ZMTP_CURVE_BUFFER_MIN - 1u);
    CHECK(zmtp_use_curve(&party.zmtp, &curve) == (int32_t)ZMTP_ARGUMENT);
}

int main(int count, char **arguments)
{
    conversations = json_file((count > 1) ? arguments[1] : "../vectors/zmtp", "conversations.json");
    cryptos[0] = zmtp_sodium;
    cryptos[0].random = draw;
    cryptos[1] = nacl(draw);
    if (sodium_init() < 0) {
        return 1;
    }
    TEST(conversations_of_curve_are_held);
    TEST(a_changed_octet_of_a_box_ends_the_connection);
    TEST(a_number_counts_once);
    TEST(who_is_not_admitted_is_told_in_clear);
    TEST(both_ends_talk_whoever_seals_and_opens);
    TEST(keys_of_small_order_are_good_for_nothing);
    TEST(a_server_asks_for_more_room);
    return checks_failed != 0;
}
