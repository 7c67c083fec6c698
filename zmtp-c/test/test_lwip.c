/* The lwIP port, both ends in one lwIP: what was sent is heard, in as few segments as was promised. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/prot/ip4.h"
#include "lwip/prot/tcp.h"
#include "lwip/tcpip.h"
#include "zmtp_net.h"

int checks_failed = 0;
const char *check_about = "";

#define LINKS 2u
#define PATIENCE_TURNS 50000
#define TURN_US 100

/** A netif whose other side is itself: the far address is its own with source and destination changed over, which leaves checksums as they are. */
static struct netif netif;
static unsigned data_segments;
static unsigned segments;

static err_t send_packet(struct netif *out, struct pbuf *packet, const ip4_addr_t *to)
{
    struct pbuf *copy = pbuf_clone(PBUF_RAW, PBUF_RAM, packet);
    struct ip_hdr *head = copy->payload;
    struct tcp_hdr *tcp = (void *)((uint8_t *)copy->payload + IPH_HL_BYTES(head));
    ip4_addr_p_t source = head->src;
    (void)to;
    head->src = head->dest;
    head->dest = source;
    segments++;
    data_segments += (lwip_ntohs(IPH_LEN(head)) - IPH_HL_BYTES(head) - TCPH_HDRLEN_BYTES(tcp)) > 0;
    return tcpip_input(copy, out);
}

static err_t begin_netif(struct netif *begun)
{
    begun->name[0] = 'z';
    begun->name[1] = 'c';
    begun->mtu = 1500;
    begun->output = send_packet;
    return ERR_OK;
}

static zmtp_link_t links[2][LINKS];
static uint8_t in[2][LINKS][128];
static uint8_t out[2][LINKS][8192];
static uint8_t input[2][512];
static zmtp_link_memory_t memories[2][LINKS];
static zmtp_settings_t settings[2];
static zmtp_net_t nets[2];
static unsigned ready[2];
static unsigned gone[2];
static unsigned frames[2];
static uint32_t octets[2];

static void heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    uint32_t side = *(const uint32_t *)link->owner;
    ready[side] += what == (int32_t)ZMTP_READY;
    gone[side] += what < 0;
    if (what == (int32_t)ZMTP_FRAME) {
        octets[side] += event->size;
        frames[side] += !event->goes_on;
    }
}

static void begin(void)
{
    static uint32_t sides[2] = {0, 1};
    uint32_t side;
    uint32_t i;
    memset(links, 0, sizeof links);
    memset(ready, 0, sizeof ready);
    memset(gone, 0, sizeof gone);
    memset(frames, 0, sizeof frames);
    memset(octets, 0, sizeof octets);
    settings[0] = (zmtp_settings_t){.socket_type = ZMTP_ROUTER, .waits = 1};
    settings[1] = (zmtp_settings_t){.socket_type = ZMTP_DEALER};
    for (side = 0; side < 2u; side++) {
        for (i = 0; i < LINKS; i++) {
            memories[side][i] = (zmtp_link_memory_t){in[side][i], sizeof in[side][i], out[side][i], sizeof out[side][i]};
        }
        nets[side] = (zmtp_net_t){.links = links[side], .memories = memories[side], .count = LINKS, .input = input[side], .input_size = sizeof input[side]};
        nets[side].accepted = (zmtp_end_t){&settings[side], heard, &sides[side]};
        CHECK(zmtp_net_open(&nets[side]) == 0);
    }
}

static void turn_both(void)
{
    LOCK_TCPIP_CORE();
    CHECK(zmtp_net_turn(&nets[0], 0) == 0);
    CHECK(zmtp_net_turn(&nets[1], 0) == 0);
    UNLOCK_TCPIP_CORE();
    (void)usleep(TURN_US);
}

static void until(const unsigned *counter, unsigned expected)
{
    int turns = PATIENCE_TURNS;
    while ((*counter < expected) && (turns-- > 0)) {
        turn_both();
    }
    CHECK(*counter == expected);
}

/** What is on its way arrives, acknowledgements too. */
static void settle(void)
{
    int turns;
    for (turns = 0; turns < 20; turns++) {
        turn_both();
    }
    data_segments = 0;
    segments = 0;
}

static zmtp_link_t *connect_both(void)
{
    zmtp_link_t *link;
    int32_t port;
    begin();
    LOCK_TCPIP_CORE();
    port = zmtp_net_listen(&nets[0], NULL, 0);
    link = zmtp_net_connect(&nets[1], "10.9.0.2", (uint16_t)port, &nets[1].accepted);
    UNLOCK_TCPIP_CORE();
    CHECK((port > 0) && (link != NULL));
    until(&ready[0], 1);
    until(&ready[1], 1);
    return link;
}

static void end_both(zmtp_link_t *link)
{
    LOCK_TCPIP_CORE();
    zmtp_net_close(&nets[1], link);
    zmtp_net_listen_no_more(&nets[0]);
    UNLOCK_TCPIP_CORE();
    until(&gone[0], 1);
    CHECK(gone[1] == 0u);
}

static void a_connection_is_ready_after_two_segments_with_data(void)
{
    data_segments = 0;
    end_both(connect_both());
    CHECK(data_segments == 2u);
}

static void a_message_is_one_segment_and_queued_ones_share_it(void)
{
    unsigned i;
    zmtp_link_t *link = connect_both();
    settle();
    for (i = 1; i <= 20u; i++) {
        LOCK_TCPIP_CORE();
        CHECK(zmtp_link_send_one(link, "0123456789abcdef", 16) == 0);
        UNLOCK_TCPIP_CORE();
        until(&frames[0], i);
    }
    CHECK(data_segments == 20u);
    settle();
    LOCK_TCPIP_CORE();
    for (i = 0; i < 60u; i++) {
        CHECK(zmtp_link_send_one(link, "0123456789abcdef", 16) == 0);
    }
    UNLOCK_TCPIP_CORE();
    until(&frames[0], 80);
    CHECK(data_segments == 1u);
    end_both(link);
}

static void long_messages_come_both_ways(void)
{
    static uint8_t body[7000];
    unsigned i;
    zmtp_link_t *link = connect_both();
    for (i = 1; i <= 20u; i++) {
        LOCK_TCPIP_CORE();
        CHECK(zmtp_link_send_one(link, body, sizeof body) == 0);
        CHECK(zmtp_link_send_one(&links[0][0], body, sizeof body) == 0);
        UNLOCK_TCPIP_CORE();
        until(&frames[0], i);
        until(&frames[1], i);
    }
    CHECK((octets[0] == (20u * sizeof body)) && (octets[1] == (20u * sizeof body)));
    end_both(link);
}

static void who_is_refused_is_told_gone(void)
{
    begin();
    LOCK_TCPIP_CORE();
    CHECK(zmtp_net_connect(&nets[1], "10.9.0.2", 9, &nets[1].accepted) != NULL);
    CHECK(zmtp_net_connect(&nets[1], "nowhere", 9, &nets[1].accepted) == NULL);
    UNLOCK_TCPIP_CORE();
    until(&gone[1], 1);
    CHECK(links[1][0].state == (uint8_t)ZMTP_LINK_FREE);
}

/** What was begun for it is given back: else the sanitizer tells the leak. */
static void who_cannot_listen_is_told_and_nothing_is_lost(void)
{
    int32_t port;
    begin();
    LOCK_TCPIP_CORE();
    port = zmtp_net_listen(&nets[0], "10.9.0.1", 0);
    CHECK(port > 0);
    CHECK(zmtp_net_listen(&nets[1], "10.9.0.1", (uint16_t)port) == (int32_t)ZMTP_GONE);
    CHECK(zmtp_net_listen(&nets[1], "no address", 0) == (int32_t)ZMTP_GONE);
    zmtp_net_listen_no_more(&nets[1]);
    zmtp_net_listen_no_more(&nets[0]);
    CHECK(zmtp_net_listen(&nets[1], "10.9.0.1", (uint16_t)port) == port);
    zmtp_net_listen_no_more(&nets[1]);
    UNLOCK_TCPIP_CORE();
}

int main(void)
{
    ip4_addr_t address;
    ip4_addr_t mask;
    ip4_addr_t gateway;
    tcpip_init(NULL, NULL);
    IP4_ADDR(&address, 10, 9, 0, 1);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    IP4_ADDR(&gateway, 0, 0, 0, 0);
    LOCK_TCPIP_CORE();
    (void)netif_add(&netif, &address, &mask, &gateway, NULL, begin_netif, tcpip_input);
    netif_set_default(&netif);
    netif_set_up(&netif);
    netif_set_link_up(&netif);
    UNLOCK_TCPIP_CORE();
    TEST(a_connection_is_ready_after_two_segments_with_data);
    TEST(a_message_is_one_segment_and_queued_ones_share_it);
    TEST(long_messages_come_both_ways);
    TEST(who_is_refused_is_told_gone);
    TEST(who_cannot_listen_is_told_and_nothing_is_lost);
    return checks_failed != 0;
}
