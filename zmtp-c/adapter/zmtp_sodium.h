/** CURVE's cryptography by libsodium. The caller has called sodium_init(). */
#ifndef ZMTP_SODIUM_H
#define ZMTP_SODIUM_H

#include <sodium.h>

#include "zmtp_curve.h"

static void zmtp_sodium_random(uint8_t *out, uint32_t size)
{
    randombytes_buf(out, size);
}

static void zmtp_sodium_public_key(uint8_t *public_key, const uint8_t *secret)
{
    (void)crypto_scalarmult_base(public_key, secret);
}

static int zmtp_sodium_shared(uint8_t *key, const uint8_t *public_key, const uint8_t *secret)
{
    return crypto_box_beforenm(key, public_key, secret) == 0;
}

static void zmtp_sodium_seal(uint8_t *sealed, uint32_t size, const uint8_t *nonce, const uint8_t *key)
{
    uint8_t *text = &sealed[ZMTP_CURVE_TAG];
    (void)crypto_box_detached_afternm(text, sealed, text, size, nonce, key);
}

static int zmtp_sodium_open(uint8_t *sealed, uint32_t size, const uint8_t *nonce, const uint8_t *key)
{
    uint8_t *text = &sealed[ZMTP_CURVE_TAG];
    return crypto_box_open_detached_afternm(text, text, sealed, size, nonce, key) == 0;
}

static const zmtp_crypto_t zmtp_sodium = {zmtp_sodium_random, zmtp_sodium_public_key, zmtp_sodium_shared, zmtp_sodium_seal, zmtp_sodium_open};

#endif
