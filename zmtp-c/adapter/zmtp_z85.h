/** Keys of CURVE as text, as `bodkin cert curve` and ZeroMQ's tools write them: 40 characters of Z85 (ZeroMQ RFC 32), five for each four octets. */
#ifndef ZMTP_Z85_H
#define ZMTP_Z85_H

#include <string.h>

#include "zmtp_curve.h"

#define ZMTP_Z85_KEY 40u

/** Reads a key: nonzero, if the text is one. */
static int zmtp_z85_key(uint8_t *key, const char *text)
{
    static const char DIGITS[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    uint64_t value = 0;
    uint32_t i;
    if (strlen(text) != ZMTP_Z85_KEY) {
        return 0;
    }
    for (i = 0; i < ZMTP_Z85_KEY; i++) {
        const char *digit = strchr(DIGITS, text[i]);
        value = (85u * value) + (uint64_t)((digit == NULL) ? 0 : (digit - DIGITS));
        if ((digit == NULL) || (value > UINT32_MAX)) {
            return 0;
        }
        if ((i % 5u) == 4u) {
            uint8_t *octets = &key[4u * (i / 5u)];
            octets[0] = (uint8_t)(value >> 24);
            octets[1] = (uint8_t)(value >> 16);
            octets[2] = (uint8_t)(value >> 8);
            octets[3] = (uint8_t)value;
            value = 0;
        }
    }
    return 1;
}

#endif
