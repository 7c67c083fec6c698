/** What a fuzzer gives, taken piece by piece by targets that carry out operations. */
#ifndef INPUT_H
#define INPUT_H

#include "zmtp.h"

typedef struct {
    const uint8_t *octets;
    size_t left;
} input_t;

/** So many octets, or what is left of them. */
static zmtp_slice_t input_take(input_t *input, size_t count)
{
    zmtp_slice_t taken;
    taken.octets = input->octets;
    taken.size = (uint32_t)((count < input->left) ? count : input->left);
    input->octets += taken.size;
    input->left -= taken.size;
    return taken;
}

/** One octet; 0 behind the end. */
static uint8_t input_octet(input_t *input)
{
    zmtp_slice_t taken = input_take(input, 1);
    return (taken.size > 0u) ? taken.octets[0] : 0u;
}

#endif
