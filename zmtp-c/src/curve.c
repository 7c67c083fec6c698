/* CURVE: a client's HELLO, WELCOME, INITIATE and READY, then a box around each frame at either end. */

#include "zmtp_curve.h"

#include "curve.h"

#if ZMTP_WITH_CURVE

#define HELLO_NUMBER 1u
#define INITIATE_NUMBER 2u
#define MESSAGE "\7MESSAGE"

/** Octets of a box around nothing, and of what is in front of its payload: the inner flags. */
#define MESSAGE_OVERHEAD (8u + ZMTP_CURVE_NUMBER + ZMTP_CURVE_TAG + 1u)

/** Whether this end is a server: never, if that is not built. */
#define IS_SERVER(z) (ZMTP_WITH_CURVE_SERVER && ((z)->settings->is_server != 0u))

const uint8_t zmtp_curve_zeros[72] = {0};

const zmtp_crypto_t *zmtp_crypto_of(const zmtp_t *z)
{
    return z->settings->curve->crypto;
}

void zmtp_curve_counted(uint8_t *nonce, const char *what, uint64_t number)
{
    uint32_t i;
    memcpy(nonce, what, 16);
    for (i = 0; i < ZMTP_CURVE_NUMBER; i++) {
        nonce[16u + i] = (uint8_t)(number >> (56u - (8u * i)));
    }
}

void zmtp_curve_drawn(uint8_t *nonce, const char *what, const uint8_t *octets)
{
    memcpy(nonce, what, 8);
    memcpy(&nonce[8], octets, 16);
}

uint64_t zmtp_curve_number_at(const uint8_t *octets)
{
    return ((uint64_t)zmtp_big_endian(octets) << 32) | zmtp_big_endian(&octets[4]);
}

void zmtp_curve_write_number(zmtp_writer_t *writer, uint64_t number)
{
    zmtp_write_size(writer, (uint32_t)(number >> 32));
    zmtp_write_size(writer, (uint32_t)number);
}

int32_t zmtp_use_curve(zmtp_t *z, zmtp_curve_t *curve)
{
    uint32_t min = IS_SERVER(z) ? ZMTP_CURVE_SERVER_BUFFER_MIN : ZMTP_CURVE_BUFFER_MIN;
    if (!zmtp_is_curve(z->settings) || (z->buffer_size < min)) {
        return ZMTP_ARGUMENT;
    }
    memset(curve, 0, sizeof *curve);
    z->curve = curve;
    if (!IS_SERVER(z)) {
        /* A server draws when it is told HELLO. */
        zmtp_crypto_of(z)->random(curve->secret, sizeof curve->secret);
        zmtp_crypto_of(z)->random(curve->nonce, sizeof curve->nonce);
        curve->sent = INITIATE_NUMBER;
    }
    return 0;
}

/* name, version 1.0, 72 zeros, C' 32, number 8, box of 64 zeros (C' to S) 80 */
void zmtp_write_curve_hello(const zmtp_t *z, zmtp_writer_t *writer)
{
    uint8_t nonce[ZMTP_CURVE_NONCE];
    uint8_t key[ZMTP_CURVE_KEY];
    zmtp_crypto_of(z)->public_key(key, z->curve->secret);
    zmtp_write_command(writer, "\5HELLO", 194);
    zmtp_write_octet(writer, 1);
    zmtp_write_octet(writer, 0);
    zmtp_write(writer, zmtp_curve_zeros, 72);
    zmtp_write(writer, key, sizeof key);
    zmtp_curve_write_number(writer, HELLO_NUMBER);
    zmtp_write(writer, zmtp_curve_zeros, 40);
    zmtp_write(writer, zmtp_curve_zeros, 40);
    if (!writer->is_short) {
        zmtp_curve_counted(nonce, "CurveZMQHELLO---", HELLO_NUMBER);
        (void)zmtp_crypto_of(z)->shared(key, z->settings->curve->server, z->curve->secret); /* a wrong key of ours meets no server */
        zmtp_crypto_of(z)->seal(&writer->out[writer->size - 80u], 64, nonce, key);
    }
}

/* nonce 16, box of S' 32 and cookie 96 (S to C') */
int32_t zmtp_take_curve_welcome(zmtp_t *z, zmtp_slice_t data)
{
    uint8_t nonce[ZMTP_CURVE_NONCE];
    zmtp_curve_t *curve = z->curve;
    uint8_t *sealed = &z->buffer[zmtp_lead(z) + 8u + 16u];
    if (data.size != (16u + ZMTP_CURVE_TAG + ZMTP_CURVE_KEY + ZMTP_CURVE_COOKIE)) {
        return ZMTP_BAD_COMMAND;
    }
    zmtp_curve_drawn(nonce, "WELCOME-", data.octets);
    if (!zmtp_crypto_of(z)->shared(curve->key, z->settings->curve->server, curve->secret) ||
        !zmtp_crypto_of(z)->open(sealed, ZMTP_CURVE_KEY + ZMTP_CURVE_COOKIE, nonce, curve->key)) {
        return ZMTP_FORGED;
    }
    memcpy(curve->peer, &sealed[ZMTP_CURVE_TAG], ZMTP_CURVE_KEY);
    memcpy(curve->cookie, &sealed[ZMTP_CURVE_TAG + ZMTP_CURVE_KEY], ZMTP_CURVE_COOKIE);
    if (!zmtp_crypto_of(z)->shared(curve->key, curve->peer, curve->secret)) {
        return ZMTP_FORGED;
    }
    z->pending |= PENDING_INITIATE;
    z->phase = PHASE_READY;
    return ZMTP_NONE;
}

/* cookie 96, number 8, box of C 32, vouch's nonce 16, vouch 80 and properties (C' to S'); the vouch is a box of C' and S (C to S') */
void zmtp_write_curve_initiate(const zmtp_t *z, zmtp_writer_t *writer)
{
    const zmtp_curve_keys_t *keys = z->settings->curve;
    uint32_t size = ZMTP_CURVE_KEY + 16u + 80u + zmtp_metadata_size(z->settings);
    uint8_t nonce[ZMTP_CURVE_NONCE];
    uint8_t key[ZMTP_CURVE_KEY];
    uint32_t begin;
    zmtp_write_command(writer, "\10INITIATE", ZMTP_CURVE_COOKIE + ZMTP_CURVE_NUMBER + ZMTP_CURVE_TAG + size);
    zmtp_write(writer, z->curve->cookie, ZMTP_CURVE_COOKIE);
    zmtp_curve_write_number(writer, INITIATE_NUMBER);
    begin = writer->size;
    zmtp_write(writer, zmtp_curve_zeros, ZMTP_CURVE_TAG);
    zmtp_write(writer, keys->public_key, ZMTP_CURVE_KEY);
    zmtp_write(writer, z->curve->nonce, 16);
    zmtp_write(writer, zmtp_curve_zeros, ZMTP_CURVE_TAG);
    zmtp_crypto_of(z)->public_key(key, z->curve->secret);
    zmtp_write(writer, key, sizeof key);
    zmtp_write(writer, keys->server, ZMTP_CURVE_KEY);
    zmtp_write_metadata(writer, z->settings);
    if (!writer->is_short) {
        zmtp_curve_drawn(nonce, "VOUCH---", z->curve->nonce);
        (void)zmtp_crypto_of(z)->shared(key, z->curve->peer, keys->secret);
        zmtp_crypto_of(z)->seal(&writer->out[begin + ZMTP_CURVE_TAG + ZMTP_CURVE_KEY + 16u], 64, nonce, key);
        zmtp_curve_counted(nonce, "CurveZMQINITIATE", INITIATE_NUMBER);
        zmtp_crypto_of(z)->seal(&writer->out[begin], size, nonce, z->curve->key);
    }
}

int32_t zmtp_open_curve_counted(zmtp_t *z, zmtp_slice_t *data, const char *what)
{
    uint8_t nonce[ZMTP_CURVE_NONCE];
    uint8_t *sealed = &z->buffer[(uint32_t)(data->octets - z->buffer) + ZMTP_CURVE_NUMBER];
    uint64_t number;
    if (data->size < (ZMTP_CURVE_NUMBER + ZMTP_CURVE_TAG)) {
        return ZMTP_BAD_COMMAND;
    }
    number = zmtp_curve_number_at(data->octets);
    zmtp_curve_counted(nonce, what, number);
    data->size -= ZMTP_CURVE_NUMBER + ZMTP_CURVE_TAG;
    /* Whatever came before, again or later than it should, has a number that was used. */
    if ((number <= z->curve->heard) || !zmtp_crypto_of(z)->open(sealed, data->size, nonce, z->curve->key)) {
        return ZMTP_FORGED;
    }
    z->curve->heard = number;
    data->octets = &sealed[ZMTP_CURVE_TAG];
    return ZMTP_NONE;
}

int32_t zmtp_take_curve_ready(zmtp_t *z, zmtp_slice_t data, zmtp_event_t *event)
{
    int32_t found = zmtp_open_curve_counted(z, &data, "CurveZMQREADY---");
    return (found == (int32_t)ZMTP_NONE) ? zmtp_take_metadata(z, data, event) : found;
}

int32_t zmtp_open_curve_message(zmtp_t *z, zmtp_slice_t body, zmtp_slice_t *payload)
{
    int32_t found = ZMTP_BAD_COMMAND;
    uint8_t flags;
    if (zmtp_is_command(body, MESSAGE, payload)) {
        found = zmtp_open_curve_counted(z, payload, IS_SERVER(z) ? "CurveZMQMESSAGEC" : "CurveZMQMESSAGES");
    }
    if ((found != (int32_t)ZMTP_NONE) || (payload->size == 0u)) {
        return (found != (int32_t)ZMTP_NONE) ? found : (int32_t)ZMTP_BAD_COMMAND;
    }
    flags = payload->octets[0];
    payload->octets++;
    payload->size--;
    /* In a box, bit 0 says that more frames follow, and bit 1 that it is a command. */
    z->flags = (uint8_t)(((flags & 1u) != 0u) ? FLAG_MORE : (((flags & 2u) != 0u) ? FLAG_COMMAND : 0));
    return (flags > 2u) ? (int32_t)ZMTP_BAD_FRAME : (int32_t)ZMTP_NONE;
}

uint32_t zmtp_begin_curve_message(const zmtp_t *z, zmtp_writer_t *writer, uint8_t flags, uint32_t size)
{
    uint32_t begin;
    zmtp_write_head(writer, 0, MESSAGE_OVERHEAD + size); /* no command by its head, as libzmq has it */
    zmtp_write(writer, MESSAGE, 8);
    zmtp_curve_write_number(writer, z->curve->sent + 1u);
    begin = writer->size;
    zmtp_write(writer, zmtp_curve_zeros, ZMTP_CURVE_TAG);
    zmtp_write_octet(writer, (uint8_t)((flags == (uint8_t)FLAG_COMMAND) ? 2u : flags));
    return begin;
}

void zmtp_end_curve_message(const zmtp_t *z, zmtp_writer_t *writer, uint32_t begin)
{
    uint8_t nonce[ZMTP_CURVE_NONCE];
    if (!writer->is_short) {
        z->curve->sent++;
        zmtp_curve_counted(nonce, IS_SERVER(z) ? "CurveZMQMESSAGES" : "CurveZMQMESSAGEC", z->curve->sent);
        zmtp_crypto_of(z)->seal(&writer->out[begin], writer->size - begin - ZMTP_CURVE_TAG, nonce, z->curve->key);
    }
}

#endif
