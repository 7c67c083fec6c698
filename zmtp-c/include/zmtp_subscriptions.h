/**
 * What the peer of a PUB has subscribed to: prefixes, counted, in memory of the caller's.
 *
 * Each takes its own size and two octets more.
 */
#ifndef ZMTP_SUBSCRIPTIONS_H
#define ZMTP_SUBSCRIPTIONS_H

#include <stdint.h>

/** The prefixes of one peer; begins as {memory, size, 0}. */
typedef struct {
    uint8_t *memory;
    uint32_t size;
    uint32_t used;
} zmtp_subscriptions_t;

/**
 * Adds a prefix, or counts one that is there once more.
 *
 * @retval 1; 0 if there is no room for it, it is longer than 255 octets, or there 255 times: close the link, for its peer would miss what it asked for
 */
int zmtp_subscriptions_add(zmtp_subscriptions_t *subscriptions, const uint8_t *prefix, uint32_t size);

/** Takes a prefix back once. Cancelling what was never subscribed does nothing. */
void zmtp_subscriptions_cancel(zmtp_subscriptions_t *subscriptions, const uint8_t *prefix, uint32_t size);

/** Whether the peer wants a message whose first frame begins with these octets. */
int zmtp_subscriptions_match(const zmtp_subscriptions_t *subscriptions, const uint8_t *topic, uint32_t size);

#endif
