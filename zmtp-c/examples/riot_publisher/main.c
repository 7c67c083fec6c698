/* A sensor on RIOT that publishes to a reliable pair of Bodkin, an event each 10 ms, and says when all are covered. */

#include <stdio.h>
#include <string.h>
#ifdef MODULE_SNTP
#include "net/ntp_packet.h"
#include "net/sntp.h"
#include "net/sock/util.h"
#else
#include <time.h>
#endif

#include "bodkin_sessions.h"
#include "net/gnrc/netif.h"
#ifdef MODULE_RIOT_NATIVE
#include "riot_native.h"
#endif
#include "zmtp_riot.h"
#include "ztimer.h"

#define PERIOD_MS 10u
#define RETENTION 200u
#define CAPACITY 256u
#define PAYLOAD_MAX 16u

/** The node's own address, in the brokers' network. */
#define ADDRESS "fd00:9::7"
#define PREFIX_BITS 64u

static zmtp_link_t links[BODKIN_SESSIONS];
static sock_tcp_t sockets[BODKIN_SESSIONS];
static zmtp_riot_t riot = {.sockets = sockets};
static uint8_t in[BODKIN_SESSIONS][256];
static uint8_t out[BODKIN_SESSIONS][1024];
static uint8_t input[512];
static const zmtp_link_memory_t MEMORIES[BODKIN_SESSIONS] = {{in[0], sizeof in[0], out[0], sizeof out[0]},
                                                             {in[1], sizeof in[1], out[1], sizeof out[1]}};
static bodkin_kept_t kept[CAPACITY];
static uint8_t payloads[CAPACITY * PAYLOAD_MAX];
static bodkin_topic_t topic = {.name = "HOT", .kept = kept, .payloads = payloads, .capacity = CAPACITY, .payload_max = PAYLOAD_MAX,
                               .retention = RETENTION};

#ifdef MODULE_SNTP
/** How long the time server may take, and how long after that it is asked again. */
#define TIME_SERVER_US 1000000u

/** Asks the time server until it has told the time; zero, if TIME_SERVER is no address. */
static int set_clock(void)
{
    sock_udp_ep_t server;
    if (sock_udp_str2ep(&server, "[" TIME_SERVER "]") != 0) {
        return 0;
    }
    server.port = NTP_PORT;
    while (sntp_sync(&server, TIME_SERVER_US) != 0) {
        ztimer_sleep(ZTIMER_USEC, TIME_SERVER_US);
    }
    return 1;
}

/** Nanoseconds since 1970, by the time server and the board's timer. */
static uint64_t utc_ns(void)
{
    return sntp_get_unix_usec() * 1000u;
}
#else
/** That of the host is right. */
static int set_clock(void)
{
    return 1;
}

/** Nanoseconds since 1970, of the host that runs native. */
static uint64_t utc_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec * 1000000000u) + (uint64_t)now.tv_nsec;
}
#endif

static void told(bodkin_node_t *node, bodkin_told_t what, const bodkin_topic_t *of, uint64_t number, uint8_t reason)
{
    static const char *const WORDS[] = {"leads", "leaderless", "covered", "dropped", "not taken", "excess", "lost", "guarantee"};
    (void)node;
    (void)of;
    if (what != BODKIN_COVERED) {
        printf("%s %lu %u\n", WORDS[what], (unsigned long)number, (unsigned)reason);
    }
}

int main(void)
{
    static zmtp_net_t net = {.links = links, .memories = MEMORIES, .count = BODKIN_SESSIONS, .input = input, .input_size = sizeof input, .port = &riot};
    static bodkin_node_t node = {.name = "sensor", .topics = &topic, .topics_count = 1, .utc_ns = utc_ns, .told = told, .watches_guarantee = 1};
    static bodkin_sessions_t sessions = {.node = &node, .net = &net, .brokers = {{.address = BROKER_1, .port = PORT_1}, {.address = BROKER_2, .port = PORT_2}}};
    gnrc_netif_t *netif = gnrc_netif_iter(NULL);
    ipv6_addr_t address;
    unsigned long number;
#ifdef MODULE_RIOT_NATIVE
    riot_native_begin();
#endif
    (void)ipv6_addr_from_str(&address, ADDRESS);
    (void)gnrc_netif_ipv6_addr_add(netif, &address, PREFIX_BITS, 0);
    ztimer_sleep(ZTIMER_MSEC, 2000); /* until the address is known to be nobody else's */
    if (!set_clock()) {
        puts("TIME_SERVER is no address");
        return 1;
    }
    node.incarnation = utc_ns();
    if ((zmtp_net_open(&net) != 0) || (bodkin_open(&node) != 0) || (bodkin_sessions_open(&sessions) != 0)) {
        puts("the settings are not possible");
        return 1;
    }
    for (number = 1; number <= (unsigned long)EVENTS; number++) {
        char payload[PAYLOAD_MAX];
        int size = snprintf(payload, sizeof payload, "%lu", number);
        while (bodkin_publish(&node, &topic, payload, (uint32_t)size) == (int32_t)ZMTP_ROOM) {
            (void)bodkin_sessions_turn(&sessions, 1);
        }
        (void)bodkin_sessions_turn(&sessions, PERIOD_MS);
    }
    while (topic.covered < topic.newest) {
        (void)bodkin_sessions_turn(&sessions, 10);
    }
    printf("all %lu events are covered\n", (unsigned long)topic.covered);
    return 0;
}
