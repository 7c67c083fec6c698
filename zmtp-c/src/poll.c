/* What the protocol itself has to say. */

#include "internal.h"

const char *zmtp_reason(int32_t fault)
{
#if ZMTP_WITH_REASONS
    switch (fault) {
    case ZMTP_BAD_GREETING:
        return "a greeting of ZMTP 3 was expected";
    case ZMTP_BAD_MECHANISM:
        return "another security mechanism was expected";
    case ZMTP_BAD_FRAME:
        return "no frame has these flags or this size";
    case ZMTP_TOO_LONG:
        return "the frame is longer than is taken here";
    case ZMTP_BAD_COMMAND:
        return "another command was expected, or its form is wrong";
    case ZMTP_BAD_METADATA:
        return "properties of READY are wrong, or Socket-Type is missing";
    case ZMTP_BAD_TYPE:
        return "this socket type may not be connected to ours";
    case ZMTP_DENIED:
        return "the client is not let in";
    case ZMTP_UNEXPECTED:
        return "no message may come here now";
    case ZMTP_PEER_ERROR:
        return "the peer told an error";
    case ZMTP_CLOSED:
        return "closed";
    case ZMTP_FORGED:
        return "a box does not open, or its number was used";
    default:
        return "";
    }
#else
    (void)fault;
    return "";
#endif
}

#if ZMTP_WITH_PLAIN
static void write_text(zmtp_writer_t *writer, zmtp_slice_t text)
{
    zmtp_write_octet(writer, (uint8_t)text.size);
    zmtp_write(writer, text.octets, text.size);
}
#endif

#if ZMTP_WITH_REASONS
static void write_error(zmtp_writer_t *writer, int32_t fault)
{
    const char *reason = zmtp_reason(fault);
    uint32_t size = (uint32_t)strlen(reason);
    zmtp_write_command(writer, "\5ERROR", size + 1u);
    zmtp_write_octet(writer, (uint8_t)size);
    zmtp_write(writer, reason, size);
}
#endif

#if ZMTP_WITH_CURVE
/** What CURVE says in the place of PLAIN's commands and of READY: zero, if it is something else. */
static int write_curve(const zmtp_t *z, zmtp_writer_t *writer, uint8_t pending)
{
    int is_written = 1;
    switch (pending) {
    case PENDING_HELLO:
        zmtp_write_curve_hello(z, writer);
        break;
    case PENDING_INITIATE:
        zmtp_write_curve_initiate(z, writer);
        break;
#if ZMTP_WITH_CURVE_SERVER
    case PENDING_WELCOME:
        zmtp_write_curve_welcome(z, writer);
        break;
    case PENDING_READY:
        zmtp_write_curve_ready(z, writer);
        break;
#endif
    default:
        is_written = 0;
        break;
    }
    return is_written;
}
#endif

static void write_pending(const zmtp_t *z, zmtp_writer_t *writer, uint8_t pending)
{
    const zmtp_settings_t *settings = z->settings;
#if ZMTP_WITH_CURVE
    if (zmtp_is_curve(settings) && write_curve(z, writer, pending)) {
        return;
    }
#endif
    switch (pending) {
    case PENDING_GREETING:
        zmtp_write_greeting(writer, settings);
        break;
#if ZMTP_WITH_PLAIN
    case PENDING_HELLO:
        zmtp_write_command(writer, "\5HELLO", settings->username.size + settings->password.size + 2u);
        write_text(writer, settings->username);
        write_text(writer, settings->password);
        break;
    case PENDING_WELCOME:
        zmtp_write_command(writer, "\7WELCOME", 0);
        break;
    case PENDING_INITIATE:
        zmtp_write_command(writer, "\10INITIATE", zmtp_metadata_size(settings));
        zmtp_write_metadata(writer, settings);
        break;
#endif
    case PENDING_READY:
        zmtp_write_command(writer, "\5READY", zmtp_metadata_size(settings));
        zmtp_write_metadata(writer, settings);
        break;
#if ZMTP_WITH_PING
    case PENDING_PONG:
        zmtp_put_command(z, writer, "\4PONG", NULL, 0, z->context, z->context_size);
        break;
#endif
    default:
#if ZMTP_WITH_REASONS
        write_error(writer, z->fault);
#endif
        break;
    }
}

int32_t zmtp_poll(zmtp_t *z, uint8_t *out, uint32_t room)
{
    zmtp_writer_t writer = {out, 0, room, 0};
    uint8_t pending = 1;
    uint32_t written = 0;
#if ZMTP_WITH_WAITING
    if (z->settings->waits && ((z->conduct & CONDUCT_SPEAKS) == 0)) {
        return 0;
    }
#endif
    while ((z->pending != 0u) && !writer.is_short) {
        if ((z->pending & pending) != 0u) {
            write_pending(z, &writer, pending);
            if (!writer.is_short) {
                z->pending &= (uint8_t)~pending;
                written = writer.size;
            }
        }
        pending = (uint8_t)(pending << 1);
    }
    return (writer.is_short && (written == 0u)) ? (int32_t)ZMTP_ROOM : (int32_t)written;
}
