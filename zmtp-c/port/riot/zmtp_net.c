/*
 * Links over RIOT's sock_tcp with GNRC's TCP, on the one thread that calls zmtp_net_turn.
 *
 * A write lasts until the peer's TCP has acknowledged it (GNRC has one segment under way), so what waits goes out in one write. Connections end by abort: a close
 * would hold the thread for TIME_WAIT, a minute. A connect blocks for CONFIG_GNRC_TCP_CONNECTION_TIMEOUT_DURATION_MS at the most: set it to a few seconds.
 */

#include "../port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/gnrc/tcp.h"
#include "net/sock/util.h"
#include "zmtp_riot.h"
#include "ztimer.h"

/** How long the thread sleeps when nothing has come. */
#define NAP_MS 1u

/** "[address%interface]:port". */
#define ENDPOINT_MAX 64u

uint32_t zmtp_net_now_ms(void)
{
    return ztimer_now(ZTIMER_MSEC);
}

int32_t zmtp_net_open(zmtp_net_t *net)
{
    net->listener.socket = NULL;
    return ((net->count <= ZMTP_NET_LINKS_MAX) && (net->port != NULL)) ? 0 : (int32_t)ZMTP_ARGUMENT;
}

/** An address and a port in text, as RIOT reads them: nonzero, if they are such. */
static int read_endpoint(const char *address, uint16_t port, sock_tcp_ep_t *endpoint)
{
    char text[ENDPOINT_MAX];
    int size = snprintf(text, sizeof text, "[%s]:%u", address, (unsigned)port);
    return (size > 0) && ((size_t)size < sizeof text) && (sock_tcp_str2ep(endpoint, text) == 0);
}

int32_t zmtp_net_listen(zmtp_net_t *net, const char *address, uint16_t port)
{
    zmtp_riot_t *riot = net->port;
    sock_tcp_ep_t local;
    memset(&local, 0, sizeof local);
    local.family = AF_INET6;
    local.port = port;
    if (((address != NULL) && !read_endpoint(address, port, &local)) || (port == 0u) ||
        (sock_tcp_listen(&riot->queue, &local, riot->sockets, net->count, 0) != 0)) {
        return ZMTP_GONE;
    }
    net->listener.socket = &riot->queue;
    return port;
}

void zmtp_net_listen_no_more(zmtp_net_t *net)
{
    sock_tcp_stop_listen(net->listener.socket);
    net->listener.socket = NULL;
}

zmtp_link_t *zmtp_net_connect(zmtp_net_t *net, const char *address, uint16_t port, const zmtp_end_t *end)
{
    zmtp_riot_t *riot = net->port;
    sock_tcp_ep_t remote;
    zmtp_link_t *link = read_endpoint(address, port, &remote) ? zmtp_net_begin(net, end, ZMTP_LINK_CONNECTING) : NULL;
    if (link != NULL) {
        sock_tcp_t *socket = &riot->sockets[link - net->links];
        link->found = sock_tcp_connect(socket, &remote, 0, 0) != 0; /* told in the next turn */
        link->port.socket = socket;
        link->state = ZMTP_LINK_OPEN;
    }
    return link;
}

int32_t zmtp_port_send(zmtp_link_t *link, const uint8_t *octets, uint32_t size)
{
    ssize_t sent = link->found ? -ENOTCONN : sock_tcp_write(link->port.socket, octets, size);
    link->found |= sent < 0;
    return (sent >= 0) ? (int32_t)sent : (int32_t)ZMTP_GONE;
}

int32_t zmtp_port_read(zmtp_link_t *link, uint8_t *octets, uint32_t size)
{
    ssize_t count = link->found ? -ENOTCONN : sock_tcp_read(link->port.socket, octets, size, 0);
    return (count > 0) ? (int32_t)count : ((count == -EAGAIN) ? 0 : (int32_t)ZMTP_GONE);
}

void zmtp_port_close(zmtp_link_t *link)
{
    gnrc_tcp_abort(link->port.socket);
}

static void accept_next(zmtp_net_t *net)
{
    sock_tcp_t *socket = NULL;
    zmtp_link_t *link = NULL;
    if ((net->listener.socket != NULL) && (sock_tcp_accept(net->listener.socket, &socket, 0) == 0)) {
        link = zmtp_net_begin(net, &net->accepted, ZMTP_LINK_OPEN);
        if (link != NULL) {
            link->port.socket = socket;
        } else {
            gnrc_tcp_abort(socket);
        }
    }
}

int32_t zmtp_net_turn(zmtp_net_t *net, uint32_t wait_ms)
{
    uint32_t began_ms = zmtp_net_now_ms();
    int has_read = 0;
    wait_ms = zmtp_net_watch(net, wait_ms);
    do {
        uint32_t i;
        accept_next(net);
        for (i = 0; i < net->count; i++) {
            if (net->links[i].state == (uint8_t)ZMTP_LINK_OPEN) {
                has_read |= zmtp_net_serve(net, &net->links[i]);
            }
        }
        if (!has_read && (wait_ms > 0u)) {
            ztimer_sleep(ZTIMER_MSEC, NAP_MS);
        }
    } while (!has_read && ((zmtp_net_now_ms() - began_ms) < wait_ms));
    return 0;
}
