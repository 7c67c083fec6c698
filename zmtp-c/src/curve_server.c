/* CURVE of a server: who has the server's public key says HELLO, and who has shown the secret of his own comes in. */

#include "curve.h"

#if ZMTP_WITH_CURVE && ZMTP_WITH_CURVE_SERVER

#define READY_NUMBER 1u

/** Where the keys' parts stand in INITIATE's box: the client's key, the vouch's nonce, the vouch, properties. */
#define VOUCH_NONCE_AT ZMTP_CURVE_KEY
#define VOUCH_AT (VOUCH_NONCE_AT + 16u)
#define METADATA_AT (VOUCH_AT + ZMTP_CURVE_TAG + (2u * ZMTP_CURVE_KEY))

/** Octets of the buffer, to work on. */
static uint8_t *in_buffer(const zmtp_t *z, const uint8_t *octets)
{
    return &z->buffer[(uint32_t)(octets - z->buffer)];
}

/** The cookie is C' and s' in a box of a key that nobody keeps: what it holds this connection knows itself, so it is compared when it comes back. */
static void bake_cookie(const zmtp_t *z)
{
    const zmtp_crypto_t *crypto = zmtp_crypto_of(z);
    zmtp_curve_t *curve = z->curve;
    uint8_t nonce[ZMTP_CURVE_NONCE];
    uint8_t key[ZMTP_CURVE_KEY];
    crypto->random(key, sizeof key);
    crypto->random(curve->cookie, 16);
    memset(&curve->cookie[16], 0, ZMTP_CURVE_TAG);
    memcpy(&curve->cookie[16u + ZMTP_CURVE_TAG], curve->peer, ZMTP_CURVE_KEY);
    memcpy(&curve->cookie[16u + ZMTP_CURVE_TAG + ZMTP_CURVE_KEY], curve->secret, ZMTP_CURVE_KEY);
    zmtp_curve_drawn(nonce, "COOKIE--", curve->cookie);
    crypto->seal(&curve->cookie[16], 2u * ZMTP_CURVE_KEY, nonce, key);
}

/* version 1.0, 72 zeros, C' 32, number 8, box of 64 zeros (C' to S) 80 */
int32_t zmtp_take_curve_hello(zmtp_t *z, zmtp_slice_t data)
{
    const zmtp_crypto_t *crypto = zmtp_crypto_of(z);
    zmtp_curve_t *curve = z->curve;
    uint8_t nonce[ZMTP_CURVE_NONCE];
    uint8_t *sealed;
    if ((data.size != 194u) || (data.octets[0] != 1u) || (data.octets[1] != 0u) || (memcmp(&data.octets[2], zmtp_curve_zeros, 72) != 0)) {
        return ZMTP_BAD_COMMAND;
    }
    sealed = in_buffer(z, &data.octets[2u + 72u + ZMTP_CURVE_KEY + ZMTP_CURVE_NUMBER]);
    memcpy(curve->peer, &data.octets[2u + 72u], ZMTP_CURVE_KEY);
    curve->heard = zmtp_curve_number_at(&data.octets[2u + 72u + ZMTP_CURVE_KEY]);
    zmtp_curve_counted(nonce, "CurveZMQHELLO---", curve->heard);
    if (!crypto->shared(curve->key, curve->peer, z->settings->curve->secret) || !crypto->open(sealed, 64, nonce, curve->key) ||
        (memcmp(&sealed[ZMTP_CURVE_TAG], zmtp_curve_zeros, 64) != 0)) {
        return ZMTP_FORGED;
    }
    crypto->random(curve->secret, sizeof curve->secret);
    bake_cookie(z);
    crypto->random(curve->nonce, sizeof curve->nonce);
    z->pending |= PENDING_WELCOME;
    z->phase = PHASE_INITIATE;
    return ZMTP_NONE;
}

/* nonce 16, box of S' 32 and cookie 96 (S to C') */
void zmtp_write_curve_welcome(const zmtp_t *z, zmtp_writer_t *writer)
{
    const uint32_t size = ZMTP_CURVE_KEY + ZMTP_CURVE_COOKIE;
    uint8_t nonce[ZMTP_CURVE_NONCE];
    uint8_t key[ZMTP_CURVE_KEY];
    zmtp_crypto_of(z)->public_key(key, z->curve->secret);
    zmtp_write_command(writer, "\7WELCOME", 16u + ZMTP_CURVE_TAG + size);
    zmtp_write(writer, z->curve->nonce, 16);
    zmtp_write(writer, zmtp_curve_zeros, ZMTP_CURVE_TAG);
    zmtp_write(writer, key, sizeof key);
    zmtp_write(writer, z->curve->cookie, ZMTP_CURVE_COOKIE);
    if (!writer->is_short) {
        zmtp_curve_drawn(nonce, "WELCOME-", z->curve->nonce);
        zmtp_crypto_of(z)->seal(&writer->out[writer->size - size - ZMTP_CURVE_TAG], size, nonce, z->curve->key);
    }
}

/** Whether the vouch of what INITIATE's box holds was sealed by who has the client's secret, for this connection and this server. */
static int is_vouched(const zmtp_t *z, uint8_t *text)
{
    const zmtp_crypto_t *crypto = zmtp_crypto_of(z);
    uint8_t *vouch = &text[VOUCH_AT];
    uint8_t nonce[ZMTP_CURVE_NONCE];
    uint8_t key[ZMTP_CURVE_KEY];
    zmtp_curve_drawn(nonce, "VOUCH---", &text[VOUCH_NONCE_AT]);
    return crypto->shared(key, text, z->curve->secret) && crypto->open(vouch, 2u * ZMTP_CURVE_KEY, nonce, key) &&
           (memcmp(&vouch[ZMTP_CURVE_TAG], z->curve->peer, ZMTP_CURVE_KEY) == 0) &&
           (memcmp(&vouch[ZMTP_CURVE_TAG + ZMTP_CURVE_KEY], z->settings->curve->public_key, ZMTP_CURVE_KEY) == 0);
}

/* cookie 96, number 8, box of C 32, vouch's nonce 16, vouch 80 and properties (C' to S') */
int32_t zmtp_take_curve_initiate(zmtp_t *z, zmtp_slice_t data, zmtp_event_t *event)
{
    const zmtp_curve_keys_t *keys = z->settings->curve;
    zmtp_curve_t *curve = z->curve;
    uint8_t *text;
    int32_t found;
    if (data.size < (ZMTP_CURVE_COOKIE + ZMTP_CURVE_NUMBER + ZMTP_CURVE_TAG + METADATA_AT)) {
        return ZMTP_BAD_COMMAND;
    }
    if ((memcmp(data.octets, curve->cookie, ZMTP_CURVE_COOKIE) != 0) || !zmtp_crypto_of(z)->shared(curve->key, curve->peer, curve->secret)) {
        return ZMTP_FORGED;
    }
    data.octets += ZMTP_CURVE_COOKIE;
    data.size -= ZMTP_CURVE_COOKIE;
    found = zmtp_open_curve_counted(z, &data, "CurveZMQINITIATE");
    if (found != (int32_t)ZMTP_NONE) {
        return found;
    }
    text = in_buffer(z, data.octets);
    if (!is_vouched(z, text)) {
        return ZMTP_FORGED;
    }
    if ((keys->admit == NULL) || !keys->admit(keys->context, text)) {
        return ZMTP_DENIED;
    }
    memcpy(curve->peer, text, ZMTP_CURVE_KEY);
    memset(curve->secret, 0, sizeof curve->secret); /* nobody who learns it later opens what was recorded */
    curve->sent = READY_NUMBER;
    data.octets += METADATA_AT;
    data.size -= METADATA_AT;
    found = zmtp_take_metadata(z, data, event);
    if (found == (int32_t)ZMTP_READY) {
        z->pending |= PENDING_READY;
    }
    return found;
}

/* number 8, box of properties (S' to C') */
void zmtp_write_curve_ready(const zmtp_t *z, zmtp_writer_t *writer)
{
    uint32_t size = zmtp_metadata_size(z->settings);
    uint8_t nonce[ZMTP_CURVE_NONCE];
    zmtp_write_command(writer, "\5READY", ZMTP_CURVE_NUMBER + ZMTP_CURVE_TAG + size);
    zmtp_curve_write_number(writer, READY_NUMBER);
    zmtp_write(writer, zmtp_curve_zeros, ZMTP_CURVE_TAG);
    zmtp_write_metadata(writer, z->settings);
    if (!writer->is_short) {
        zmtp_curve_counted(nonce, "CurveZMQREADY---", READY_NUMBER);
        zmtp_crypto_of(z)->seal(&writer->out[writer->size - size - ZMTP_CURVE_TAG], size, nonce, z->curve->key);
    }
}

#endif
