/**
 * CURVE's cryptography by functions as TweetNaCl and NaCl have them, with 32 zeros in front of a text and 16 in front of a box. The caller gives the source of randomness:
 *
 *     static const zmtp_crypto_t crypto = ZMTP_TWEETNACL(draw);
 *
 * What they are declared in is included in front of this header: "tweetnacl.h".
 */
#ifndef ZMTP_TWEETNACL_H
#define ZMTP_TWEETNACL_H

#include <string.h>

#include "zmtp_curve.h"

#define ZMTP_TWEETNACL(random) {(random), zmtp_tweetnacl_public_key, zmtp_tweetnacl_shared, zmtp_tweetnacl_seal, zmtp_tweetnacl_open}

/** Octets in front of a box that the functions want to be zeros, and those in front of a text. */
#define ZMTP_TWEETNACL_FRONT 16u
#define ZMTP_TWEETNACL_ZEROS (ZMTP_TWEETNACL_FRONT + ZMTP_CURVE_TAG)

static void zmtp_tweetnacl_public_key(uint8_t *public_key, const uint8_t *secret)
{
    (void)crypto_scalarmult_base(public_key, secret);
}

/** As crypto_box_beforenm, which does not look at the point: with a public key of small order it is all zeros, which everybody knows. */
static int zmtp_tweetnacl_shared(uint8_t *key, const uint8_t *public_key, const uint8_t *secret)
{
    static const uint8_t ZEROS[16] = {0};
    static const uint8_t SIGMA[] = "expand 32-byte k";
    uint8_t point[ZMTP_CURVE_KEY] = {0};
    uint8_t any = 0;
    uint32_t i;
    int is_made = crypto_scalarmult(point, secret, public_key) == 0;
    for (i = 0; i < ZMTP_CURVE_KEY; i++) {
        any |= point[i];
    }
    (void)crypto_core_hsalsa20(key, ZEROS, point, SIGMA);
    return is_made && (any != 0u);
}

static void zmtp_tweetnacl_seal(uint8_t *sealed, uint32_t size, const uint8_t *nonce, const uint8_t *key)
{
    uint8_t *begin = sealed - ZMTP_TWEETNACL_FRONT;
    uint8_t front[ZMTP_TWEETNACL_FRONT];
    memcpy(front, begin, sizeof front);
    memset(begin, 0, ZMTP_TWEETNACL_ZEROS);
    (void)crypto_box_afternm(begin, begin, size + ZMTP_TWEETNACL_ZEROS, nonce, key);
    memcpy(begin, front, sizeof front);
}

static int zmtp_tweetnacl_open(uint8_t *sealed, uint32_t size, const uint8_t *nonce, const uint8_t *key)
{
    uint8_t *begin = sealed - ZMTP_TWEETNACL_FRONT;
    uint8_t front[ZMTP_TWEETNACL_FRONT];
    int is_open;
    memcpy(front, begin, sizeof front);
    memset(begin, 0, sizeof front);
    is_open = crypto_box_open_afternm(begin, begin, size + ZMTP_TWEETNACL_ZEROS, nonce, key) == 0;
    memcpy(begin, front, sizeof front);
    return is_open;
}

#endif
