/* A connection's life, and its frames: what comes in is cut at frames and told. */

#include "internal.h"

#define FRAME_OCTETS_MAX_DEFAULT 65536u

/** Octets of the size in a frame's head. */
#define SHORT_SIZE 1u
#define LONG_SIZE 8u

/** Whether these settings can be kept. */
static int are_possible(const zmtp_settings_t *settings)
{
    int is_built = (settings->socket_type <= (uint8_t)ZMTP_PAIR) && ((ZMTP_BUILT & ZMTP_SET(settings->socket_type)) != 0u) &&
                   ((settings->mechanism == (uint8_t)ZMTP_NULL) || zmtp_is_plain(settings) || zmtp_is_curve(settings));
#if ZMTP_WITH_PLAIN
    is_built = is_built && (settings->username.size <= 255u) && (settings->password.size <= 255u);
#endif
#if ZMTP_WITH_CURVE
    is_built = is_built && (!zmtp_is_curve(settings) || ((settings->curve != NULL) && (ZMTP_WITH_CURVE_SERVER || !settings->is_server)));
#endif
#if ZMTP_WITH_PROPERTY
    is_built = is_built && ((settings->property == NULL) || (strlen(settings->property) <= 255u));
#endif
    return is_built && (settings->identity.size <= 255u);
}

int32_t zmtp_open(zmtp_t *z, const zmtp_settings_t *settings, uint8_t *buffer, uint32_t size)
{
    if ((buffer == NULL) || (size < ZMTP_BUFFER_MIN) || !are_possible(settings)) {
        return ZMTP_ARGUMENT;
    }
    memset(z, 0, sizeof *z);
    z->settings = settings;
    z->buffer = buffer;
    z->buffer_size = size;
    z->pending = PENDING_GREETING;
    if (zmtp_is_null(settings)) {
        z->pending |= PENDING_READY;
    } else if (!settings->is_server) {
        z->pending |= PENDING_HELLO;
    } else {
        /* A server has nothing to say until it is told HELLO. */
    }
    return 0;
}

uint32_t zmtp_sink(zmtp_t *z, const uint8_t *octets, uint32_t size)
{
    if (z->input_left > 0u) {
        return 0;
    }
    z->input = octets;
    z->input_left = size;
    return size;
}

void zmtp_speak(zmtp_t *z)
{
    z->conduct |= CONDUCT_SPEAKS;
}

void zmtp_close(zmtp_t *z)
{
    (void)zmtp_fail(z, ZMTP_CLOSED);
}

int zmtp_is_ready(const zmtp_t *z)
{
    return z->phase == PHASE_TRAFFIC;
}

int32_t zmtp_fail(zmtp_t *z, int32_t fault)
{
    /* Whoever has not greeted may not speak ZMTP at all, and clients of PLAIN and CURVE may not send ERROR (RFC 24, RFC 26). What fails behind CURVE's handshake may be anybody's on the way. */
    int is_told = (z->phase != PHASE_GREETING) && (z->phase != PHASE_CLOSED) && (fault != (int32_t)ZMTP_PEER_ERROR) &&
                  (zmtp_is_null(z->settings) || z->settings->is_server) && (!zmtp_is_curve(z->settings) || (z->phase != PHASE_TRAFFIC));
    if (z->phase != PHASE_CLOSED) {
        z->pending = (uint8_t)(is_told ? ((z->pending & PENDING_GREETING) | PENDING_ERROR) : 0);
        z->phase = PHASE_CLOSED;
        z->fault = (int8_t)fault;
    }
    z->input_left = 0;
    return z->fault;
}

/** Reads the head as far as it is there; ZMTP_NONE, or a fault. With FLAG_BODY it is whole. */
static int32_t take_head(zmtp_t *z)
{
    if (z->head_left == 0u) {
        uint8_t flags = *z->input++;
        z->input_left--;
        if ((flags > (FLAG_LONG | FLAG_COMMAND)) || ((flags & (FLAG_MORE | FLAG_COMMAND)) == (FLAG_MORE | FLAG_COMMAND))) {
            return zmtp_fail(z, ZMTP_BAD_FRAME);
        }
        z->flags = flags;
        z->body_left = 0;
        z->head_left = (uint8_t)(((flags & FLAG_LONG) != 0) ? LONG_SIZE : SHORT_SIZE);
    }
    while ((z->head_left > 0u) && (z->input_left > 0u)) {
        uint8_t octet = *z->input++;
        z->input_left--;
        z->head_left--;
        if ((z->head_left >= 4u) && (octet != 0u)) {
            return zmtp_fail(z, ((z->head_left == (LONG_SIZE - 1u)) && (octet > 0x7fu)) ? ZMTP_BAD_FRAME : ZMTP_TOO_LONG);
        }
        z->body_left = (z->body_left << 8) | octet;
    }
    if (z->head_left == 0u) {
        uint32_t max = z->settings->frame_octets_max;
        int is_command = (z->flags & FLAG_COMMAND) != 0;
        max = (max == 0u) ? FRAME_OCTETS_MAX_DEFAULT : max;
        if (is_command || (zmtp_is_curve(z->settings) && (z->phase == PHASE_TRAFFIC))) {
            max = z->buffer_size - z->kept - zmtp_lead(z); /* it is told in one piece */
        } else if (z->phase != PHASE_TRAFFIC) {
            return zmtp_fail(z, ZMTP_UNEXPECTED);
        } else {
            /* A message, as it should be. */
        }
        if (z->body_left > max) {
            return zmtp_fail(z, ZMTP_TOO_LONG);
        }
        z->flags |= FLAG_BODY;
    }
    return ZMTP_NONE;
}

/** Finds the next fragment of the frame's body, in the input or in the buffer: nonzero, if it is whole. */
static int take_fragment(zmtp_t *z, zmtp_slice_t *fragment)
{
    uint32_t capacity = z->buffer_size - z->kept - zmtp_lead(z);
    uint8_t *buffer = &z->buffer[z->kept + zmtp_lead(z)];
    uint32_t size = (z->body_left < capacity) ? z->body_left : capacity;
    int is_whole = 1;
    if ((z->filled == 0u) && (z->input_left >= size) && !zmtp_is_curve(z->settings)) {
        fragment->octets = z->input;
        z->input += size;
        z->input_left -= size;
    } else {
        uint32_t count = size - z->filled;
        count = (count < z->input_left) ? count : z->input_left;
        if (!zmtp_is_curve(z->settings) || (count > 0u)) {
            memcpy(&buffer[z->filled], z->input, count);
            z->input += count;
        }
        z->input_left -= count;
        z->filled += count;
        is_whole = z->filled == size;
        fragment->octets = buffer;
    }
    if (is_whole) {
        fragment->size = size;
        z->filled = 0;
        z->body_left -= size;
    }
    return is_whole;
}

/** What a fragment means: ZMTP_NONE, an event, or a fault. */
static int32_t take_body(zmtp_t *z, zmtp_slice_t fragment, zmtp_event_t *event)
{
    int32_t kind;
    int goes_on = z->body_left > 0u;
    if (!goes_on) {
        z->flags &= (uint8_t)~FLAG_BODY;
    }
#if ZMTP_WITH_CURVE
    if (zmtp_is_curve(z->settings) && (z->phase == PHASE_TRAFFIC)) {
        kind = zmtp_open_curve_message(z, fragment, &fragment);
        if (kind < 0) {
            return zmtp_fail(z, kind);
        }
    }
#endif
    if ((z->flags & FLAG_COMMAND) == 0) {
        kind = zmtp_take_message(z, fragment, goes_on, event);
    } else if (z->phase == PHASE_TRAFFIC) {
        kind = zmtp_take_command(z, fragment, event);
    } else {
        kind = zmtp_take_handshake(z, fragment, event);
    }
    return (kind < 0) ? zmtp_fail(z, kind) : kind;
}

int32_t zmtp_next(zmtp_t *z, zmtp_event_t *event)
{
    int32_t found = ZMTP_NONE;
    memset(event, 0, sizeof *event);
    if (z->phase == PHASE_CLOSED) {
        return zmtp_fail(z, z->fault);
    }
    if (zmtp_is(z, ZMTP_REP) && ((z->conduct & CONDUCT_ASKED) != 0) && (z->input_left > 0u)) {
        return ZMTP_WRONG_TURN;
    }
    /* An empty body needs no further octet: a frame whose head was the end of the input is told at once. */
    while ((found == (int32_t)ZMTP_NONE) && ((z->input_left > 0u) || (((z->flags & FLAG_BODY) != 0) && (z->body_left == 0u)))) {
        if (z->phase == PHASE_GREETING) {
            found = zmtp_take_greeting(z);
        } else if ((z->flags & FLAG_BODY) == 0) {
            found = take_head(z);
        } else {
            zmtp_slice_t fragment;
            if (take_fragment(z, &fragment)) {
                found = take_body(z, fragment, event);
            }
        }
    }
    return found;
}
