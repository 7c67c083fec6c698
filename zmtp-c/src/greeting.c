/* The greeting, 64 octets each way (RFC 37, Greeting): ours, and theirs as its octets come. */

#include "internal.h"

/** Names of mechanisms, padded by zeros. */
static const char MECHANISMS[ZMTP_WITH_CURVE ? 3 : (ZMTP_WITH_PLAIN ? 2 : 1)][ZMTP_MECHANISM_SIZE] = {
    "NULL",
#if ZMTP_WITH_PLAIN || ZMTP_WITH_CURVE
    "PLAIN",
#endif
#if ZMTP_WITH_CURVE
    "CURVE",
#endif
};

/** Octets 0 to 11: the signature, in which a peer of ZMTP 1.0 reads a frame of one octet, and version 3.1. */
static const uint8_t BEGINNING[ZMTP_MECHANISM_AT] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1};

void zmtp_write_greeting(zmtp_writer_t *writer, const zmtp_settings_t *settings)
{
    uint32_t i;
    zmtp_write(writer, BEGINNING, sizeof BEGINNING);
    zmtp_write(writer, MECHANISMS[settings->mechanism], ZMTP_MECHANISM_SIZE);
    zmtp_write_octet(writer, (uint8_t)(!zmtp_is_null(settings) && settings->is_server));
    for (i = ZMTP_MECHANISM_AT + ZMTP_MECHANISM_SIZE + 1u; i < ZMTP_GREETING_SIZE; i++) {
        zmtp_write_octet(writer, 0);
    }
}

/** An octet of theirs at its place: 0 or a fault. Padding, as-server (of which libzmq says nothing true) and filler are ignored. */
static int32_t check(zmtp_t *z, uint32_t at, uint8_t octet)
{
    int32_t fault = 0;
    if (((at == 0u) && (octet != 0xffu)) || ((at == 9u) && ((octet & 1u) == 0u)) || ((at == 10u) && (octet < 3u))) {
        fault = ZMTP_BAD_GREETING;
    } else if ((at == 10u) || (at == 11u)) {
        /* 3.1 or anything newer, and 4.0 is newer. */
        z->minor |= (uint8_t)(octet > ((at == 10u) ? 3u : 0u));
    } else if ((at >= ZMTP_MECHANISM_AT) && (at < (ZMTP_MECHANISM_AT + ZMTP_MECHANISM_SIZE)) &&
               (octet != (uint8_t)MECHANISMS[z->settings->mechanism][at - ZMTP_MECHANISM_AT])) {
        fault = ZMTP_BAD_MECHANISM;
    } else {
        /* Nothing that concerns us. */
    }
    return fault;
}

int32_t zmtp_take_greeting(zmtp_t *z)
{
    while ((z->input_left > 0u) && (z->filled < ZMTP_GREETING_SIZE)) {
        int32_t fault = check(z, z->filled, *z->input);
        if (fault < 0) {
            return zmtp_fail(z, fault);
        }
        z->input++;
        z->input_left--;
        z->filled++;
        if (z->filled == ZMTP_SIGNATURE_SIZE) {
            zmtp_speak(z);
        }
    }
    if (z->filled == ZMTP_GREETING_SIZE) {
        z->filled = 0;
        z->phase = PHASE_READY;
        if (!zmtp_is_null(z->settings)) {
            z->phase = z->settings->is_server ? PHASE_HELLO : PHASE_WELCOME;
        }
    }
    return ZMTP_NONE;
}
