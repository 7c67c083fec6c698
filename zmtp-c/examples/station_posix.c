/* A station on POSIX: its own clock, its own processor. */

#include "station.h"

#include <time.h>

int station_begin(zmtp_net_t *net)
{
    (void)net;
    return 1;
}

uint32_t station_now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint32_t)now.tv_sec * 1000000u) + (uint32_t)(now.tv_nsec / 1000);
}

void station_turn(zmtp_net_t *net, uint32_t wait_ms)
{
    (void)zmtp_net_turn(net, wait_ms);
}

int station_has_sent(const zmtp_link_t *link)
{
    (void)link;
    return 1;
}

int station_has_arrived(const zmtp_link_t *link)
{
    (void)link;
    return 1; /* the kernel goes on behind the end of a program */
}

void station_compute(uint32_t cycles)
{
    (void)cycles;
}

void station_work(uint32_t us)
{
    struct timespec rest;
    rest.tv_sec = (time_t)(us / 1000000u);
    rest.tv_nsec = (long)(us % 1000000u) * 1000L;
    (void)nanosleep(&rest, NULL);
}

void station_yield(void)
{
    /* What is sent arrives. */
}

void station_settle(void)
{
    /* The kernel ends what was closed. */
}

void station_linger(void)
{
    /* And waits in our place. */
}
