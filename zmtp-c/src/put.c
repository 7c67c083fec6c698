/* Frames of messages, subscriptions and PING, on their way out. */

#include "internal.h"

/** Whether a message may begin or go on now: 0 or a fault. */
static int32_t may_put(const zmtp_t *z)
{
    int is_asked = (z->conduct & CONDUCT_ASKED) != 0;
    int32_t fault = 0;
    if (zmtp_is_of(z, ZMTP_SET(ZMTP_PULL) | ZMTP_SET(ZMTP_SUB)) || (zmtp_is(z, ZMTP_REQ) && is_asked) || (zmtp_is(z, ZMTP_REP) && !is_asked)) {
        fault = ZMTP_WRONG_TURN;
    }
    return (z->phase == PHASE_TRAFFIC) ? fault : (int32_t)ZMTP_NOT_READY;
}

/** What goes out in front of a message's first frame. */
static void write_envelope(const zmtp_t *z, zmtp_writer_t *writer)
{
    if (zmtp_is(z, ZMTP_REQ)) {
        zmtp_write_head(writer, FLAG_MORE, 0);
    }
    if (zmtp_is(z, ZMTP_REP)) {
        zmtp_write(writer, z->buffer, z->kept);
    }
}

/** The message goes on or is over. */
static void step(zmtp_t *z, int more)
{
    if (more) {
        z->conduct |= CONDUCT_OUT_MORE;
    } else {
        z->conduct &= (uint8_t)~CONDUCT_OUT_MORE;
        if (zmtp_is(z, ZMTP_REQ)) {
            z->conduct |= CONDUCT_ASKED;
        }
        if (zmtp_is(z, ZMTP_REP)) {
            z->conduct &= (uint8_t)~CONDUCT_ASKED;
            z->kept = 0;
        }
    }
}

/** Head, and if there is one the body, whole or not at all. */
static int32_t put(zmtp_t *z, int more, const void *body, uint32_t size, uint32_t body_size, uint8_t *out, uint32_t room)
{
    zmtp_writer_t writer = {out, 0, room, 0};
    int32_t fault = may_put(z);
    if (fault < 0) {
        return fault;
    }
    if ((z->conduct & CONDUCT_OUT_MORE) == 0) {
        write_envelope(z, &writer);
    }
    zmtp_write_head(&writer, more ? FLAG_MORE : 0, size);
    zmtp_write(&writer, body, body_size);
    if (writer.is_short) {
        return ZMTP_ROOM;
    }
    step(z, more);
    return (int32_t)writer.size;
}

int32_t zmtp_put(zmtp_t *z, int more, const void *body, uint32_t size, uint8_t *out, uint32_t room)
{
    return put(z, more, body, size, size, out, room);
}

int32_t zmtp_put_head(zmtp_t *z, int more, uint32_t size, uint8_t *out, uint32_t room)
{
    return put(z, more, NULL, size, 0, out, room);
}

#if ZMTP_WITH_SUB
static int32_t put_prefix(zmtp_t *z, int subscribes, const void *prefix, uint32_t size, uint8_t *out, uint32_t room)
{
    zmtp_writer_t writer = {out, 0, room, 0};
    if (size > ZMTP_PREFIX_MAX) {
        return ZMTP_ARGUMENT;
    }
    if (!zmtp_is(z, ZMTP_SUB)) {
        return ZMTP_WRONG_TURN;
    }
    if (z->phase != PHASE_TRAFFIC) {
        return ZMTP_NOT_READY;
    }
    if (z->minor == 0u) {
        zmtp_write_head(&writer, 0, size + 1u);
        zmtp_write_octet(&writer, (uint8_t)(subscribes != 0));
    } else {
        zmtp_write_command(&writer, subscribes ? "\11SUBSCRIBE" : "\6CANCEL", size);
    }
    zmtp_write(&writer, prefix, size);
    return writer.is_short ? (int32_t)ZMTP_ROOM : (int32_t)writer.size;
}

int32_t zmtp_subscribe(zmtp_t *z, const void *prefix, uint32_t size, uint8_t *out, uint32_t room)
{
    return put_prefix(z, 1, prefix, size, out, room);
}

int32_t zmtp_cancel(zmtp_t *z, const void *prefix, uint32_t size, uint8_t *out, uint32_t room)
{
    return put_prefix(z, 0, prefix, size, out, room);
}
#endif

#if ZMTP_WITH_PING
int32_t zmtp_ping(zmtp_t *z, uint16_t ttl_ds, const void *context, uint32_t size, uint8_t *out, uint32_t room)
{
    zmtp_writer_t writer = {out, 0, room, 0};
    if (size > ZMTP_CONTEXT_MAX) {
        return ZMTP_ARGUMENT;
    }
    if (z->phase != PHASE_TRAFFIC) {
        return ZMTP_NOT_READY;
    }
    zmtp_write_command(&writer, "\4PING", size + 2u);
    zmtp_write_octet(&writer, (uint8_t)(ttl_ds >> 8));
    zmtp_write_octet(&writer, (uint8_t)ttl_ds);
    zmtp_write(&writer, context, size);
    return writer.is_short ? (int32_t)ZMTP_ROOM : (int32_t)writer.size;
}
#endif
