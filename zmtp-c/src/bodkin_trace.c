/* Which trace an event is of: a text of fixed size in a JSON object without depth. */

#include "bodkin_trace.h"

#include <string.h>

#if BODKIN_WITH_TRACES

#define KEY "\"traceparent\""
#define KEY_SIZE (sizeof KEY - 1u)

void bodkin_write_trace(uint8_t *out, const char *trace)
{
    out[0] = (uint8_t)'{';
    memcpy(&out[1], KEY, KEY_SIZE);
    memcpy(&out[1u + KEY_SIZE], ":\"", 2);
    memcpy(&out[3u + KEY_SIZE], trace, BODKIN_TRACE_SIZE);
    memcpy(&out[3u + KEY_SIZE + BODKIN_TRACE_SIZE], "\"}", 2);
}

int bodkin_is_trace(const uint8_t *octets, uint32_t size)
{
    static const char FORM[] = "00-tttttttttttttttttttttttttttttttt-ssssssssssssssss-ff";
    int has_trace = 0;
    int has_span = 0;
    uint32_t i;
    if (size != BODKIN_TRACE_SIZE) {
        return 0;
    }
    for (i = 0; i < BODKIN_TRACE_SIZE; i++) {
        uint8_t octet = octets[i];
        int is_digit = ((octet >= (uint8_t)'0') && (octet <= (uint8_t)'9')) || ((octet >= (uint8_t)'a') && (octet <= (uint8_t)'f'));
        if ((FORM[i] == '0') || (FORM[i] == '-')) {
            is_digit = octet == (uint8_t)FORM[i];
        }
        if (!is_digit) {
            return 0;
        }
        has_trace |= (FORM[i] == 't') && (octet != (uint8_t)'0');
        has_span |= (FORM[i] == 's') && (octet != (uint8_t)'0');
    }
    return has_trace && has_span;
}

#if BODKIN_WITH_SUBSCRIBER

/** Behind blanks, from there on. */
static uint32_t behind_blanks(zmtp_slice_t text, uint32_t at)
{
    while ((at < text.size) && ((text.octets[at] == (uint8_t)' ') || (text.octets[at] == (uint8_t)'\t') || (text.octets[at] == (uint8_t)'\n') ||
                                (text.octets[at] == (uint8_t)'\r'))) {
        at++;
    }
    return at;
}

/** Behind the text that begins there with its quote, or the end. */
static uint32_t behind_text(zmtp_slice_t text, uint32_t at)
{
    at++;
    while ((at < text.size) && (text.octets[at] != (uint8_t)'"')) {
        at += (text.octets[at] == (uint8_t)'\\') ? 2u : 1u;
    }
    return (at < text.size) ? (at + 1u) : text.size;
}

zmtp_slice_t bodkin_find_trace(zmtp_slice_t metadata)
{
    zmtp_slice_t trace = {NULL, 0};
    uint32_t at = 0;
    while (at < metadata.size) {
        uint32_t begin = at;
        int is_key;
        if (metadata.octets[begin] != (uint8_t)'"') {
            at++;
            continue;
        }
        at = behind_text(metadata, begin);
        is_key = ((at - begin) == KEY_SIZE) && (memcmp(&metadata.octets[begin], KEY, KEY_SIZE) == 0);
        at = behind_blanks(metadata, at);
        if (is_key && (at < metadata.size) && (metadata.octets[at] == (uint8_t)':')) {
            uint32_t value = behind_blanks(metadata, at + 1u);
            at = ((value < metadata.size) && (metadata.octets[value] == (uint8_t)'"')) ? behind_text(metadata, value) : value;
            if (((at - value) == (BODKIN_TRACE_SIZE + 2u)) && bodkin_is_trace(&metadata.octets[value + 1u], BODKIN_TRACE_SIZE)) {
                trace.octets = &metadata.octets[value + 1u];
                trace.size = BODKIN_TRACE_SIZE;
            }
        }
    }
    return trace;
}

#endif

#endif
