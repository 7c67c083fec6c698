/* A use case on RIOT: a station with GNRC's TCP, and the call that the program is built with. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../station.h"
#include "use_case.h"
#include "net/gnrc/netif.h"
#ifdef MODULE_RIOT_NATIVE
#include "riot_native.h"
#endif
#include "zmtp_riot.h"
#include "ztimer.h"

#define PREFIX_BITS 64u
#define ARGUMENTS_MAX 8
#define CALL_MAX 96

/** Until the address is known to be nobody else's, and the other station has its own. */
#define BEGIN_MS 3000u

/** Until a peer has surely read what it has acknowledged: an end by abort takes that from it. */
#define YIELD_MS 200u

int station_begin(zmtp_net_t *net)
{
    static sock_tcp_t sockets[STATION_LINKS_MAX];
    static zmtp_riot_t riot = {.sockets = sockets};
    net->port = &riot;
    return 1;
}

uint32_t station_now_us(void)
{
    return ztimer_now(ZTIMER_USEC);
}

void station_turn(zmtp_net_t *net, uint32_t wait_ms)
{
    (void)zmtp_net_turn(net, wait_ms);
}

int station_has_sent(const zmtp_link_t *link)
{
    (void)link;
    return 1; /* a write lasts until it is acknowledged */
}

int station_has_arrived(const zmtp_link_t *link)
{
    (void)link;
    return 1; /* as above */
}

void station_compute(uint32_t cycles)
{
    (void)cycles;
}

void station_work(uint32_t us)
{
    ztimer_sleep(ZTIMER_USEC, us);
}

void station_yield(void)
{
    ztimer_sleep(ZTIMER_MSEC, YIELD_MS);
}

void station_settle(void)
{
    /* Connections end by abort. */
}

void station_linger(void)
{
    /* And nothing waits behind that. */
}

/** What the environment says, which only native has, or else what the program was built with. */
static const char *told(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return (value == NULL) ? otherwise : value;
}

int main(void)
{
    static char call[CALL_MAX];
    static char name[] = "use_case";
    char *arguments[ARGUMENTS_MAX] = {name};
    int count = 1;
    char *next;
    ipv6_addr_t address;
#ifdef MODULE_RIOT_NATIVE
    riot_native_begin();
#endif
    (void)snprintf(call, sizeof call, "%s", told("CALL", CALL));
    next = strtok(call, ",");
    while ((next != NULL) && (count < ARGUMENTS_MAX)) {
        arguments[count++] = next;
        next = strtok(NULL, ",");
    }
    (void)ipv6_addr_from_str(&address, told("ADDRESS", ADDRESS));
    (void)gnrc_netif_ipv6_addr_add(gnrc_netif_iter(NULL), &address, PREFIX_BITS, 0);
    ztimer_sleep(ZTIMER_MSEC, BEGIN_MS);
    return use_case(count, arguments);
}
