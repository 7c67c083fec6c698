/** CURVE's cryptography by functions of NaCl's form, apart from libsodium's: their headers have the same names. */
#ifndef NACL_H
#define NACL_H

#include "zmtp_curve.h"

zmtp_crypto_t nacl(void (*random)(uint8_t *out, uint32_t size));

#endif
