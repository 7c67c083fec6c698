/* A connection with its way out. */

#include <string.h>

#include "zmtp_curve.h"
#include "zmtp_link.h"


int32_t zmtp_link_open(zmtp_link_t *link, const zmtp_settings_t *settings, const zmtp_link_memory_t *memory, zmtp_heard_t heard, void *owner)
{
    if (memory->out_size < ZMTP_POLL_ROOM) {
        return ZMTP_ARGUMENT;
    }
    link->heard = heard;
    link->owner = owner;
    link->out = memory->out;
    link->out_size = memory->out_size;
    link->out_begin = 0;
    link->out_end = 0;
#if ZMTP_WITH_CURVE
    if (settings->mechanism == (uint8_t)ZMTP_CURVE) {
        int32_t opened = zmtp_open(&link->zmtp, settings, memory->in, memory->in_size);
        int is_possible = (opened == 0) && (memory->curve != NULL) && (memory->out_size >= ZMTP_CURVE_POLL_ROOM);
        return is_possible ? zmtp_use_curve(&link->zmtp, memory->curve) : (int32_t)ZMTP_ARGUMENT;
    }
#endif
    return zmtp_open(&link->zmtp, settings, memory->in, memory->in_size);
}

/** Moves what waits to the front. */
static void compact(zmtp_link_t *link)
{
    if (link->out_begin > 0u) {
        memmove(link->out, &link->out[link->out_begin], link->out_end - link->out_begin);
        link->out_end -= link->out_begin;
        link->out_begin = 0;
    }
}

/** What the protocol has to say comes in front of further messages. */
static int32_t poll(zmtp_link_t *link)
{
    int32_t written = zmtp_poll(&link->zmtp, &link->out[link->out_end], link->out_size - link->out_end);
    if (written == (int32_t)ZMTP_ROOM) {
        compact(link);
        written = zmtp_poll(&link->zmtp, &link->out[link->out_end], link->out_size - link->out_end);
    }
    if (written > 0) {
        link->out_end += (uint32_t)written;
        written = 0;
    }
    return written;
}

/** Counts what was written; a call that found too little room although nothing waits will never find it. */
static int32_t wrote(zmtp_link_t *link, int32_t written)
{
    if (written >= 0) {
        link->out_end += (uint32_t)written;
        return 0;
    }
    if ((written == (int32_t)ZMTP_ROOM) && (link->out_end == 0u)) {
        return ZMTP_TOO_LONG;
    }
    return written;
}

static int32_t put(zmtp_link_t *link, const zmtp_slice_t *frames, uint32_t count)
{
    uint32_t begin = link->out_end;
    /* Nothing counts before the last frame has found room: then all is as it was. */
    zmtp_t before = link->zmtp;
    int32_t result = 0;
    uint32_t i;
    for (i = 0; (i < count) && (result == 0); i++) {
        result = zmtp_put(&link->zmtp, (i + 1u) < count, frames[i].octets, frames[i].size, &link->out[link->out_end],
                          link->out_size - link->out_end);
        if (result > 0) {
            link->out_end += (uint32_t)result;
            result = 0;
        }
    }
    if (result < 0) {
        link->zmtp = before;
        link->out_end = begin;
    }
    return result;
}

int32_t zmtp_link_send(zmtp_link_t *link, const zmtp_slice_t *frames, uint32_t count)
{
    int32_t result = put(link, frames, count);
    if ((result == (int32_t)ZMTP_ROOM) && (link->out_begin > 0u)) {
        compact(link);
        result = put(link, frames, count);
    }
    return wrote(link, result);
}

int32_t zmtp_link_send_one(zmtp_link_t *link, const void *body, uint32_t size)
{
    int32_t written = zmtp_put(&link->zmtp, 0, body, size, &link->out[link->out_end], link->out_size - link->out_end);
    if ((written == (int32_t)ZMTP_ROOM) && (link->out_begin > 0u)) {
        compact(link);
        written = zmtp_put(&link->zmtp, 0, body, size, &link->out[link->out_end], link->out_size - link->out_end);
    }
    return wrote(link, written);
}

#if ZMTP_WITH_SUB
int32_t zmtp_link_subscribe(zmtp_link_t *link, int subscribes, const void *prefix, uint32_t size)
{
    int32_t (*put_prefix)(zmtp_t *, const void *, uint32_t, uint8_t *, uint32_t) = subscribes ? zmtp_subscribe : zmtp_cancel;
    compact(link);
    return wrote(link, put_prefix(&link->zmtp, prefix, size, &link->out[link->out_end], link->out_size - link->out_end));
}
#endif

#if ZMTP_WITH_PING
int32_t zmtp_link_ping(zmtp_link_t *link, uint16_t ttl_ds)
{
    compact(link);
    return wrote(link, zmtp_ping(&link->zmtp, ttl_ds, NULL, 0, &link->out[link->out_end], link->out_size - link->out_end));
}
#endif

uint32_t zmtp_link_room(const zmtp_link_t *link)
{
    return link->out_size - (link->out_end - link->out_begin);
}

int32_t zmtp_link_received(zmtp_link_t *link, const uint8_t *octets, uint32_t size)
{
    zmtp_event_t event;
    int32_t what;
    (void)zmtp_sink(&link->zmtp, octets, size);
    do {
        what = zmtp_next(&link->zmtp, &event);
        if (what > (int32_t)ZMTP_NONE) {
            link->heard(link, what, &event);
        }
    } while (what > (int32_t)ZMTP_NONE);
    (void)poll(link);
    return what;
}

zmtp_slice_t zmtp_link_waiting(zmtp_link_t *link)
{
    zmtp_slice_t waiting;
    (void)poll(link);
    waiting.octets = &link->out[link->out_begin];
    waiting.size = link->out_end - link->out_begin;
    return waiting;
}

void zmtp_link_sent(zmtp_link_t *link, uint32_t size)
{
    link->out_begin += size;
    if (link->out_begin == link->out_end) {
        link->out_begin = 0;
        link->out_end = 0;
    }
}

zmtp_link_t *zmtp_links_next(zmtp_link_t *links, uint32_t count, uint32_t *last, uint32_t size)
{
    uint32_t i;
    for (i = 1; i <= count; i++) {
        uint32_t at = (*last + i) % count;
        if ((links[at].state == (uint8_t)ZMTP_LINK_OPEN) && zmtp_is_ready(&links[at].zmtp) && (zmtp_link_room(&links[at]) >= size)) {
            *last = at;
            return &links[at];
        }
    }
    return NULL;
}
