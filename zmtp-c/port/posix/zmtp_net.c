/* Links over POSIX sockets and poll. */

#include "../port.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 64

uint32_t zmtp_net_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint32_t)now.tv_sec * 1000u) + (uint32_t)(now.tv_nsec / 1000000);
}

int32_t zmtp_net_open(zmtp_net_t *net)
{
    net->listener.descriptor = -1;
    return (net->count <= ZMTP_NET_LINKS_MAX) ? 0 : (int32_t)ZMTP_ARGUMENT;
}

static void prepare(int fd)
{
    int one = 1;
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
}

/** A socket at or towards an address; or -1. */
static int open_socket(const char *address, uint16_t port, int listens)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | (listens ? AI_PASSIVE : 0)};
    struct addrinfo *found = NULL;
    char text[6];
    int fd;
    int failed;
    (void)snprintf(text, sizeof text, "%u", port);
    if (getaddrinfo(address, text, &hints, &found) != 0) {
        return -1;
    }
    fd = socket(found->ai_family, SOCK_STREAM, 0);
    prepare(fd);
    failed = listens ? ((bind(fd, found->ai_addr, found->ai_addrlen) != 0) || (listen(fd, BACKLOG) != 0))
                     : ((connect(fd, found->ai_addr, found->ai_addrlen) != 0) && (errno != EINPROGRESS));
    freeaddrinfo(found);
    if (failed) {
        (void)close(fd);
    }
    return failed ? -1 : fd;
}

int32_t zmtp_net_listen(zmtp_net_t *net, const char *address, uint16_t port)
{
    struct sockaddr_in6 bound = {0};
    socklen_t size = sizeof bound;
    net->listener.descriptor = open_socket(address, port, 1);
    /* The port stands at the same place in addresses of either version. */
    return (getsockname(net->listener.descriptor, (struct sockaddr *)&bound, &size) == 0) ? ntohs(bound.sin6_port) : (int32_t)ZMTP_GONE;
}

void zmtp_net_listen_no_more(zmtp_net_t *net)
{
    (void)close(net->listener.descriptor);
    net->listener.descriptor = -1;
}

/** Begins a connection on a free link, or closes the socket. */
static zmtp_link_t *begin(zmtp_net_t *net, int fd, zmtp_link_state_t state, const zmtp_end_t *end)
{
    zmtp_link_t *link = (fd < 0) ? NULL : zmtp_net_begin(net, end, state);
    if (link != NULL) {
        link->port.descriptor = fd;
    } else {
        (void)close(fd);
    }
    return link;
}

zmtp_link_t *zmtp_net_connect(zmtp_net_t *net, const char *address, uint16_t port, const zmtp_end_t *end)
{
    return begin(net, open_socket(address, port, 0), ZMTP_LINK_CONNECTING, end);
}

int32_t zmtp_port_send(zmtp_link_t *link, const uint8_t *octets, uint32_t size)
{
    ssize_t sent = send(link->port.descriptor, octets, size, MSG_NOSIGNAL);
    return (sent >= 0) ? (int32_t)sent : (((errno == EAGAIN) || (errno == EINTR)) ? 0 : (int32_t)ZMTP_GONE);
}

int32_t zmtp_port_read(zmtp_link_t *link, uint8_t *octets, uint32_t size)
{
    ssize_t count = recv(link->port.descriptor, octets, size, 0);
    return (count > 0) ? (int32_t)count : (((count < 0) && ((errno == EAGAIN) || (errno == EINTR))) ? 0 : (int32_t)ZMTP_GONE);
}

void zmtp_port_close(zmtp_link_t *link)
{
    (void)close(link->port.descriptor);
}

/** What to wait for on a link. */
static struct pollfd wish(zmtp_link_t *link)
{
    struct pollfd polled = {(link->state == (uint8_t)ZMTP_LINK_FREE) ? -1 : link->port.descriptor, 0, 0};
    int writes = (link->state == (uint8_t)ZMTP_LINK_CONNECTING) || ((polled.fd >= 0) && (zmtp_link_waiting(link).size > 0u));
    polled.events = (short)((link->holds ? 0 : POLLIN) | (writes ? POLLOUT : 0));
    polled.fd = (polled.events == 0) ? -1 : polled.fd; /* whose end is not read is not told it in every turn either */
    return polled;
}

int32_t zmtp_net_turn(zmtp_net_t *net, uint32_t wait_ms)
{
    struct pollfd polled[ZMTP_NET_LINKS_MAX + 1u];
    uint32_t i;
    int fd;
    wait_ms = zmtp_net_watch(net, wait_ms);
    for (i = 0; i < net->count; i++) {
        polled[i] = wish(&net->links[i]);
    }
    polled[net->count] = (struct pollfd){net->listener.descriptor, POLLIN, 0};
    if ((poll(polled, (nfds_t)(net->count + 1u), (int)wait_ms) < 0) && (errno != EINTR)) {
        return ZMTP_GONE;
    }
    for (i = 0; i < net->count; i++) {
        net->links[i].found = polled[i].revents;
    }
    for (i = 0; i < net->count; i++) {
        /* A link that was begun since then has found nothing. */
        if ((net->links[i].state != (uint8_t)ZMTP_LINK_FREE) && (net->links[i].found != 0)) {
            net->links[i].state = ZMTP_LINK_OPEN;
            (void)zmtp_net_serve(net, &net->links[i]);
        }
    }
    while ((polled[net->count].revents != 0) && ((fd = accept(net->listener.descriptor, NULL, NULL)) >= 0)) {
        prepare(fd);
        (void)begin(net, fd, ZMTP_LINK_OPEN, &net->accepted);
    }
    return 0;
}
