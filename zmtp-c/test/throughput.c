/**
 * Messages a second between two processes over loopback, ours and libzmq's: `throughput MESSAGES OCTETS ROUNDS`.
 *
 * A child sends, this process receives and takes the time from the first message to the last. Ours has one thread at either end, libzmq two. Rounds alternate,
 * the medians count; the status is 1 if ours is the slower one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "zmtp_net.h"

#define ROUNDS_MAX 15
#define MEMORY_MAX 65536u

typedef struct {
    const char *name;
    uint8_t sends;
    uint8_t receives;
    int zmq_sends;
    int zmq_receives;
} pair_t;

static const pair_t PAIRS[] = {{"PUSH to PULL", ZMTP_PUSH, ZMTP_PULL, ZMQ_PUSH, ZMQ_PULL},
                               {"DEALER to ROUTER", ZMTP_DEALER, ZMTP_ROUTER, ZMQ_DEALER, ZMQ_ROUTER}};

static unsigned long messages;
static uint32_t octets;
static uint8_t body[MEMORY_MAX];

static zmtp_link_t links[1];
static uint8_t in[1024];
static uint8_t out[MEMORY_MAX];
static uint8_t input[MEMORY_MAX];
static const zmtp_link_memory_t MEMORY[1] = {{in, sizeof in, out, sizeof out}};
static zmtp_settings_t settings;
static zmtp_net_t net;
static unsigned long heard_count;
static double first_s;

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + ((double)now.tv_nsec / 1e9);
}

static void heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    (void)link;
    (void)event;
    if (what == (int32_t)ZMTP_FRAME) {
        if (heard_count == 0u) {
            first_s = now_s();
        }
        heard_count++;
    }
}

static void open_ours(uint8_t type)
{
    memset(links, 0, sizeof links);
    memset(&settings, 0, sizeof settings);
    settings.socket_type = type;
    heard_count = 0;
    net = (zmtp_net_t){.links = links, .memories = MEMORY, .count = 1, .input = input, .input_size = sizeof input, .accepted = {&settings, heard, NULL}};
    (void)zmtp_net_open(&net);
}

static void send_ours(uint8_t type, uint16_t port)
{
    unsigned long sent = 0;
    zmtp_link_t *link;
    open_ours(type);
    link = zmtp_net_connect(&net, "127.0.0.1", port, &net.accepted);
    while ((link != NULL) && (sent < messages)) {
        while ((sent < messages) && (zmtp_link_send_one(link, body, octets) == 0)) {
            sent++;
        }
        zmtp_net_flush(&net, link);
        if ((zmtp_link_waiting(link).size > 0u) || !zmtp_is_ready(&link->zmtp)) {
            (void)zmtp_net_turn(&net, 1000);
        }
    }
    while ((link != NULL) && (zmtp_link_waiting(link).size > 0u)) {
        (void)zmtp_net_turn(&net, 1000);
    }
    _exit(0);
}

static void send_theirs(int type, const char *endpoint)
{
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, type);
    unsigned long sent;
    (void)zmq_connect(socket, endpoint);
    for (sent = 0; sent < messages; sent++) {
        (void)zmq_send(socket, body, octets, 0);
    }
    (void)zmq_close(socket);
    (void)zmq_ctx_term(context);
    _exit(0);
}

static double ours(const pair_t *pair)
{
    int32_t port;
    open_ours(pair->receives);
    port = zmtp_net_listen(&net, "127.0.0.1", 0);
    if (fork() == 0) {
        send_ours(pair->sends, (uint16_t)port);
    }
    while (heard_count < messages) {
        (void)zmtp_net_turn(&net, 1000);
    }
    first_s = (double)(messages - 1u) / (now_s() - first_s);
    zmtp_net_close(&net, &links[0]);
    zmtp_net_listen_no_more(&net);
    (void)wait(NULL);
    return first_s;
}

static double theirs(const pair_t *pair)
{
    char endpoint[64];
    size_t size = sizeof endpoint;
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, pair->zmq_receives);
    unsigned long frames = messages * ((pair->zmq_receives == ZMQ_ROUTER) ? 2u : 1u); /* its routing id is a frame */
    unsigned long count;
    (void)zmq_bind(socket, "tcp://127.0.0.1:*");
    (void)zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size);
    if (fork() == 0) {
        send_theirs(pair->zmq_sends, endpoint);
    }
    for (count = 0; count < frames; count++) {
        (void)zmq_recv(socket, input, sizeof input, 0);
        first_s = (count == 0u) ? now_s() : first_s;
    }
    first_s = (double)(messages - 1u) / (now_s() - first_s);
    (void)zmq_close(socket);
    (void)zmq_ctx_term(context);
    (void)wait(NULL);
    return first_s;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

int main(int count, char **arguments)
{
    double rates[2][ROUNDS_MAX];
    size_t pair;
    int rounds = (count > 3) ? atoi(arguments[3]) : 5;
    int is_slower = 0;
    messages = (count > 1) ? strtoul(arguments[1], NULL, 10) : 1000000u;
    octets = (count > 2) ? (uint32_t)strtoul(arguments[2], NULL, 10) : 16u;
    rounds = (rounds < ROUNDS_MAX) ? rounds : ROUNDS_MAX;
    for (pair = 0; pair < (sizeof PAIRS / sizeof PAIRS[0]); pair++) {
        int round;
        for (round = 0; round < rounds; round++) {
            rates[0][round] = ours(&PAIRS[pair]);
            rates[1][round] = theirs(&PAIRS[pair]);
        }
        qsort(rates[0], (size_t)rounds, sizeof rates[0][0], compare);
        qsort(rates[1], (size_t)rounds, sizeof rates[1][0], compare);
        printf("note %s, %u octets, messages a second: zmtp-c %.0f (%.0f to %.0f), libzmq %.0f (%.0f to %.0f)\n", PAIRS[pair].name, octets,
               rates[0][rounds / 2], rates[0][0], rates[0][rounds - 1], rates[1][rounds / 2], rates[1][0], rates[1][rounds - 1]);
        is_slower |= rates[0][rounds / 2] < rates[1][rounds / 2];
    }
    return is_slower;
}
