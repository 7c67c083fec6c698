/* The events that a node keeps of one topic. */

#include "bodkin_retained.h"

static uint64_t max(uint64_t a, uint64_t b)
{
    return (a > b) ? a : b;
}

static uint64_t min(uint64_t a, uint64_t b)
{
    return (a < b) ? a : b;
}

bodkin_kept_t *bodkin_kept(const bodkin_topic_t *topic, uint64_t sequence)
{
    return &topic->kept[sequence % topic->capacity];
}

uint8_t *bodkin_payload(const bodkin_topic_t *topic, uint64_t sequence)
{
    return &topic->payloads[(uint32_t)(sequence % topic->capacity) * topic->payload_max];
}

#if BODKIN_WITH_TRACES
char *bodkin_trace(const bodkin_topic_t *topic, uint64_t sequence)
{
    return &topic->traces[(uint32_t)(sequence % topic->capacity) * BODKIN_TRACE_SIZE];
}
#endif

int bodkin_make_room(bodkin_topic_t *topic, uint64_t *dropped)
{
    int is_full = ((topic->newest + 1u) - topic->oldest) == topic->capacity;
    int is_uncovered = is_full && (topic->oldest > topic->covered) && !bodkin_kept(topic, topic->oldest)->is_gone;
    *dropped = 0;
    if (is_uncovered && !topic->drops_oldest) {
        return 0;
    }
    if (is_full) {
        *dropped = is_uncovered ? topic->oldest : 0u;
        /* A broker that has refused it takes nothing behind it until it is told that it will not come. */
        topic->is_resuming |= (uint8_t)(topic->next == topic->oldest);
        topic->oldest++;
        topic->next = max(topic->next, topic->oldest);
    }
    return 1;
}

int bodkin_cover(bodkin_topic_t *topic, uint64_t through)
{
    uint64_t guaranteed = ((topic->newest + 1u) > topic->retention) ? ((topic->newest + 1u) - topic->retention) : 0u;
    if ((through <= topic->covered) || (through > topic->newest)) {
        return 0;
    }
    topic->covered = through;
    topic->next = max(topic->next, through + 1u);
    topic->oldest = max(topic->oldest, min(through + 1u, guaranteed));
    return 1;
}

void bodkin_resume(bodkin_topic_t *topic)
{
    topic->is_paused = 0;
    topic->next = topic->oldest;
    topic->is_resuming = (uint8_t)(topic->newest > 0u);
}

void bodkin_rewind(bodkin_topic_t *topic, uint64_t sequence, uint32_t until_ms)
{
    topic->is_paused = 1;
    topic->paused_until_ms = until_ms;
    topic->resent_through = max(topic->resent_through, topic->next - 1u);
    topic->next = min(topic->next, max(max(sequence, topic->oldest), topic->covered + 1u));
}

int bodkin_was_sent(const bodkin_topic_t *topic, uint64_t sequence)
{
    return (sequence >= topic->oldest) && (sequence < topic->next);
}
