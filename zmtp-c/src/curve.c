/* CURVE of a client: HELLO, WELCOME, INITIATE, READY, then a box around each frame. */

#include "zmtp_curve.h"

#include "internal.h"

#if ZMTP_WITH_CURVE

#define HELLO_NUMBER 1u
#define INITIATE_NUMBER 2u
#define NUMBER 8u
#define MESSAGE "\7MESSAGE"

/** Octets of a box around nothing, and of what is in front of its payload: the inner flags. */
#define MESSAGE_OVERHEAD (8u + NUMBER + ZMTP_CURVE_TAG + 1u)

static const uint8_t ZEROS[72] = {0};

static const zmtp_crypto_t *crypto_of(const zmtp_t *z)
{
    return z->settings->curve->crypto;
}

/** A nonce that counts: 16 octets that say what for, and a number. */
static void counted(uint8_t *nonce, const char *what, uint64_t number)
{
    uint32_t i;
    memcpy(nonce, what, 16);
    for (i = 0; i < NUMBER; i++) {
        nonce[16u + i] = (uint8_t)(number >> (56u - (8u * i)));
    }
}

/** One that was drawn: 8 octets that say what for, and 16 that nobody had before. */
static void drawn(uint8_t *nonce, const char *what, const uint8_t *octets)
{
    memcpy(nonce, what, 8);
    memcpy(&nonce[8], octets, 16);
}

static uint64_t number_at(const uint8_t *octets)
{
    return ((uint64_t)zmtp_big_endian(octets) << 32) | zmtp_big_endian(&octets[4]);
}

static void write_number(zmtp_writer_t *writer, uint64_t number)
{
    zmtp_write_size(writer, (uint32_t)(number >> 32));
    zmtp_write_size(writer, (uint32_t)number);
}

int32_t zmtp_use_curve(zmtp_t *z, zmtp_curve_t *curve)
{
    if (!zmtp_is_curve(z->settings) || (z->buffer_size < ZMTP_CURVE_BUFFER_MIN)) {
        return ZMTP_ARGUMENT;
    }
    memset(curve, 0, sizeof *curve);
    crypto_of(z)->random(curve->secret, sizeof curve->secret);
    crypto_of(z)->random(curve->vouch_nonce, sizeof curve->vouch_nonce);
    curve->sent = INITIATE_NUMBER;
    z->curve = curve;
    return 0;
}

/* name, version 1.0, 72 zeros, C' 32, number 8, box of 64 zeros (C' to S) 80 */
void zmtp_write_curve_hello(const zmtp_t *z, zmtp_writer_t *writer)
{
    uint8_t nonce[ZMTP_CURVE_NONCE];
    uint8_t key[ZMTP_CURVE_KEY];
    crypto_of(z)->public_key(key, z->curve->secret);
    zmtp_write_command(writer, "\5HELLO", 194);
    zmtp_write_octet(writer, 1);
    zmtp_write_octet(writer, 0);
    zmtp_write(writer, ZEROS, 72);
    zmtp_write(writer, key, sizeof key);
    write_number(writer, HELLO_NUMBER);
    zmtp_write(writer, ZEROS, 40);
    zmtp_write(writer, ZEROS, 40);
    if (!writer->is_short) {
        counted(nonce, "CurveZMQHELLO---", HELLO_NUMBER);
        (void)crypto_of(z)->shared(key, z->settings->curve->server, z->curve->secret); /* a wrong key of ours meets no server */
        crypto_of(z)->seal(&writer->out[writer->size - 80u], 64, nonce, key);
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
    drawn(nonce, "WELCOME-", data.octets);
    if (!crypto_of(z)->shared(curve->key, z->settings->curve->server, curve->secret) ||
        !crypto_of(z)->open(sealed, ZMTP_CURVE_KEY + ZMTP_CURVE_COOKIE, nonce, curve->key)) {
        return ZMTP_FORGED;
    }
    memcpy(curve->server, &sealed[ZMTP_CURVE_TAG], ZMTP_CURVE_KEY);
    memcpy(curve->cookie, &sealed[ZMTP_CURVE_TAG + ZMTP_CURVE_KEY], ZMTP_CURVE_COOKIE);
    if (!crypto_of(z)->shared(curve->key, curve->server, curve->secret)) {
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
    zmtp_write_command(writer, "\10INITIATE", ZMTP_CURVE_COOKIE + NUMBER + ZMTP_CURVE_TAG + size);
    zmtp_write(writer, z->curve->cookie, ZMTP_CURVE_COOKIE);
    write_number(writer, INITIATE_NUMBER);
    begin = writer->size;
    zmtp_write(writer, ZEROS, ZMTP_CURVE_TAG);
    zmtp_write(writer, keys->public_key, ZMTP_CURVE_KEY);
    zmtp_write(writer, z->curve->vouch_nonce, 16);
    zmtp_write(writer, ZEROS, ZMTP_CURVE_TAG);
    crypto_of(z)->public_key(key, z->curve->secret);
    zmtp_write(writer, key, sizeof key);
    zmtp_write(writer, keys->server, ZMTP_CURVE_KEY);
    zmtp_write_metadata(writer, z->settings);
    if (!writer->is_short) {
        drawn(nonce, "VOUCH---", z->curve->vouch_nonce);
        (void)crypto_of(z)->shared(key, z->curve->server, keys->secret);
        crypto_of(z)->seal(&writer->out[begin + ZMTP_CURVE_TAG + ZMTP_CURVE_KEY + 16u], 64, nonce, key);
        counted(nonce, "CurveZMQINITIATE", INITIATE_NUMBER);
        crypto_of(z)->seal(&writer->out[begin], size, nonce, z->curve->key);
    }
}

/** Opens a box in the buffer behind the number that its nonce counts: its text, or ZMTP_FORGED. */
static int32_t open_counted(zmtp_t *z, zmtp_slice_t *data, const char *what)
{
    uint8_t nonce[ZMTP_CURVE_NONCE];
    uint8_t *sealed = &z->buffer[(uint32_t)(data->octets - z->buffer) + NUMBER];
    uint64_t number;
    if (data->size < (NUMBER + ZMTP_CURVE_TAG)) {
        return ZMTP_BAD_COMMAND;
    }
    number = number_at(data->octets);
    counted(nonce, what, number);
    data->size -= NUMBER + ZMTP_CURVE_TAG;
    /* Whatever came before, again or later than it should, has a number that was used. */
    if ((number <= z->curve->heard) || !crypto_of(z)->open(sealed, data->size, nonce, z->curve->key)) {
        return ZMTP_FORGED;
    }
    z->curve->heard = number;
    data->octets = &sealed[ZMTP_CURVE_TAG];
    return ZMTP_NONE;
}

int32_t zmtp_take_curve_ready(zmtp_t *z, zmtp_slice_t data, zmtp_event_t *event)
{
    int32_t found = open_counted(z, &data, "CurveZMQREADY---");
    return (found == (int32_t)ZMTP_NONE) ? zmtp_take_metadata(z, data, event) : found;
}

int32_t zmtp_open_curve_message(zmtp_t *z, zmtp_slice_t body, zmtp_slice_t *payload)
{
    int32_t found = ZMTP_BAD_COMMAND;
    uint8_t flags;
    if (zmtp_is_command(body, MESSAGE, payload)) {
        found = open_counted(z, payload, "CurveZMQMESSAGES");
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
    write_number(writer, z->curve->sent + 1u);
    begin = writer->size;
    zmtp_write(writer, ZEROS, ZMTP_CURVE_TAG);
    zmtp_write_octet(writer, (uint8_t)((flags == (uint8_t)FLAG_COMMAND) ? 2u : flags));
    return begin;
}

void zmtp_end_curve_message(const zmtp_t *z, zmtp_writer_t *writer, uint32_t begin)
{
    uint8_t nonce[ZMTP_CURVE_NONCE];
    if (!writer->is_short) {
        z->curve->sent++;
        counted(nonce, "CurveZMQMESSAGEC", z->curve->sent);
        crypto_of(z)->seal(&writer->out[begin], writer->size - begin - ZMTP_CURVE_TAG, nonce, z->curve->key);
    }
}

#endif
