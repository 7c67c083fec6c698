/* Octets of Bodkin's commands and of an event's header. Numbers are big-endian; a text has its size in two octets in front. */

#include "bodkin_wire.h"

#include <string.h>

#define VERSION 1u
#define FLAG_RESEND 1u

static void put_number(uint8_t *out, uint64_t number)
{
    uint32_t i;
    for (i = 0; i < 8u; i++) {
        out[i] = (uint8_t)(number >> (56u - (8u * i)));
    }
}

void bodkin_write_header(uint8_t *out, int resend, uint64_t incarnation, uint64_t sequence, uint64_t created_utc_ns, uint64_t epoch)
{
    out[0] = VERSION;
    out[1] = (uint8_t)(resend ? FLAG_RESEND : 0u);
    put_number(&out[2], 0); /* the broker knows the publisher by its session */
    put_number(&out[10], incarnation);
    put_number(&out[18], sequence);
    put_number(&out[26], created_utc_ns);
    put_number(&out[34], epoch);
}

void bodkin_begin(bodkin_command_t *command, uint8_t kind, uint64_t epoch)
{
    command->octets[0] = VERSION;
    command->octets[1] = kind;
    command->size = 2;
    bodkin_add_number(command, epoch);
}

void bodkin_add_octet(bodkin_command_t *command, uint8_t octet)
{
    command->octets[command->size] = octet;
    command->size++;
}

void bodkin_add_number(bodkin_command_t *command, uint64_t number)
{
    put_number(&command->octets[command->size], number);
    command->size += 8u;
}

void bodkin_add_text(bodkin_command_t *command, const char *text)
{
    uint32_t size = (uint32_t)strlen(text);
    command->octets[command->size] = (uint8_t)(size >> 8);
    command->octets[command->size + 1u] = (uint8_t)size;
    memcpy(&command->octets[command->size + 2u], text, size);
    command->size += size + 2u;
}

uint8_t bodkin_read_octet(bodkin_reader_t *reader)
{
    uint8_t octet = 0;
    if (reader->left.size > 0u) {
        octet = *reader->left.octets++;
        reader->left.size--;
    } else {
        reader->is_cut = 1;
    }
    return octet;
}

uint64_t bodkin_read_number(bodkin_reader_t *reader)
{
    uint64_t number = 0;
    uint32_t i;
    for (i = 0; i < 8u; i++) {
        number = (number << 8) | bodkin_read_octet(reader);
    }
    return number;
}

zmtp_slice_t bodkin_read_text(bodkin_reader_t *reader)
{
    zmtp_slice_t text;
    uint32_t size = (uint32_t)bodkin_read_octet(reader) << 8;
    size |= bodkin_read_octet(reader);
    reader->is_cut |= size > reader->left.size;
    text.octets = reader->left.octets;
    text.size = reader->is_cut ? 0u : size;
    reader->left.octets += text.size;
    reader->left.size -= text.size;
    return text;
}
