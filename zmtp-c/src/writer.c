/* Octets into the caller's room. */

#include "internal.h"

#define SHORT_BODY_MAX 255u

void zmtp_write(zmtp_writer_t *writer, const void *octets, uint32_t size)
{
    if (size > (writer->room - writer->size)) {
        writer->is_short = 1;
    } else if (size > 0u) {
        memcpy(&writer->out[writer->size], octets, size);
        writer->size += size;
    } else {
        /* memcpy takes no null pointer, not even for nothing. */
    }
}

void zmtp_write_octet(zmtp_writer_t *writer, uint8_t octet)
{
    zmtp_write(writer, &octet, 1);
}

void zmtp_write_size(zmtp_writer_t *writer, uint32_t size)
{
    uint8_t octets[4];
    octets[0] = (uint8_t)(size >> 24);
    octets[1] = (uint8_t)(size >> 16);
    octets[2] = (uint8_t)(size >> 8);
    octets[3] = (uint8_t)size;
    zmtp_write(writer, octets, sizeof octets);
}

uint32_t zmtp_big_endian(const uint8_t *octets)
{
    return ((uint32_t)octets[0] << 24) | ((uint32_t)octets[1] << 16) | ((uint32_t)octets[2] << 8) | octets[3];
}

uint32_t zmtp_frame_size(uint32_t size)
{
    return size + ((size > SHORT_BODY_MAX) ? 9u : 2u);
}

void zmtp_write_head(zmtp_writer_t *writer, uint8_t flags, uint32_t size)
{
    if (size > SHORT_BODY_MAX) {
        zmtp_write_octet(writer, (uint8_t)(flags | FLAG_LONG));
        zmtp_write_size(writer, 0);
        zmtp_write_size(writer, size);
    } else {
        zmtp_write_octet(writer, flags);
        zmtp_write_octet(writer, (uint8_t)size);
    }
}

void zmtp_write_command(zmtp_writer_t *writer, const char *name, uint32_t size)
{
    uint32_t name_size = (uint32_t)strlen(name);
    zmtp_write_head(writer, FLAG_COMMAND, name_size + size);
    zmtp_write(writer, name, name_size);
}
