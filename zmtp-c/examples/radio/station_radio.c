/*
 * A station on an emulated radio, in virtual time: lwIP over 6LoWPAN and IEEE 802.15.4.
 *
 * Descriptor 0 is a socket to the channel, of which every station is told what it hears, and when it is (crates/bench/src/taskfarm in the tree). One station runs at a
 * time, until it tells the channel what it does next; so nothing depends on the speed of the machine, and a run is the same again from the same seed.
 *
 * A message is a kind, microseconds (8 octets, big-endian), a size (2 octets, big-endian) and so many octets:
 *
 *     from the station  'w' until then, or a frame, it waits   's' it sends this frame   'c' it computes for so long
 *     to the station    'g' it is then: it goes on             'f' it is then, and this frame has come (while it waits only)
 *
 * STATION_NUMBER (1 to 65533) is its short address and the end of its IPv6 address, fe80::ff:fe00:NUMBER in hexadecimal; STATION_SEED seeds its random numbers. sys_now takes
 * the place of that of lwIP's shared library.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../station.h"

#include "lwip/init.h"
#include "lwip/ip6_addr.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/sys.h"
#include "lwip/timeouts.h"
#include "netif/lowpan6.h"

#define CHANNEL 0
#define HEAD_SIZE 11u

/** Octets of a frame of IEEE 802.15.4, its check sequence included. */
#define FRAME_MAX 127u

/** Where the short address of its sender begins in a frame, and what the long one has that means the same, from its end: 02:00:00:ff:fe:00 and the short one. */
#define FROM_AT 7u
#define SHORT_SIZE 2u
#define LONG_SIZE 8u
#define LONG_FROM 0x40u

/** The check sequence at a frame's end, which the radio itself makes and takes away. */
#define CHECK_SIZE 2u

/** Clock of a station's processor: the STM32F103 of an M3 node at its full speed. */
#define CYCLES_PER_US 72u

/** How long the end of a connection may take before a station goes: all that was to be said has arrived. */
#define SETTLE_US 120000000u

/** How long it stays behind that, longer than its peer waits until it sends again. */
#define LINGER_US 3000000u

enum { WAITS = 'w', SENDS = 's', COMPUTES = 'c', GOES_ON = 'g', HEARS = 'f' };

static uint64_t now_us;
static struct netif radio;

/** lwIP's clock. */
u32_t sys_now(void)
{
    return (u32_t)(now_us / 1000u);
}

/** The channel is gone, or talks nonsense: a station without one has nothing to do. */
static void demand(int condition)
{
    if (!condition) {
        exit(3);
    }
}

static void read_all(uint8_t *octets, size_t size)
{
    size_t have = 0;
    while (have < size) {
        ssize_t count = read(CHANNEL, &octets[have], size - have);
        demand(count > 0);
        have += (size_t)count;
    }
}

/** Gives lwIP a frame. Version 2.1 reads none whose sender has a short address, so it is given the long one. */
static void hear(const uint8_t *frame, size_t size)
{
    static const uint8_t END[LONG_SIZE - SHORT_SIZE] = {0, 0xfe, 0xff, 0, 0, 2};
    struct pbuf *heard;
    uint8_t *octets;
    demand(size >= (FROM_AT + SHORT_SIZE + CHECK_SIZE));
    size -= CHECK_SIZE;
    heard = pbuf_alloc(PBUF_RAW, (u16_t)(size + sizeof END), PBUF_RAM);
    demand(heard != NULL);
    octets = heard->payload;
    memcpy(octets, frame, FROM_AT + SHORT_SIZE);
    octets[1] |= LONG_FROM;
    memcpy(&octets[FROM_AT + SHORT_SIZE], END, sizeof END);
    memcpy(&octets[FROM_AT + LONG_SIZE], &frame[FROM_AT + SHORT_SIZE], size - FROM_AT - SHORT_SIZE);
    (void)lowpan6_input(heard, &radio);
}

/** Tells the channel what this station does, and goes on when it is told to; a frame that has come is lwIP's. */
static void tell(uint8_t kind, uint64_t us, const uint8_t *frame, size_t size)
{
    uint8_t message[HEAD_SIZE + FRAME_MAX];
    size_t i;
    message[0] = kind;
    for (i = 0; i < 8u; i++) {
        message[1u + i] = (uint8_t)(us >> (56u - (8u * i)));
    }
    message[9] = (uint8_t)(size >> 8);
    message[10] = (uint8_t)size;
    if (size > 0u) {
        memcpy(&message[HEAD_SIZE], frame, size);
    }
    demand(write(CHANNEL, message, HEAD_SIZE + size) == (ssize_t)(HEAD_SIZE + size));
    read_all(message, HEAD_SIZE);
    for (now_us = 0, i = 0; i < 8u; i++) {
        now_us = (now_us << 8) | message[1u + i];
    }
    size = ((size_t)message[9] << 8) | message[10];
    demand((message[0] == (uint8_t)GOES_ON) ? (size == 0u) : ((message[0] == (uint8_t)HEARS) && (kind == (uint8_t)WAITS) && (size <= FRAME_MAX)));
    if (size > 0u) {
        read_all(message, size);
        hear(message, size);
    }
}

/** Sends a frame: the station goes on when its radio is free again, as it has one buffer only. */
static err_t send_frame(struct netif *out, struct pbuf *frame)
{
    uint8_t octets[FRAME_MAX];
    u16_t size = pbuf_copy_partial(frame, octets, sizeof octets, 0);
    (void)out;
    demand(size == frame->tot_len);
    tell(SENDS, 0, octets, size);
    return ERR_OK;
}

static err_t begin_radio(struct netif *begun)
{
    begun->hwaddr_len = 6; /* of no use: addresses are short ones */
    begun->linkoutput = send_frame;
    return lowpan6_if_init(begun);
}

static void age_fragments(void *nothing)
{
    (void)nothing;
    lowpan6_tmr();
    sys_timeout(LOWPAN6_TMR_INTERVAL, age_fragments, NULL);
}

int station_begin(zmtp_net_t *net)
{
    const char *number_text = getenv("STATION_NUMBER");
    const char *seed_text = getenv("STATION_SEED");
    uint32_t number = (number_text == NULL) ? 0u : (uint32_t)strtoul(number_text, NULL, 10);
    ip6_addr_t address;
    (void)net;
    if ((number == 0u) || (number > 0xfffdu) || (seed_text == NULL)) {
        return 0;
    }
    tell(WAITS, 0, NULL, 0); /* until it is switched on */
    srand((unsigned)strtoul(seed_text, NULL, 10));
    lwip_init();
    (void)netif_add(&radio, NULL, NULL, NULL, NULL, begin_radio, lowpan6_input);
    (void)lowpan6_set_short_addr((u8_t)(number >> 8), (u8_t)number);
    netif_set_default(&radio);
    netif_set_up(&radio);
    netif_set_link_up(&radio);
    IP6_ADDR(&address, PP_HTONL(0xfe800000), 0, PP_HTONL(0x000000ff), lwip_htonl(0xfe000000u | number));
    ip6_addr_assign_zone(&address, IP6_UNICAST, &radio);
    netif_ip6_addr_set(&radio, 0, &address);
    netif_ip6_addr_set_state(&radio, 0, IP6_ADDR_PREFERRED);
    radio.rs_count = 0; /* there is no router to ask for */
    sys_timeout(LOWPAN6_TMR_INTERVAL, age_fragments, NULL);
    return 1;
}

uint32_t station_now_us(void)
{
    return (uint32_t)now_us;
}

void station_compute(uint32_t cycles)
{
    tell(COMPUTES, (cycles + CYCLES_PER_US - 1u) / CYCLES_PER_US, NULL, 0);
}

void station_work(uint32_t us)
{
    tell(COMPUTES, us, NULL, 0);
}

/** Waits for a frame, for lwIP's next timer, or so long. */
static void wait(uint32_t wait_ms)
{
    uint32_t timer_ms = sys_timeouts_sleeptime();
    tell(WAITS, now_us + (1000u * (uint64_t)LWIP_MIN(wait_ms, timer_ms)), NULL, 0);
    sys_check_timeouts();
}

void station_turn(zmtp_net_t *net, uint32_t wait_ms)
{
    int has_come = 0;
    uint32_t i;
    for (i = 0; i < net->count; i++) {
        if (net->links[i].state == (uint8_t)ZMTP_LINK_OPEN) {
            zmtp_net_flush(net, &net->links[i]);
            has_come |= (net->links[i].received != NULL) && !net->links[i].holds;
        }
    }
    wait(has_come ? 0u : wait_ms);
    (void)zmtp_net_turn(net, 0);
}

int station_has_sent(const zmtp_link_t *link)
{
    const struct tcp_pcb *pcb = link->port.socket;
    return (pcb == NULL) || (pcb->unsent == NULL);
}

int station_has_arrived(const zmtp_link_t *link)
{
    const struct tcp_pcb *pcb = link->port.socket;
    return (pcb == NULL) || ((pcb->unsent == NULL) && (pcb->unacked == NULL));
}

void station_yield(void)
{
    /* What is sent arrives. */
}

void station_settle(void)
{
    uint64_t began_us = now_us;
    while ((tcp_active_pcbs != NULL) && ((now_us - began_us) < SETTLE_US)) {
        wait(1000);
    }
}

void station_linger(void)
{
    uint64_t began_us = now_us;
    while ((now_us - began_us) < LINGER_US) {
        wait(1000);
    }
}
