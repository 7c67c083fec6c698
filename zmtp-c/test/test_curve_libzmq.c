/* CURVE with libzmq at the other end, whichever that is: messages both ways, heartbeats, and who is not let in. */

#include <stdlib.h>
#include <zmq.h>

#include "check.h"
#include "zmtp_net.h"
#include "zmtp_sodium.h"
#include "zmtp_z85.h"

int checks_failed = 0;
const char *check_about = "";

#define DEADLINE_MS 5000
#define ROUNDS 100

static zmtp_net_t net;
static zmtp_link_t links[1];
static uint8_t in[ZMTP_CURVE_SERVER_BUFFER_MIN];
static uint8_t out[1024];
static uint8_t input[512];
static zmtp_curve_t curve;
static const zmtp_link_memory_t MEMORY[1] = {{in, sizeof in, out, sizeof out, &curve}};
static uint8_t keys[4][ZMTP_CURVE_KEY]; /* ours, our secret, libzmq's, its secret */
static uint8_t admitted[ZMTP_CURVE_KEY];
static zmtp_settings_t settings;
static int ready;
static int frames;
static int ends;
static int denials;

static int admit(void *context, const uint8_t *client)
{
    (void)context;
    return memcmp(client, admitted, ZMTP_CURVE_KEY) == 0;
}

static const zmtp_curve_keys_t KEYS = {&zmtp_sodium, keys[0], keys[1], keys[2], admit, NULL};

static void heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    (void)link;
    ready += what == (int32_t)ZMTP_READY;
    frames += (what == (int32_t)ZMTP_FRAME) && (event->size == 4u) && (memcmp(event->octets, "pong", 4) == 0);
    ends += what < 0;
    denials += what == (int32_t)ZMTP_DENIED;
}

static void begin(zmtp_type_t type, int is_server)
{
    zmtp_sodium_random(keys[1], ZMTP_CURVE_KEY);
    zmtp_sodium_random(keys[3], ZMTP_CURVE_KEY);
    zmtp_sodium_public_key(keys[0], keys[1]);
    zmtp_sodium_public_key(keys[2], keys[3]);
    memcpy(admitted, keys[2], ZMTP_CURVE_KEY);
    memset(links, 0, sizeof links);
    ready = 0;
    frames = 0;
    ends = 0;
    denials = 0;
    settings = (zmtp_settings_t){.socket_type = (uint8_t)type, .mechanism = ZMTP_CURVE, .is_server = (uint8_t)is_server, .curve = &KEYS};
    net = (zmtp_net_t){.links = links, .memories = MEMORY, .count = 1, .input = input, .input_size = sizeof input, .accepted = {&settings, heard, NULL}};
    CHECK(zmtp_net_open(&net) == 0);
}

/** Turns until so many of them have come, or for so long. */
static void until(const int *counter, int expected, uint32_t deadline_ms)
{
    uint32_t began = zmtp_net_now_ms();
    while ((*counter < expected) && ((zmtp_net_now_ms() - began) < deadline_ms)) {
        CHECK(zmtp_net_turn(&net, 2) == 0);
    }
}

static void set(void *socket, int option, int value)
{
    CHECK(zmq_setsockopt(socket, option, &value, sizeof value) == 0);
}

/** A socket of libzmq that looks for signs of life. */
static void *open_socket(void *context, int type)
{
    void *socket = zmq_socket(context, type);
    set(socket, ZMQ_HEARTBEAT_IVL, 20);
    set(socket, ZMQ_HEARTBEAT_TIMEOUT, 100);
    set(socket, ZMQ_RCVTIMEO, DEADLINE_MS);
    set(socket, ZMQ_LINGER, 0);
    CHECK(zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys[3], ZMTP_CURVE_KEY) == 0);
    return socket;
}

/** Sends a ping and is sent a pong, time and again; libzmq's socket puts an address in front if it is a ROUTER. */
static void talk(void *socket, int has_address)
{
    char address[64];
    char text[64];
    int round;
    until(&ready, 1, DEADLINE_MS);
    CHECK(ready == 1);
    for (round = 1; (ready == 1) && (round <= ROUNDS); round++) {
        CHECK(zmtp_link_send_one(&links[0], "ping", 4) == 0);
        CHECK(zmtp_net_turn(&net, 0) == 0);
        if (has_address) {
            int size = zmq_recv(socket, address, sizeof address, 0);
            CHECK(size == 5);
            (void)zmq_send(socket, address, 5, ZMQ_SNDMORE);
        }
        CHECK((zmq_recv(socket, text, sizeof text, 0) == 4) && (memcmp(text, "ping", 4) == 0));
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
    void *socket;
    char endpoint[64];
    size_t size = sizeof endpoint;
    check_about = "a client";
    begin(ZMTP_DEALER, 0);
    socket = open_socket(context, ZMQ_ROUTER);
    set(socket, ZMQ_CURVE_SERVER, 1);
    CHECK(zmq_bind(socket, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
    CHECK(zmtp_net_connect(&net, "127.0.0.1", (uint16_t)atoi(strrchr(endpoint, ':') + 1), &net.accepted) != NULL);
    talk(socket, 1);
    (void)zmq_close(socket);
    (void)zmq_ctx_term(context);
}

/** libzmq's end, as a client of a server of ours. */
static void *connect_to_ours(void *context)
{
    void *socket = open_socket(context, ZMQ_DEALER);
    char endpoint[64];
    int32_t port = zmtp_net_listen(&net, "127.0.0.1", 0);
    CHECK(port > 0);
    (void)snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", (int)port);
    CHECK(zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys[2], ZMTP_CURVE_KEY) == 0);
    CHECK(zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, keys[0], ZMTP_CURVE_KEY) == 0);
    CHECK(zmq_setsockopt(socket, ZMQ_ROUTING_ID, "0123456789abcdefghijklmnop", 26) == 0); /* the longest that the buffer is said to have room for */
    CHECK(zmq_connect(socket, endpoint) == 0);
    return socket;
}

static void a_server_of_curve_talks_to_libzmq(void)
{
    void *context = zmq_ctx_new();
    void *socket;
    check_about = "a server";
    begin(ZMTP_ROUTER, 1);
    socket = connect_to_ours(context);
    talk(socket, 0);
    CHECK(memcmp(curve.peer, keys[2], ZMTP_CURVE_KEY) == 0);
    (void)zmq_close(socket);
    zmtp_net_listen_no_more(&net);
    (void)zmq_ctx_term(context);
}

static void a_stranger_is_not_let_in(void)
{
    void *context = zmq_ctx_new();
    void *socket;
    check_about = "a stranger";
    begin(ZMTP_ROUTER, 1);
    admitted[0] ^= 1;
    socket = connect_to_ours(context);
    until(&ends, 1, DEADLINE_MS);
    CHECK((denials > 0) && (denials == ends) && (ready == 0));
    (void)zmq_close(socket);
    zmtp_net_listen_no_more(&net);
    (void)zmq_ctx_term(context);
}

static void keys_are_read_as_libzmq_writes_them(void)
{
    char text[ZMTP_Z85_KEY + 1u];
    uint8_t key[ZMTP_CURVE_KEY];
    int round;
    check_about = "keys as text";
    for (round = 0; round < 1000; round++) {
        randombytes_buf(keys[0], ZMTP_CURVE_KEY);
        (void)zmq_z85_encode(text, keys[0], ZMTP_CURVE_KEY);
        CHECK(zmtp_z85_key(key, text) && (memcmp(key, keys[0], ZMTP_CURVE_KEY) == 0));
    }
    CHECK(!zmtp_z85_key(key, "") && !zmtp_z85_key(key, &text[1]));
    text[7] = '"';
    CHECK(!zmtp_z85_key(key, text));
    CHECK(!zmtp_z85_key(key, "########################################")); /* beyond 32 bits */
}

int main(void)
{
    if (sodium_init() < 0) {
        return 1;
    }
    TEST(a_client_of_curve_talks_to_libzmq);
    TEST(a_server_of_curve_talks_to_libzmq);
    TEST(a_stranger_is_not_let_in);
    TEST(keys_are_read_as_libzmq_writes_them);
    return checks_failed != 0;
}
