/* What comes in of messages: who may send what, and REP's envelope. */

#include "internal.h"

/** Keeps an address of a request's envelope, or its delimiter, as on the wire: the reply goes out behind the same octets. */
static int32_t keep(zmtp_t *z, zmtp_slice_t address)
{
    uint32_t size = zmtp_frame_size(address.size);
    uint32_t max = z->buffer_size / 2u;
    zmtp_writer_t writer;
    if ((size > max) || (z->kept > (max - size))) {
        return ZMTP_TOO_LONG;
    }
    writer.out = &z->buffer[z->kept];
    writer.size = 0;
    writer.room = size;
    writer.is_short = 0;
    /* The address may stand where its head has to. */
    memmove(&writer.out[size - address.size], address.octets, address.size);
    zmtp_write_head(&writer, FLAG_MORE, address.size);
    z->kept += size;
    return ZMTP_NONE;
}

/** A frame in front of the body of a request or a reply. */
static int32_t take_envelope(zmtp_t *z, zmtp_slice_t address, int goes_on)
{
    int is_delimiter = address.size == 0u;
    int32_t found = ((z->flags & FLAG_MORE) != 0) ? ZMTP_NONE : ZMTP_UNEXPECTED;
    if (goes_on) {
        found = ZMTP_TOO_LONG;
    }
    if (zmtp_is(z, ZMTP_REQ) && (!is_delimiter || ((z->conduct & CONDUCT_ASKED) == 0))) {
        found = ZMTP_UNEXPECTED;
    }
    if (zmtp_is(z, ZMTP_REP) && (found == (int32_t)ZMTP_NONE)) {
        found = keep(z, address);
    }
    if (is_delimiter) {
        z->conduct |= CONDUCT_BODY;
    }
    return found;
}

/** To PUB a message of one frame that begins with 01 or 00 is a subscription; all others it ignores. */
static int32_t take_subscription(zmtp_t *z, zmtp_slice_t octets, int goes_on, zmtp_event_t *event)
{
    int32_t found = ZMTP_NONE;
    int is_first = (z->conduct & CONDUCT_IN_MORE) == 0;
    if (goes_on) {
        found = ZMTP_TOO_LONG;
    } else if (is_first && ((z->flags & FLAG_MORE) == 0) && (octets.size > 0u) && (octets.octets[0] <= 1u)) {
        found = (octets.octets[0] == 1u) ? ZMTP_SUBSCRIBE : ZMTP_CANCEL;
        event->octets = &octets.octets[1];
        event->size = octets.size - 1u;
    } else {
        /* Not ours to read. */
    }
    return found;
}

/** The message goes on or is over. */
static void step(zmtp_t *z)
{
    if ((z->flags & FLAG_MORE) != 0) {
        z->conduct |= CONDUCT_IN_MORE;
    } else {
        z->conduct &= (uint8_t)~(CONDUCT_IN_MORE | CONDUCT_BODY);
    }
}

static int32_t take_frame(zmtp_t *z, zmtp_slice_t octets, int goes_on, zmtp_event_t *event)
{
    event->octets = octets.octets;
    event->size = octets.size;
    event->goes_on = (uint8_t)goes_on;
    event->more = (uint8_t)(z->flags & FLAG_MORE);
    if (zmtp_is(z, ZMTP_REQ) && !goes_on && (event->more == 0u)) {
        z->conduct &= (uint8_t)~CONDUCT_ASKED;
    }
    if (zmtp_is(z, ZMTP_REP) && !goes_on && (event->more == 0u)) {
        z->conduct |= CONDUCT_ASKED;
    }
    return ZMTP_FRAME;
}

int32_t zmtp_take_message(zmtp_t *z, zmtp_slice_t octets, int goes_on, zmtp_event_t *event)
{
    int32_t found;
    if (zmtp_is(z, ZMTP_PUSH)) {
        found = ZMTP_UNEXPECTED;
    } else if (zmtp_is(z, ZMTP_PUB)) {
        found = take_subscription(z, octets, goes_on, event);
    } else if (zmtp_is_of(z, ZMTP_SET(ZMTP_REQ) | ZMTP_SET(ZMTP_REP)) && ((z->conduct & CONDUCT_BODY) == 0)) {
        found = take_envelope(z, octets, goes_on);
    } else {
        found = take_frame(z, octets, goes_on, event);
    }
    if (!goes_on) {
        step(z);
    }
    return found;
}
