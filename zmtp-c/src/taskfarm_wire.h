/** Octets of the task farm's messages (docs/formats/taskfarm.md). Nothing of it is for callers. */
#ifndef TASKFARM_WIRE_H
#define TASKFARM_WIRE_H

#include "taskfarm.h"

enum { TASKFARM_GRANT = 1, TASKFARM_TASK = 2, TASKFARM_RESULT = 3, TASKFARM_END = 4 };

static inline void taskfarm_put16(uint8_t *out, uint16_t number)
{
    out[0] = (uint8_t)(number >> 8);
    out[1] = (uint8_t)number;
}

static inline uint16_t taskfarm_get16(const uint8_t *octets)
{
    return (uint16_t)(((uint32_t)octets[0] << 8) | octets[1]);
}

static inline void taskfarm_put_range(uint8_t *out, taskfarm_range_t range)
{
    taskfarm_put16(&out[0], (uint16_t)(range.begin >> 16));
    taskfarm_put16(&out[2], (uint16_t)range.begin);
    taskfarm_put16(&out[4], (uint16_t)(range.end >> 16));
    taskfarm_put16(&out[6], (uint16_t)range.end);
}

static inline taskfarm_range_t taskfarm_get_range(const uint8_t *octets)
{
    taskfarm_range_t range;
    range.begin = ((uint32_t)taskfarm_get16(&octets[0]) << 16) | taskfarm_get16(&octets[2]);
    range.end = ((uint32_t)taskfarm_get16(&octets[4]) << 16) | taskfarm_get16(&octets[6]);
    return range;
}

#endif
