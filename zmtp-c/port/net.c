/* What the ports share: links begin, are served, are late, and end. */

#include "port.h"

/** Reads of one link in a turn at the most, so that none starves the others. */
#define READS_MAX 4

zmtp_link_t *zmtp_net_begin(zmtp_net_t *net, const zmtp_end_t *end, zmtp_link_state_t state)
{
    uint32_t i = 0;
    zmtp_link_t *link = NULL;
    while ((i < net->count) && (net->links[i].state != (uint8_t)ZMTP_LINK_FREE)) {
        i++;
    }
    if ((i < net->count) && (zmtp_link_open(&net->links[i], end->settings, &net->memories[i], end->heard, end->owner) == 0)) {
        link = &net->links[i];
        link->state = (uint8_t)state;
        link->holds = 0;
        link->found = 0;
        link->is_asked = 0;
        link->since_ms = zmtp_net_now_ms();
    }
    return link;
}

/** Of so many octets that wait, those that go out in one write. */
static uint32_t one_write(uint32_t size)
{
#if ZMTP_NET_WRITE_MAX > 0
    return (size < ZMTP_NET_WRITE_MAX) ? size : ZMTP_NET_WRITE_MAX;
#else
    return size;
#endif
}

void zmtp_net_flush(zmtp_net_t *net, zmtp_link_t *link)
{
    zmtp_slice_t waiting = zmtp_link_waiting(link);
    int32_t sent = 1;
    (void)net;
    while ((link->state == (uint8_t)ZMTP_LINK_OPEN) && (waiting.size > 0u) && (sent > 0)) {
        sent = zmtp_port_send(link, waiting.octets, one_write(waiting.size));
        zmtp_link_sent(link, (sent > 0) ? (uint32_t)sent : 0u); /* what ails the connection is found by the next read */
        waiting = zmtp_link_waiting(link);
    }
}

void zmtp_net_close(zmtp_net_t *net, zmtp_link_t *link)
{
    if (link->state != (uint8_t)ZMTP_LINK_FREE) {
        zmtp_net_flush(net, link);
        zmtp_close(&link->zmtp);
        zmtp_link_sent(link, zmtp_link_waiting(link).size); /* nobody will take what is left */
        zmtp_port_close(link);
        link->state = ZMTP_LINK_FREE;
    }
}

void zmtp_net_end(zmtp_net_t *net, zmtp_link_t *link, int32_t why)
{
    static const zmtp_event_t NOTHING = {0};
    if (link->state != (uint8_t)ZMTP_LINK_FREE) {
        zmtp_net_close(net, link);
        link->heard(link, why, &NOTHING);
    }
}

void zmtp_net_received(zmtp_net_t *net, zmtp_link_t *link, const uint8_t *octets, uint32_t size)
{
    int32_t fault = zmtp_link_received(link, octets, size);
    if (zmtp_is_ready(&link->zmtp)) {
        link->is_asked = 0;
        link->since_ms = zmtp_net_now_ms();
    }
    if (fault < 0) {
        zmtp_net_end(net, link, fault);
    }
}

int zmtp_net_serve(zmtp_net_t *net, zmtp_link_t *link)
{
    int32_t count = (int32_t)net->input_size;
    int has_read = 0;
    int reads;
    for (reads = 0; (reads < READS_MAX) && (count == (int32_t)net->input_size) && !link->holds; reads++) {
        count = (link->state == (uint8_t)ZMTP_LINK_OPEN) ? zmtp_port_read(link, net->input, net->input_size) : 0;
        has_read |= count != 0;
        if (count > 0) {
            zmtp_net_received(net, link, net->input, (uint32_t)count);
        } else if (count < 0) {
            zmtp_net_end(net, link, count);
        } else {
            /* Nothing more is there. */
        }
    }
    if (link->state == (uint8_t)ZMTP_LINK_OPEN) {
        zmtp_net_flush(net, link);
    }
    return has_read;
}

/** A handshake takes its time or is given up; whoever waits for the peer's greeting does not wait for ever. */
static uint32_t watch_handshake(zmtp_net_t *net, zmtp_link_t *link, uint32_t wait_ms)
{
    uint32_t age_ms = zmtp_net_now_ms() - link->since_ms;
    if (age_ms >= ZMTP_NET_HANDSHAKE_MS) {
        zmtp_net_end(net, link, ZMTP_GONE);
    } else if (age_ms >= ZMTP_NET_SPEAK_MS) {
        zmtp_speak(&link->zmtp);
    } else {
        /* Nothing is late. */
    }
    return (wait_ms < ZMTP_NET_SPEAK_MS) ? wait_ms : ZMTP_NET_SPEAK_MS;
}

#if ZMTP_WITH_PING
/** Asks a silent peer for a sign of life, and gives up one that gives none. What has come is read first: if nobody has turned, the silence was not the peer's. */
static uint32_t watch_silence(zmtp_net_t *net, zmtp_link_t *link, uint32_t wait_ms)
{
    uint32_t now_ms = zmtp_net_now_ms();
    if ((net->silence_ms == 0u) || link->holds) {
        return wait_ms;
    }
    if ((now_ms - link->since_ms) < net->silence_ms) {
        /* It may well be silent for so long. */
    } else if (!link->is_asked) {
        /* Without room for PING there is so much under way that TCP finds out itself. */
        link->is_asked = (uint8_t)(zmtp_link_ping(link, 0) == 0);
        link->since_ms = now_ms;
    } else if (!zmtp_net_serve(net, link)) {
        zmtp_net_end(net, link, ZMTP_GONE);
    } else {
        /* It has answered. */
    }
    return (wait_ms < net->silence_ms) ? wait_ms : net->silence_ms;
}
#endif

uint32_t zmtp_net_watch(zmtp_net_t *net, uint32_t wait_ms)
{
    uint32_t i;
    for (i = 0; i < net->count; i++) {
        zmtp_link_t *link = &net->links[i];
        if ((link->state != (uint8_t)ZMTP_LINK_FREE) && !zmtp_is_ready(&link->zmtp)) {
            wait_ms = watch_handshake(net, link, wait_ms);
#if ZMTP_WITH_PING
        } else if (link->state == (uint8_t)ZMTP_LINK_OPEN) {
            wait_ms = watch_silence(net, link, wait_ms);
#endif
        }
        if (link->state == (uint8_t)ZMTP_LINK_OPEN) {
            zmtp_net_flush(net, link);
        }
    }
    return wait_ms;
}
