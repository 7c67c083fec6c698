/**
 * A target for libFuzzer (`clang -fsanitize=fuzzer,address,undefined`) and for fuzz/replay.c: whatever a peer sends, and however it is cut, the same events
 * come of it, and no memory but ours is touched.
 *
 * The first octet says which socket type we are and whether by PLAIN, as a client or a server; the second where the stream is cut; the rest is the peer's.
 */
#include <stdlib.h>
#include <string.h>

#include "../test/party.h"

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t size);

static party_t whole;
static party_t cut;

static void begin(party_t *party, uint8_t kind)
{
    static const uint32_t BUFFERS[4] = {64, 65, 128, 512};
    zmtp_settings_t settings;
    memset(&settings, 0, sizeof settings);
    settings.socket_type = (uint8_t)(kind % 9u);
    settings.mechanism = (uint8_t)((kind >> 6) & 1u);
    settings.is_server = (uint8_t)(kind >> 7);
    settings.frame_octets_max = 4096;
    party_open(party, &settings, BUFFERS[(kind >> 4) & 3u]);
    party_poll(party);
}

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t size)
{
    uint32_t count = (uint32_t)size - 2u;
    if ((size < 2u) || (size > 8192u)) {
        return 0;
    }
    begin(&whole, octets[0]);
    begin(&cut, octets[0]);
    party_receive(&whole, &octets[2], count, count);
    party_receive(&cut, &octets[2], count, octets[1]);
    party_poll(&whole);
    party_poll(&cut);
    if ((strcmp(whole.told, cut.told) != 0) || (whole.out_size != cut.out_size) || (memcmp(whole.out, cut.out, cut.out_size) != 0)) {
        abort();
    }
    return 0;
}
