/* A net with its memory, and numbers as text. */

#include "station.h"

zmtp_net_t *station_open(zmtp_type_t type, uint32_t count, zmtp_heard_t heard)
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
    settings.waits = type == ZMTP_ROUTER; /* two greetings at once collide on a radio */
    for (i = 0; i < STATION_LINKS_MAX; i++) {
        memories[i] = (zmtp_link_memory_t){in[i], sizeof in[i], out[i], sizeof out[i]};
    }
    net = (zmtp_net_t){.links = links, .memories = memories, .count = count, .input = input, .input_size = sizeof input, .silence_ms = STATION_SILENCE_MS};
    net.accepted = (zmtp_end_t){&settings, heard, NULL};
    return (station_begin(&net) && (count <= STATION_LINKS_MAX) && (zmtp_net_open(&net) == 0)) ? &net : NULL;
}

static int is_ready(const zmtp_link_t *link)
{
    return (link->state == (uint8_t)ZMTP_LINK_OPEN) && zmtp_is_ready(&link->zmtp);
}

void station_await_all(zmtp_net_t *net)
{
    uint32_t ready = 0;
    while (ready < net->count) {
        uint32_t i;
        station_turn(net, 1000);
        ready = 0;
        for (i = 0; i < net->count; i++) {
            ready += (uint32_t)is_ready(&net->links[i]);
        }
    }
}

zmtp_link_t *station_connect(zmtp_net_t *net, const char *address, uint16_t port)
{
    uint32_t tries;
    for (tries = 0; tries < STATION_CONNECTS_MAX; tries++) {
        zmtp_link_t *link = zmtp_net_connect(net, address, port, &net->accepted);
        while ((link != NULL) && (link->state != (uint8_t)ZMTP_LINK_FREE) && !is_ready(link)) {
            station_turn(net, 1000);
        }
        if ((link != NULL) && is_ready(link)) {
            return link;
        }
        station_work(50000);
    }
    return NULL;
}

/** Whether something that was written has not arrived yet. */
static int is_under_way(zmtp_net_t *net)
{
    int is_some = 0;
    uint32_t i;
    for (i = 0; i < net->count; i++) {
        zmtp_link_t *link = &net->links[i];
        is_some |= (link->state == (uint8_t)ZMTP_LINK_OPEN) && ((zmtp_link_waiting(link).size > 0u) || !station_has_arrived(link));
    }
    return is_some;
}

uint32_t station_close(zmtp_net_t *net)
{
    uint32_t began_us = station_now_us();
    uint32_t i;
    while (is_under_way(net)) {
        station_turn(net, 10);
    }
    station_yield();
    for (i = 0; i < net->count; i++) {
        zmtp_net_close(net, &net->links[i]);
    }
    station_settle();
    return station_now_us() - began_us;
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
