/**
 * A target for libFuzzer and for fuzz/replay.c, as fuzz_zmtp.c for CURVE: whatever a peer sends at any stage of a connection, and however it is cut, the same events come of it, and
 * no memory but ours is touched.
 *
 * Boxes are sealed and opened by nothing, so that the fuzzer reaches what is in them: a box opens unless it begins with FF. The first octet says by its lowest bit whether we are the
 * server, by the next three at which stage the peer begins to say what follows, up to where it is honest, and by bit 4 whether we are a
 * REP; the second where that is cut.
 */
#include <stdlib.h>
#include <string.h>

#include "../test/party.h"
#include "zmtp_curve.h"

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t size);

#define BUFFER 400u

typedef struct {
    party_t party;
    zmtp_curve_t curve;
} end_t;

static end_t whole;
static end_t cut;
static end_t honest;

static void draw(uint8_t *out, uint32_t size)
{
    memset(out, 0x5a, size);
}

static void public_key(uint8_t *key, const uint8_t *secret)
{
    memcpy(key, secret, ZMTP_CURVE_KEY);
}

static int shared(uint8_t *key, const uint8_t *public, const uint8_t *secret)
{
    (void)secret;
    memset(key, 0, ZMTP_CURVE_KEY);
    return public[0] != 0u;
}

static void seal(uint8_t *sealed, uint32_t size, const uint8_t *nonce, const uint8_t *key)
{
    (void)size;
    (void)nonce;
    (void)key;
    memset(sealed, 0, ZMTP_CURVE_TAG);
}

static int open(uint8_t *sealed, uint32_t size, const uint8_t *nonce, const uint8_t *key)
{
    (void)size;
    (void)nonce;
    (void)key;
    return sealed[0] != 0xffu;
}

static int admit(void *context, const uint8_t *client)
{
    (void)context;
    return client[1] != 0u;
}

static void begin(end_t *end, zmtp_type_t type, int is_server)
{
    static const zmtp_crypto_t CRYPTO = {draw, public_key, shared, seal, open};
    static const uint8_t KEY[ZMTP_CURVE_KEY] = {1, 1};
    static const zmtp_curve_keys_t KEYS = {&CRYPTO, KEY, KEY, KEY, admit, NULL};
    zmtp_settings_t settings;
    memset(&settings, 0, sizeof settings);
    settings.socket_type = (uint8_t)type;
    settings.mechanism = ZMTP_CURVE;
    settings.is_server = (uint8_t)is_server;
    settings.curve = &KEYS;
    party_open(&end->party, &settings, BUFFER);
    if (zmtp_use_curve(&end->party.zmtp, &end->curve) != 0) {
        abort();
    }
}

/** Gives one end what the other one has to say. */
static void pass(party_t *from, party_t *to)
{
    uint32_t size;
    party_poll(from);
    size = from->out_size;
    party_receive(to, from->out, size, size);
    from->out_size = 0;
}

/** Begins an end, and brings it to a stage. */
static void bring(end_t *end, uint8_t how)
{
    int is_server = how & 1;
    int is_rep = (how & 16) != 0;
    uint32_t stage = ((uint32_t)how >> 1) & 7u;
    begin(end, is_rep ? ZMTP_REP : (is_server ? ZMTP_ROUTER : ZMTP_DEALER), is_server);
    begin(&honest, (is_rep || is_server) ? ZMTP_DEALER : ZMTP_ROUTER, !is_server);
    for (; stage > 0u; stage--) {
        pass(&honest.party, &end->party);
        pass(&end->party, &honest.party);
    }
    party_poll(&end->party);
    party_forget(&end->party);
}

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t size)
{
    uint32_t count = (uint32_t)size - 2u;
    if ((size < 2u) || (size > 8192u)) {
        return 0;
    }
    bring(&whole, octets[0]);
    bring(&cut, octets[0]);
    party_receive(&whole.party, &octets[2], count, count);
    party_receive(&cut.party, &octets[2], count, octets[1]);
    party_poll(&whole.party);
    party_poll(&cut.party);
    (void)party_put(&whole.party, 0, "pong", 4);
    (void)party_put(&cut.party, 0, "pong", 4);
    if ((strcmp(whole.party.told, cut.party.told) != 0) || (whole.party.out_size != cut.party.out_size) ||
        (memcmp(whole.party.out, cut.party.out, cut.party.out_size) != 0)) {
        abort();
    }
    return 0;
}
