/* Prefixes in a row, each: how often 1, size 1, octets. */

#include <string.h>

#include "zmtp_subscriptions.h"

#define OVERHEAD 2u

static uint32_t record_size(const uint8_t *record)
{
    return (uint32_t)record[1] + OVERHEAD;
}

/** The place of this prefix, or that behind the last one. */
static uint32_t find(const zmtp_subscriptions_t *subscriptions, const uint8_t *prefix, uint32_t size)
{
    uint32_t at = 0;
    while (at < subscriptions->used) {
        const uint8_t *record = &subscriptions->memory[at];
        if ((record[1] == size) && ((size == 0u) || (memcmp(&record[OVERHEAD], prefix, size) == 0))) {
            break;
        }
        at += record_size(record);
    }
    return at;
}

int zmtp_subscriptions_add(zmtp_subscriptions_t *subscriptions, const uint8_t *prefix, uint32_t size)
{
    uint32_t at = find(subscriptions, prefix, size);
    uint8_t *record = &subscriptions->memory[at];
    int is_new = at == subscriptions->used;
    if (is_new && ((size > 255u) || ((subscriptions->size - at) < (size + OVERHEAD)))) {
        return 0;
    }
    if (is_new) {
        record[0] = 1;
        record[1] = (uint8_t)size;
        if (size > 0u) {
            memcpy(&record[OVERHEAD], prefix, size);
        }
        subscriptions->used += size + OVERHEAD;
        return 1;
    }
    if (record[0] == 255u) {
        return 0;
    }
    record[0]++;
    return 1;
}

void zmtp_subscriptions_cancel(zmtp_subscriptions_t *subscriptions, const uint8_t *prefix, uint32_t size)
{
    uint32_t at = find(subscriptions, prefix, size);
    if (at < subscriptions->used) {
        uint8_t *record = &subscriptions->memory[at];
        record[0]--;
        if (record[0] == 0u) {
            uint32_t gone = record_size(record);
            memmove(record, &record[gone], subscriptions->used - at - gone);
            subscriptions->used -= gone;
        }
    }
}

int zmtp_subscriptions_match(const zmtp_subscriptions_t *subscriptions, const uint8_t *topic, uint32_t size)
{
    uint32_t at = 0;
    int matches = 0;
    while (!matches && (at < subscriptions->used)) {
        const uint8_t *record = &subscriptions->memory[at];
        matches = (record[1] <= size) && ((record[1] == 0u) || (memcmp(&record[OVERHEAD], topic, record[1]) == 0));
        at += record_size(record);
    }
    return matches;
}
