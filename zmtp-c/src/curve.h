/** What both ends of CURVE share; nothing of it is for callers. */
#ifndef ZMTP_CURVE_INTERNAL_H
#define ZMTP_CURVE_INTERNAL_H

#include "internal.h"
#include "zmtp_curve.h"

#if ZMTP_WITH_CURVE

/** Octets of the number that a nonce counts by. */
#define ZMTP_CURVE_NUMBER 8u

extern const uint8_t zmtp_curve_zeros[72];

const zmtp_crypto_t *zmtp_crypto_of(const zmtp_t *z);

/** A nonce that counts: 16 octets that say what for, and a number. */
void zmtp_curve_counted(uint8_t *nonce, const char *what, uint64_t number);
/** One that was drawn: 8 octets that say what for, and 16 that nobody had before. */
void zmtp_curve_drawn(uint8_t *nonce, const char *what, const uint8_t *octets);

uint64_t zmtp_curve_number_at(const uint8_t *octets);
void zmtp_curve_write_number(zmtp_writer_t *writer, uint64_t number);

/** Opens a box in the buffer behind the number that its nonce counts: its text, or ZMTP_FORGED. */
int32_t zmtp_open_curve_counted(zmtp_t *z, zmtp_slice_t *data, const char *what);

#endif
#endif
