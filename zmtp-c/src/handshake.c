/* NULL (RFC 37) and PLAIN (RFC 24): which command comes next, and what it leads to. */

#include "internal.h"

#if ZMTP_WITH_PLAIN
/** Splits off a text with its length in one octet in front; zero if there is none. */
static int take_text(zmtp_slice_t *data, zmtp_slice_t *text)
{
    int is_whole = (data->size > 0u) && (data->octets[0] < data->size);
    if (is_whole) {
        text->size = data->octets[0];
        text->octets = &data->octets[1];
        data->octets += text->size + 1u;
        data->size -= text->size + 1u;
    }
    return is_whole;
}

static int32_t take_hello(zmtp_t *z, zmtp_slice_t data)
{
    const zmtp_settings_t *settings = z->settings;
    zmtp_slice_t username;
    zmtp_slice_t password;
    if (!take_text(&data, &username) || !take_text(&data, &password) || (data.size > 0u)) {
        return ZMTP_BAD_COMMAND;
    }
    if ((settings->authenticate == NULL) || !settings->authenticate(settings->context, username, password)) {
        return ZMTP_DENIED;
    }
    z->pending |= PENDING_WELCOME;
    z->phase = PHASE_INITIATE;
    return ZMTP_NONE;
}
#endif

static int32_t take_error(zmtp_slice_t data, zmtp_event_t *event)
{
    if ((data.size > 0u) && (data.octets[0] < data.size)) {
        event->octets = &data.octets[1];
        event->size = data.octets[0];
    }
    return ZMTP_PEER_ERROR;
}

int zmtp_is_command(zmtp_slice_t body, const char *name, zmtp_slice_t *data)
{
    uint32_t size = (uint32_t)strlen(name);
    int is_it = (body.size >= size) && (memcmp(body.octets, name, size) == 0);
    if (is_it) {
        data->octets = &body.octets[size];
        data->size = body.size - size;
    }
    return is_it;
}

int32_t zmtp_take_handshake(zmtp_t *z, zmtp_slice_t body, zmtp_event_t *event)
{
    zmtp_slice_t data;
    int32_t found = ZMTP_BAD_COMMAND;
    if (zmtp_is_command(body, "\5ERROR", &data)) {
        found = take_error(data, event);
#if ZMTP_WITH_CURVE
    } else if (zmtp_is_curve(z->settings) && (z->phase == PHASE_WELCOME) && zmtp_is_command(body, "\7WELCOME", &data)) {
        found = zmtp_take_curve_welcome(z, data);
    } else if (zmtp_is_curve(z->settings) && (z->phase == PHASE_READY) && zmtp_is_command(body, "\5READY", &data)) {
        found = zmtp_take_curve_ready(z, data, event);
#endif
#if ZMTP_WITH_CURVE && ZMTP_WITH_CURVE_SERVER
    } else if (zmtp_is_curve(z->settings) && (z->phase == PHASE_HELLO) && zmtp_is_command(body, "\5HELLO", &data)) {
        found = zmtp_take_curve_hello(z, data);
    } else if (zmtp_is_curve(z->settings) && (z->phase == PHASE_INITIATE) && zmtp_is_command(body, "\10INITIATE", &data)) {
        found = zmtp_take_curve_initiate(z, data, event);
#endif
    } else if ((z->phase == PHASE_READY) && zmtp_is_command(body, "\5READY", &data)) {
        found = zmtp_take_metadata(z, data, event);
#if ZMTP_WITH_PLAIN
    } else if ((z->phase == PHASE_HELLO) && zmtp_is_command(body, "\5HELLO", &data)) {
        found = take_hello(z, data);
    } else if ((z->phase == PHASE_WELCOME) && zmtp_is_command(body, "\7WELCOME", &data) && (data.size == 0u)) {
        z->pending |= PENDING_INITIATE;
        z->phase = PHASE_READY;
        found = ZMTP_NONE;
    } else if ((z->phase == PHASE_INITIATE) && zmtp_is_command(body, "\10INITIATE", &data)) {
        found = zmtp_take_metadata(z, data, event);
        if (found == (int32_t)ZMTP_READY) {
            z->pending |= PENDING_READY;
        }
#endif
    } else {
        /* Another command, or one out of its turn. */
    }
    if (found == (int32_t)ZMTP_READY) {
        z->phase = PHASE_TRAFFIC;
    }
    return found;
}

int32_t zmtp_take_command(zmtp_t *z, zmtp_slice_t body, zmtp_event_t *event)
{
    zmtp_slice_t data = {NULL, 0};
    int32_t found = ZMTP_NONE; /* a command that we do not know is ignored (RFC 37) */
    if (zmtp_is_command(body, "\5ERROR", &data)) {
        found = take_error(data, event);
#if ZMTP_WITH_PING
    } else if (zmtp_is_command(body, "\4PING", &data)) {
        if ((data.size < 2u) || (data.size > (2u + ZMTP_CONTEXT_MAX))) {
            return ZMTP_BAD_COMMAND;
        }
        event->ttl_ds = (uint16_t)(((uint32_t)data.octets[0] << 8) | data.octets[1]);
        event->octets = &data.octets[2];
        event->size = data.size - 2u;
        /* One PONG answers all that came since the last one went out; it brings back the newest context. */
        z->context_size = (uint8_t)event->size;
        memcpy(z->context, event->octets, event->size);
        z->pending |= PENDING_PONG;
        found = ZMTP_PING;
    } else if (zmtp_is_command(body, "\4PONG", &data)) {
        event->octets = data.octets;
        event->size = data.size;
        found = ZMTP_PONG;
#endif
    } else if (zmtp_is(z, ZMTP_PUB) && zmtp_is_command(body, "\11SUBSCRIBE", &data)) {
        found = ZMTP_SUBSCRIBE;
    } else if (zmtp_is(z, ZMTP_PUB) && zmtp_is_command(body, "\6CANCEL", &data)) {
        found = ZMTP_CANCEL;
    } else {
        (void)z;
    }
    if ((found == (int32_t)ZMTP_SUBSCRIBE) || (found == (int32_t)ZMTP_CANCEL)) {
        event->octets = data.octets;
        event->size = data.size;
    }
    return found;
}
