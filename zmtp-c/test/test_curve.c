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

static party_t client;
static uint8_t pair[2][ZMTP_CURVE_KEY]; /* the client's */

/** Opens both ends, of these types: `party` is the server. */
static void open_both(uint8_t of_server, const zmtp_crypto_t *server_crypto, uint8_t of_client, const zmtp_crypto_t *client_crypto)
{
    static zmtp_curve_t clients;
    static zmtp_curve_keys_t theirs = {.public_key = pair[0], .secret = pair[1], .server = keys[0]};
    zmtp_settings_t settings = {.socket_type = of_server, .mechanism = ZMTP_CURVE, .is_server = 1, .curve = &own};
    begin(first(), server_crypto);
    randombytes_buf(drawn, sizeof drawn);
    drawn_at = 0;
    randombytes_buf(pair[1], ZMTP_CURVE_KEY);
    zmtp_sodium_public_key(pair[0], pair[1]);
    party_open(&party, &settings, 1024);
    CHECK(zmtp_use_curve(&party.zmtp, &curve) == 0);
    theirs.crypto = client_crypto;
    settings = (zmtp_settings_t){.socket_type = of_client, .mechanism = ZMTP_CURVE, .curve = &theirs};
    party_open(&client, &settings, 1024);
    CHECK(zmtp_use_curve(&client.zmtp, &clients) == 0);
}

/** Carries what either end has to say to the other one, the client's octets cut as party_receive says. */
static void exchange(uint32_t cut)
{
    uint32_t size;
    party_poll(&client);
    size = client.out_size;
    client.out_size = 0;
    party_receive(&party, client.out, size, (cut < size) ? cut : size);
    party_poll(&party);
    size = party.out_size;
    party.out_size = 0;
    party_receive(&client, party.out, size, size);
}

static void a_reply_goes_out_behind_the_envelope_of_its_request(void)
{
    static const struct {
        uint8_t of_client;
        uint32_t address; /* octets of it in front of the delimiter; 0: none */
    } CASES[] = {{ZMTP_REQ, 0}, {ZMTP_DEALER, 0}, {ZMTP_DEALER, 2}, {ZMTP_DEALER, 300}};
    static const char ADDRESS[300] = {0};
    static char expected[1024];
    uint32_t i;
    uint32_t cut;
    check_about = "REP";
    for (i = 0; i < (sizeof CASES / sizeof CASES[0]); i++) {
        uint32_t address = CASES[i].address;
        int is_dealer = CASES[i].of_client == (uint8_t)ZMTP_DEALER;
        memset(expected, '0', sizeof expected);
        (void)sprintf(&expected[2u * address], "%s%s706f6e67\n", (address > 0u) ? " " : "", is_dealer ? " " : "");
        for (cut = 1; cut < 450u; cut++) {
            const char *reply;
            open_both(ZMTP_REP, &cryptos[0], CASES[i].of_client, &cryptos[1]);
            while (!zmtp_is_ready(&client.zmtp) && (client.last >= 0)) {
                exchange(OCTETS_MAX);
            }
            CHECK((address == 0u) || (party_put(&client, 1, ADDRESS, address) > 0));
            CHECK(!is_dealer || (party_put(&client, 1, "", 0) > 0));
            CHECK(party_put(&client, 0, "ping", 4) > 0);
            exchange(cut);
            CHECK(strstr(party.told, "message 70696e67\n") != NULL);
            CHECK(party_put(&party, 0, "pong", 4) > 0);
            CHECK(party_put(&party, 0, "pong", 4) == (int32_t)ZMTP_WRONG_TURN);
            exchange(cut);
            reply = strstr(client.told, "message ");
            CHECK_TEXT((reply != NULL) ? &reply[8] : client.told, expected);
        }
    }
}

static void both_ends_talk_whoever_seals_and_opens(void)
{
    static uint8_t body[400];
    uint32_t i;
    check_about = "both ends";
    for (i = 0; i < (CRYPTOS * CRYPTOS); i++) {
        int round;
        open_both(ZMTP_PAIR, &cryptos[i % CRYPTOS], ZMTP_PAIR, &cryptos[i / CRYPTOS]);
        for (round = 0; round < 6; round++) {
            exchange(OCTETS_MAX);
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
    TEST(a_reply_goes_out_behind_the_envelope_of_its_request);
    TEST(keys_of_small_order_are_good_for_nothing);
    TEST(a_server_asks_for_more_room);
    return checks_failed != 0;
}
