/* A net with its memory, and POSIX' clock. */

#include "station.h"

#include <string.h>
#include <time.h>

zmtp_net_t *station_open(zmtp_type_t type, uint32_t count, zmtp_heard_t heard, void *owner)
{
    static zmtp_link_t links[STATION_LINKS_MAX];
    static uint8_t in[STATION_LINKS_MAX][128];
    static uint8_t out[STATION_LINKS_MAX][STATION_OUT_SIZE];
    static uint8_t input[4096];
    static zmtp_link_memory_t memories[STATION_LINKS_MAX];
    static zmtp_settings_t settings;
    static zmtp_net_t net;
    uint32_t i;
    settings.socket_type = (uint8_t)type;
    for (i = 0; i < STATION_LINKS_MAX; i++) {
        memories[i] = (zmtp_link_memory_t){in[i], sizeof in[i], out[i], sizeof out[i]};
    }
    net = (zmtp_net_t){.links = links, .memories = memories, .count = count, .input = input, .input_size = sizeof input};
    net.accepted = (zmtp_end_t){&settings, heard, owner};
    return ((count <= STATION_LINKS_MAX) && (zmtp_net_open(&net) == 0)) ? &net : NULL;
}

uint32_t station_now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint32_t)now.tv_sec * 1000000u) + (uint32_t)(now.tv_nsec / 1000);
}

uint32_t station_number(zmtp_slice_t text)
{
    uint32_t number = 0;
    uint32_t i;
    for (i = 0; (i < text.size) && (text.octets[i] >= (uint8_t)'0') && (text.octets[i] <= (uint8_t)'9'); i++) {
        number = (10u * number) + (uint32_t)(text.octets[i] - (uint8_t)'0');
    }
    return number;
}

uint32_t station_text(uint32_t number, uint8_t *out)
{
    uint32_t size = 1;
    uint32_t rest = number;
    uint32_t i;
    while (rest >= 10u) {
        rest /= 10u;
        size++;
    }
    for (i = size; i > 0u; i--) {
        out[i - 1u] = (uint8_t)('0' + (number % 10u));
        number /= 10u;
    }
    return size;
}

void station_flush(zmtp_net_t *net)
{
    uint32_t waiting = 1;
    while (waiting > 0u) {
        uint32_t i;
        (void)zmtp_net_turn(net, 0);
        waiting = 0;
        for (i = 0; i < net->count; i++) {
            waiting += (net->links[i].state == (uint8_t)ZMTP_LINK_OPEN) ? zmtp_link_waiting(&net->links[i]).size : 0u;
        }
    }
}
