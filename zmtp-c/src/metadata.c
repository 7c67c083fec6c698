/* Socket types, and the properties of READY and INITIATE (RFC 37, Connection Metadata): name length 1, name, value length 4, value. */

#include "internal.h"

#define TYPES 11u

static const char NAMES[TYPES][7] = {"REQ", "REP", "DEALER", "ROUTER", "PUB", "SUB", "PUSH", "PULL", "PAIR", "XPUB", "XSUB"};

/** What our own types, ZMTP_REQ to ZMTP_PAIR, may be connected to. */
static const uint16_t FITTING[ZMTP_PAIR + 1] = {
    ZMTP_SET(ZMTP_REP) | ZMTP_SET(ZMTP_ROUTER),
    ZMTP_SET(ZMTP_REQ) | ZMTP_SET(ZMTP_DEALER),
    ZMTP_SET(ZMTP_REP) | ZMTP_SET(ZMTP_DEALER) | ZMTP_SET(ZMTP_ROUTER),
    ZMTP_SET(ZMTP_REQ) | ZMTP_SET(ZMTP_DEALER) | ZMTP_SET(ZMTP_ROUTER),
    ZMTP_SET(ZMTP_SUB) | ZMTP_SET(ZMTP_XSUB),
    ZMTP_SET(ZMTP_PUB) | ZMTP_SET(ZMTP_XPUB),
    ZMTP_SET(ZMTP_PULL),
    ZMTP_SET(ZMTP_PUSH),
    ZMTP_SET(ZMTP_PAIR),
};

/** Names as on the wire, with their lengths. */
static const char SOCKET_TYPE[] = "\13Socket-Type";
static const char IDENTITY[] = "\10Identity";

/** Octets of a property beside its name and value: both lengths. */
#define PROPERTY_OVERHEAD 5u

int zmtp_types_fit(uint8_t ours, uint8_t theirs)
{
    return (FITTING[ours] & ZMTP_SET(theirs)) != 0u;
}

static int has_identity(const zmtp_settings_t *settings)
{
    const uint32_t types = ZMTP_SET(ZMTP_REQ) | ZMTP_SET(ZMTP_DEALER) | ZMTP_SET(ZMTP_ROUTER);
    return ((ZMTP_BUILT & types) != 0u) && (settings->identity.octets != NULL) && ((types & ZMTP_SET(settings->socket_type)) != 0u);
}

/** `name` with its length in front. */
static void write_property(zmtp_writer_t *writer, const char *name, zmtp_slice_t value)
{
    zmtp_write(writer, name, (uint32_t)strlen(name));
    zmtp_write_size(writer, value.size);
    zmtp_write(writer, value.octets, value.size);
}

uint32_t zmtp_metadata_size(const zmtp_settings_t *settings)
{
    uint32_t size = (uint32_t)(sizeof SOCKET_TYPE - 2u) + PROPERTY_OVERHEAD + (uint32_t)strlen(NAMES[settings->socket_type]);
    if (has_identity(settings)) {
        size += (uint32_t)(sizeof IDENTITY - 2u) + PROPERTY_OVERHEAD + settings->identity.size;
    }
#if ZMTP_WITH_PROPERTY
    if (settings->property != NULL) {
        size += (uint32_t)strlen(settings->property) + PROPERTY_OVERHEAD + settings->property_value.size;
    }
#endif
    return size;
}

void zmtp_write_metadata(zmtp_writer_t *writer, const zmtp_settings_t *settings)
{
    const char *name = NAMES[settings->socket_type];
    zmtp_slice_t type;
    type.octets = (const uint8_t *)name;
    type.size = (uint32_t)strlen(name);
    write_property(writer, SOCKET_TYPE, type);
    if (has_identity(settings)) {
        write_property(writer, IDENTITY, settings->identity);
    }
#if ZMTP_WITH_PROPERTY
    if (settings->property != NULL) {
        uint8_t length = (uint8_t)strlen(settings->property);
        zmtp_write(writer, &length, 1);
        write_property(writer, settings->property, settings->property_value);
    }
#endif
}

/** Whether this is that name, whatever its case; the first octet of either is its length. */
static int is_name(const uint8_t *octets, const char *name)
{
    uint32_t i;
    int is_same = octets[0] == (uint8_t)name[0];
    for (i = 1; is_same && (i <= octets[0]); i++) {
        uint8_t octet = octets[i];
        uint8_t expected = (uint8_t)name[i];
        /* Lower and upper case differ by one bit; so do characters that are no letters, which these names have none of but '-'. */
        is_same = (octet == expected) || ((expected != (uint8_t)'-') && ((octet | 0x20u) == (expected | 0x20u)));
    }
    return is_same;
}

/** The type of this name, or TYPES. */
static uint8_t type_of(const uint8_t *name, uint32_t size)
{
    uint8_t type = 0;
    if (size >= sizeof NAMES[0]) {
        return TYPES;
    }
    while ((type < TYPES) && ((NAMES[type][size] != 0) || (memcmp(NAMES[type], name, size) != 0))) {
        type++;
    }
    return type;
}

int32_t zmtp_take_metadata(zmtp_t *z, zmtp_slice_t data, zmtp_event_t *event)
{
    uint8_t type = TYPES;
    uint32_t at = 0;
    while (at < data.size) {
        const uint8_t *name = &data.octets[at];
        uint32_t left = data.size - at;
        uint32_t head = (uint32_t)name[0] + PROPERTY_OVERHEAD;
        uint32_t size = (left >= head) ? zmtp_big_endian(&name[head - 4u]) : 0u;
        if ((name[0] == 0u) || (left < head) || (size > (left - head))) {
            return ZMTP_BAD_METADATA;
        }
        if (is_name(name, SOCKET_TYPE)) {
            if (type != TYPES) {
                return ZMTP_BAD_METADATA;
            }
            type = type_of(&name[head], size);
            if (type == TYPES) {
                return ZMTP_BAD_TYPE;
            }
        } else if (is_name(name, IDENTITY)) {
            if ((size > 255u) || ((size > 0u) && (name[head] == 0u))) {
                return ZMTP_BAD_METADATA;
            }
            event->octets = &name[head];
            event->size = size;
        } else {
            /* Resource and what applications tell each other are not ours. */
        }
        at += head + size;
    }
    if (type == TYPES) {
        return ZMTP_BAD_METADATA;
    }
    z->peer_type = type;
    return zmtp_types_fit(z->settings->socket_type, type) ? (int32_t)ZMTP_READY : (int32_t)ZMTP_BAD_TYPE;
}
