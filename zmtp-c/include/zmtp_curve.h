/**
 * CURVE (RFC 25, RFC 26) with cryptography of the caller's: X25519, XSalsa20 and Poly1305 as in NaCl. Built with ZMTP_WITH_CURVE, the server's end with
 * ZMTP_WITH_CURVE_SERVER besides.
 *
 * A connection is opened by zmtp_open and then zmtp_use_curve. Its buffer has at least ZMTP_CURVE_BUFFER_MIN octets, a server's ZMTP_CURVE_SERVER_BUFFER_MIN, and a
 * frame beyond what fits into it is refused: a box is opened whole. Each frame of a message takes 33 octets more.
 */
#ifndef ZMTP_CURVE_H
#define ZMTP_CURVE_H

#include "zmtp.h"

/** Octets of a key, of a nonce, of what a box is longer than its text, of WELCOME's cookie. */
#define ZMTP_CURVE_KEY 32u
#define ZMTP_CURVE_NONCE 24u
#define ZMTP_CURVE_TAG 16u
#define ZMTP_CURVE_COOKIE 96u

/** WELCOME has 168 octets, and stands behind two more. */
#define ZMTP_CURVE_BUFFER_MIN 170u

/** INITIATE has 257, and the client's properties: that of libzmq with an identity of 26 octets fits. */
#define ZMTP_CURVE_SERVER_BUFFER_MIN 320u

/** Room that zmtp_poll can need at once for a handshake, beyond an identity. */
#define ZMTP_CURVE_POLL_ROOM 320u

/** What the caller's library does. Boxes are sealed and opened where they stand: tag 16, then the text; 16 octets in front of the tag may be used meanwhile. */
typedef struct {
    /** Draws octets that nobody can know. */
    void (*random)(uint8_t *out, uint32_t size);
    /** The public key of a secret one (crypto_scalarmult_base). */
    void (*public_key)(uint8_t *public_key, const uint8_t *secret);
    /** The key that two parties share (crypto_box_beforenm): zero, if the public one is good for nothing. */
    int (*shared)(uint8_t *key, const uint8_t *public_key, const uint8_t *secret);
    /** Seals the `size` octets behind the tag's place (crypto_box_afternm). */
    void (*seal)(uint8_t *sealed, uint32_t size, const uint8_t *nonce, const uint8_t *key);
    /** Opens them (crypto_box_open_afternm): zero, if they were sealed with another key, or changed. */
    int (*open)(uint8_t *sealed, uint32_t size, const uint8_t *nonce, const uint8_t *key);
} zmtp_crypto_t;

/** Who we are, and whom we want to speak to, or may speak to us. */
struct zmtp_curve_keys {
    const zmtp_crypto_t *crypto;
    const uint8_t *public_key; /**< ours, 32 octets, as the next two */
    const uint8_t *secret;
    const uint8_t *server; /**< a client's: the server's public key */
#if ZMTP_WITH_CURVE_SERVER
    /** A server's: nonzero lets in who has shown to have the secret of this public key. Null: nobody comes in. */
    int (*admit)(void *context, const uint8_t *client);
    void *context; /**< passed to admit */
#endif
};
typedef struct zmtp_curve_keys zmtp_curve_keys_t;

/** What a connection knows besides; the caller's memory, to be overwritten when the connection is over. */
struct zmtp_curve {
    uint8_t secret[ZMTP_CURVE_KEY]; /* this connection's own */
    uint8_t nonce[16];              /* of the client's vouch, of the server's WELCOME */
    uint8_t peer[ZMTP_CURVE_KEY];   /**< the peer's public key of this connection; at a server, behind the handshake, the client's own, which admit was asked of */
    uint8_t cookie[ZMTP_CURVE_COOKIE];
    uint8_t key[ZMTP_CURVE_KEY]; /* of both directions */
    uint64_t sent;               /* number of the last box that we have sealed, and that we have opened */
    uint64_t heard;
};
typedef struct zmtp_curve zmtp_curve_t;

/** Draws what a connection needs, behind zmtp_open. 0; or ZMTP_ARGUMENT: it is not CURVE's, or the buffer is too small. */
int32_t zmtp_use_curve(zmtp_t *z, zmtp_curve_t *curve);

#endif
