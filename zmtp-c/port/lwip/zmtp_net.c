/*
 * Links over lwIP's raw API (2.1), without a thread.
 *
 * With NO_SYS a turn runs lwIP's timers, and the caller polls its network interface beside it. Beside a tcpip thread every call here is made with the core
 * locked (LOCK_TCPIP_CORE), as the raw API asks. Either way a turn does not wait, and what has come is told in it.
 */

#include "../port.h"

#include "lwip/sys.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"

uint32_t zmtp_net_now_ms(void)
{
    return sys_now();
}

int32_t zmtp_net_open(zmtp_net_t *net)
{
    net->listener.socket = NULL;
    return (net->count <= ZMTP_NET_LINKS_MAX) ? 0 : (int32_t)ZMTP_ARGUMENT;
}

/** Octets have come, or the peer's end of them: they wait for the next turn. */
static err_t received(void *link_pointer, struct tcp_pcb *pcb, struct pbuf *octets, err_t error)
{
    zmtp_link_t *link = link_pointer;
    (void)pcb;
    link->found |= (octets == NULL) || (error != ERR_OK);
    if (link->received == NULL) {
        link->received = octets;
    } else if (octets != NULL) {
        pbuf_cat(link->received, octets);
    }
    return ERR_OK;
}

/** The connection has failed, and its pcb is gone. */
static void failed(void *link_pointer, err_t error)
{
    zmtp_link_t *link = link_pointer;
    link->port.socket = NULL;
    link->found = error;
}

static err_t connected(void *link_pointer, struct tcp_pcb *pcb, err_t error)
{
    zmtp_link_t *link = link_pointer;
    link->port.socket = pcb;
    link->state = ZMTP_LINK_OPEN;
    return error;
}

static void attach(zmtp_link_t *link, struct tcp_pcb *pcb)
{
    link->port.socket = pcb;
    link->received = NULL;
    tcp_nagle_disable(pcb);
    tcp_arg(pcb, link);
    tcp_recv(pcb, received);
    tcp_err(pcb, failed);
}

static err_t accepted(void *net_pointer, struct tcp_pcb *pcb, err_t error)
{
    zmtp_net_t *net = net_pointer;
    zmtp_link_t *link = (error == ERR_OK) ? zmtp_net_begin(net, &net->accepted, ZMTP_LINK_OPEN) : NULL;
    if (link == NULL) {
        tcp_abort(pcb);
        return ERR_ABRT;
    }
    attach(link, pcb);
    return ERR_OK;
}

int32_t zmtp_net_listen(zmtp_net_t *net, const char *address, uint16_t port)
{
    struct tcp_pcb *pcb = tcp_new_ip_type(IPADDR_TYPE_ANY);
    ip_addr_t at = *IP_ANY_TYPE;
    int binds = (pcb != NULL) && ((address == NULL) || ipaddr_aton(address, &at)) && (tcp_bind(pcb, &at, port) == ERR_OK);
    net->listener.socket = binds ? tcp_listen(pcb) : NULL; /* a smaller pcb, for which lwIP takes the first one back; unless there is no memory for it */
    if (net->listener.socket == NULL) {
        (void)tcp_close(pcb); /* of none it says ERR_ARG */
        return ZMTP_GONE;
    }
    tcp_arg(net->listener.socket, net);
    tcp_accept(net->listener.socket, accepted);
    return ((struct tcp_pcb *)net->listener.socket)->local_port;
}

void zmtp_net_listen_no_more(zmtp_net_t *net)
{
    (void)tcp_close(net->listener.socket);
    net->listener.socket = NULL;
}

zmtp_link_t *zmtp_net_connect(zmtp_net_t *net, const char *address, uint16_t port, const zmtp_end_t *end)
{
    ip_addr_t to;
    struct tcp_pcb *pcb = ipaddr_aton(address, &to) ? tcp_new_ip_type(IP_GET_TYPE(&to)) : NULL;
    zmtp_link_t *link = (pcb == NULL) ? NULL : zmtp_net_begin(net, end, ZMTP_LINK_CONNECTING);
    if (link == NULL) {
        (void)tcp_close(pcb);
        return NULL;
    }
    attach(link, pcb);
    link->found = tcp_connect(pcb, &to, port, connected) != ERR_OK; /* told in the next turn */
    return link;
}

int32_t zmtp_port_send(zmtp_link_t *link, const uint8_t *octets, uint32_t size)
{
    struct tcp_pcb *pcb = link->port.socket;
    uint32_t room = ((pcb == NULL) || (tcp_sndqueuelen(pcb) >= ZMTP_NET_SEGMENTS_MAX)) ? 0u : tcp_sndbuf(pcb);
    uint16_t count = (uint16_t)LWIP_MIN(LWIP_MIN(size, room), 0xffffu);
    if ((count == 0u) || (tcp_write(pcb, octets, count, TCP_WRITE_FLAG_COPY) != ERR_OK)) {
        return 0;
    }
    (void)tcp_output(pcb);
    return count;
}

int32_t zmtp_port_read(zmtp_link_t *link, uint8_t *octets, uint32_t size)
{
    uint16_t count = 0;
    if (link->received == NULL) {
        return link->found ? (int32_t)ZMTP_GONE : 0;
    }
    count = pbuf_copy_partial(link->received, octets, (uint16_t)LWIP_MIN(size, 0xffffu), 0);
    link->received = pbuf_free_header(link->received, count);
    if (link->port.socket != NULL) {
        tcp_recved(link->port.socket, count);
    }
    return count;
}

void zmtp_port_close(zmtp_link_t *link)
{
    struct tcp_pcb *pcb = link->port.socket;
    if (link->received != NULL) {
        (void)pbuf_free(link->received);
        link->received = NULL;
    }
    if (pcb != NULL) {
        tcp_arg(pcb, NULL);
        tcp_recv(pcb, NULL);
        tcp_err(pcb, NULL);
        if (tcp_close(pcb) != ERR_OK) {
            tcp_abort(pcb);
        }
        link->port.socket = NULL; /* lwIP frees it */
    }
}

int32_t zmtp_net_turn(zmtp_net_t *net, uint32_t wait_ms)
{
    uint32_t i;
#if NO_SYS
    sys_check_timeouts();
#endif
    (void)zmtp_net_watch(net, wait_ms);
    for (i = 0; i < net->count; i++) {
        zmtp_link_t *link = &net->links[i];
        if ((link->state == (uint8_t)ZMTP_LINK_CONNECTING) && link->found) {
            zmtp_net_end(net, link, ZMTP_GONE);
        }
        if (link->state == (uint8_t)ZMTP_LINK_OPEN) {
            (void)zmtp_net_serve(net, link);
        }
    }
    return 0;
}
