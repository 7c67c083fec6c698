/* CURVE with a server of libzmq: messages both ways, heartbeats, and a server that is not the one that was meant. */

#include <stdlib.h>
#include <zmq.h>

#include "check.h"
#include "zmtp_net.h"
#include "zmtp_sodium.h"

int checks_failed = 0;
const char *check_about = "CURVE with libzmq";

#define DEADLINE_MS 5000u

static zmtp_net_t net;
static zmtp_link_t links[1];
static uint8_t in[256];
static uint8_t out[1024];
static uint8_t input[512];
static zmtp_curve_t curve;
static const zmtp_link_memory_t MEMORY[1] = {{in, sizeof in, out, sizeof out, &curve}};
static uint8_t keys[4][ZMTP_CURVE_KEY]; /* ours, our secret, the server's, its secret */
static const zmtp_curve_keys_t KEYS = {&zmtp_sodium, keys[0], keys[1], keys[2]};
static zmtp_settings_t settings;
static int ready;
static int frames;
static int ends;

static void heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    (void)link;
    ready += what == (int32_t)ZMTP_READY;
    frames += (what == (int32_t)ZMTP_FRAME) && (event->size == 4u) && (memcmp(event->octets, "pong", 4) == 0);
    ends += what < 0;
}

/** Turns until so many of them have come, or for so long. */
static void until(const int *counter, int expected, uint32_t deadline_ms)
{
    uint32_t began = zmtp_net_now_ms();
    while ((*counter < expected) && ((zmtp_net_now_ms() - began) < deadline_ms)) {
        CHECK(zmtp_net_turn(&net, 2) == 0);
    }
}

static void talk(void *socket, char *endpoint)
{
    char text[64];
    int round;
    memset(links, 0, sizeof links);
    ready = 0;
    frames = 0;
    ends = 0;
    settings = (zmtp_settings_t){.socket_type = ZMTP_DEALER, .mechanism = ZMTP_CURVE, .curve = &KEYS};
    net = (zmtp_net_t){links, MEMORY, 1, input, sizeof input, {&settings, heard, NULL}, NULL, {0}};
    CHECK(zmtp_net_open(&net) == 0);
    CHECK(zmtp_net_connect(&net, "127.0.0.1", (uint16_t)atoi(strrchr(endpoint, ':') + 1), &net.accepted) != NULL);
    until(&ready, 1, DEADLINE_MS);
    CHECK(ready == 1);
    for (round = 1; (ready == 1) && (round <= 100); round++) {
        CHECK(zmtp_link_send_one(&links[0], "ping", 4) == 0);
        CHECK(zmtp_net_turn(&net, 0) == 0);
        CHECK(zmq_recv(socket, text, sizeof text, 0) == 5);
        (void)zmq_send(socket, text, 5, ZMQ_SNDMORE);
        CHECK(zmq_recv(socket, text, sizeof text, 0) == 4);
        (void)zmq_send(socket, "pong", 4, 0);
        until(&frames, round, DEADLINE_MS);
        CHECK(frames == round);
    }
    until(&ends, 1, 300); /* it is asked for signs of life meanwhile, and gives them */
    CHECK(ends == 0);
    zmtp_net_close(&net, &links[0]);
}

static void a_client_of_curve_talks_to_libzmq(void)
{
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, ZMQ_ROUTER);
    int one = 1;
    int interval_ms = 20;
    int timeout_ms = 100;
    char endpoint[64];
    size_t size = sizeof endpoint;
    zmtp_sodium_random(keys[1], ZMTP_CURVE_KEY);
    zmtp_sodium_random(keys[3], ZMTP_CURVE_KEY);
    zmtp_sodium_public_key(keys[0], keys[1]);
    zmtp_sodium_public_key(keys[2], keys[3]);
    (void)zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &one, sizeof one);
    CHECK(zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys[3], ZMTP_CURVE_KEY) == 0);
    (void)zmq_setsockopt(socket, ZMQ_HEARTBEAT_IVL, &interval_ms, sizeof interval_ms);
    (void)zmq_setsockopt(socket, ZMQ_HEARTBEAT_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    (void)zmq_setsockopt(socket, ZMQ_RCVTIMEO, &(int){(int)DEADLINE_MS}, sizeof(int));
    CHECK(zmq_bind(socket, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
    talk(socket, endpoint);
    (void)zmq_close(socket);
    (void)zmq_ctx_term(context);
}

int main(void)
{
    if (sodium_init() < 0) {
        return 1;
    }
    TEST(a_client_of_curve_talks_to_libzmq);
    return checks_failed != 0;
}
