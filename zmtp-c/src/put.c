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

#if ZMTP_WITH_PING || ZMTP_WITH_SUB
void zmtp_put_command(const zmtp_t *z, zmtp_writer_t *writer, const char *name, const void *head, uint32_t head_size, const void *rest,
                      uint32_t rest_size)
{
    uint32_t name_size = (uint32_t)strlen(name);
    uint32_t begin = zmtp_begin_frame(z, writer, FLAG_COMMAND, name_size + head_size + rest_size);
    zmtp_write(writer, name, name_size);
    zmtp_write(writer, head, head_size);
    zmtp_write(writer, rest, rest_size);
    zmtp_end_frame(z, writer, begin);
}
#endif

/** The envelope of a request, which the reply goes out behind: as it stands in the buffer, and by CURVE a box for each frame of it. */
static void write_kept(const zmtp_t *z, zmtp_writer_t *writer)
{
    uint32_t at = 0;
    if (!zmtp_is_curve(z->settings)) {
        zmtp_write(writer, z->buffer, z->kept);
        return;
    }
    while (at < z->kept) {
        int is_long = (z->buffer[at] & (uint8_t)FLAG_LONG) != 0u;
        uint32_t size = is_long ? zmtp_big_endian(&z->buffer[at + 5u]) : z->buffer[at + 1u];
        uint32_t end = at + zmtp_frame_size(size);
        uint32_t begin = zmtp_begin_frame(z, writer, FLAG_MORE, size);
        zmtp_write(writer, &z->buffer[end - size], size);
        zmtp_end_frame(z, writer, begin);
        at = end;
    }
}

/** What goes out in front of a message's first frame. */
static void write_envelope(const zmtp_t *z, zmtp_writer_t *writer)
{
    if (zmtp_is(z, ZMTP_REQ)) {
        zmtp_end_frame(z, writer, zmtp_begin_frame(z, writer, FLAG_MORE, 0));
    }
    if (zmtp_is(z, ZMTP_REP)) {
        write_kept(z, writer);
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
    uint32_t begin;
    if (fault < 0) {
        return fault;
    }
    if ((z->conduct & CONDUCT_OUT_MORE) == 0) {
        write_envelope(z, &writer);
    }
    begin = zmtp_begin_frame(z, &writer, more ? FLAG_MORE : 0, size);
    zmtp_write(&writer, body, body_size);
    zmtp_end_frame(z, &writer, begin);
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
    return zmtp_is_curve(z->settings) ? (int32_t)ZMTP_ARGUMENT : put(z, more, NULL, size, 0, out, room);
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
        uint32_t begin = zmtp_begin_frame(z, &writer, 0, size + 1u);
        zmtp_write_octet(&writer, (uint8_t)(subscribes != 0));
        zmtp_write(&writer, prefix, size);
        zmtp_end_frame(z, &writer, begin);
    } else {
        zmtp_put_command(z, &writer, subscribes ? "\11SUBSCRIBE" : "\6CANCEL", NULL, 0, prefix, size);
    }
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
    uint8_t ttl[2];
    if (size > ZMTP_CONTEXT_MAX) {
        return ZMTP_ARGUMENT;
    }
    if (z->phase != PHASE_TRAFFIC) {
        return ZMTP_NOT_READY;
    }
    ttl[0] = (uint8_t)(ttl_ds >> 8);
    ttl[1] = (uint8_t)ttl_ds;
    zmtp_put_command(z, &writer, "\4PING", ttl, sizeof ttl, context, size);
    return writer.is_short ? (int32_t)ZMTP_ROOM : (int32_t)writer.size;
}
#endif
