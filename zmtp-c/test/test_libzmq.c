/* Every pairing of our socket types with libzmq's, whoever connects, by NULL and by PLAIN, and by CURVE if that is built: messages of several frames, both ways. */

#include <pthread.h>
#include <stdlib.h>
#include <zmq.h>

#include "check.h"
#include "party.h"
#include "zmtp_net.h"
#if ZMTP_WITH_CURVE
#include "zmtp_sodium.h"
#endif

#define FRAMES_MAX 8
#define FRAME_MAX 70000u
#define DEADLINE_MS 5000u
#define LONG_BODY 60000u

int checks_failed = 0;
const char *check_about = "";

/** A message, on either side. */
typedef struct {
    uint8_t octets[FRAMES_MAX][FRAME_MAX];
    uint32_t sizes[FRAMES_MAX];
    int count;
} message_t;

/** A pairing: whoever begins sends first. Our ROUTER, like theirs, answers behind the delimiter that it was sent. */
typedef struct {
    uint8_t ours;
    int theirs;
    const char *name;
    int we_begin;
    int is_answered;
    int has_delimiter; /* we see it */
} pairing_t;

static const pairing_t PAIRINGS[] = {
    {ZMTP_REQ, ZMQ_REP, "REQ to REP", 1, 1, 0},
    {ZMTP_REQ, ZMQ_ROUTER, "REQ to ROUTER", 1, 1, 0},
    {ZMTP_REP, ZMQ_REQ, "REP to REQ", 0, 1, 0},
    {ZMTP_REP, ZMQ_DEALER, "REP to DEALER", 0, 1, 0},
    {ZMTP_DEALER, ZMQ_REP, "DEALER to REP", 1, 1, 1},
    {ZMTP_DEALER, ZMQ_DEALER, "DEALER to DEALER", 1, 1, 0},
    {ZMTP_DEALER, ZMQ_ROUTER, "DEALER to ROUTER", 1, 1, 0},
    {ZMTP_ROUTER, ZMQ_REQ, "ROUTER to REQ", 0, 1, 1},
    {ZMTP_ROUTER, ZMQ_DEALER, "ROUTER to DEALER", 0, 1, 0},
    {ZMTP_ROUTER, ZMQ_ROUTER, "ROUTER to ROUTER", 1, 1, 0},
    {ZMTP_PUB, ZMQ_SUB, "PUB to SUB", 1, 0, 0},
    {ZMTP_PUB, ZMQ_XSUB, "PUB to XSUB", 1, 0, 0},
    {ZMTP_SUB, ZMQ_PUB, "SUB to PUB", 0, 0, 0},
    {ZMTP_SUB, ZMQ_XPUB, "SUB to XPUB", 0, 0, 0},
    {ZMTP_PUSH, ZMQ_PULL, "PUSH to PULL", 1, 0, 0},
    {ZMTP_PULL, ZMQ_PUSH, "PULL to PUSH", 0, 0, 0},
    {ZMTP_PAIR, ZMQ_PAIR, "PAIR to PAIR", 1, 1, 0},
};

static void *context;
static zmtp_net_t net;
static zmtp_link_t links[1];
static uint8_t out[2u * FRAME_MAX];
static uint8_t input[4096];
static zmtp_settings_t settings;

#if ZMTP_WITH_CURVE
static uint8_t in[FRAME_MAX];
static zmtp_curve_t curve;
static const zmtp_link_memory_t MEMORY[1] = {{in, sizeof in, out, sizeof out, &curve}};
static uint8_t keys[4][ZMTP_CURVE_KEY]; /* ours, our secret, theirs, their secret */

static int admit(void *nothing, const uint8_t *client)
{
    (void)nothing;
    return memcmp(client, keys[2], ZMTP_CURVE_KEY) == 0;
}

static const zmtp_curve_keys_t KEYS = {&zmtp_sodium, keys[0], keys[1], keys[2], admit, NULL};

static void draw_keys(void)
{
    uint32_t i;
    CHECK(sodium_init() >= 0);
    for (i = 0; i < 4u; i += 2u) {
        zmtp_sodium_random(keys[i + 1u], ZMTP_CURVE_KEY);
        zmtp_sodium_public_key(keys[i], keys[i + 1u]);
    }
}
#else
static uint8_t in[128];
static const zmtp_link_memory_t MEMORY[1] = {{in, sizeof in, out, sizeof out}};
#endif

static message_t heard_message;
static message_t received;
static int heard_is_whole;
static int is_ready;
static int is_subscribed;

static void heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    (void)link;
    is_ready = (is_ready || (what == (int32_t)ZMTP_READY)) && (what >= 0);
    is_subscribed = is_subscribed || (what == (int32_t)ZMTP_SUBSCRIBE);
    if ((what == (int32_t)ZMTP_FRAME) && !heard_is_whole) {
        int frame = heard_message.count;
        memcpy(&heard_message.octets[frame][heard_message.sizes[frame]], event->octets, event->size);
        heard_message.sizes[frame] += event->size;
        heard_message.count += !event->goes_on;
        heard_is_whole = !event->goes_on && !event->more;
    }
}

static int authenticate(void *nothing, zmtp_slice_t username, zmtp_slice_t password)
{
    (void)nothing;
    return (username.size == 5u) && (memcmp(username.octets, "admin", 5) == 0) && (password.size == 6u) &&
           (memcmp(password.octets, "secret", 6) == 0);
}

/** Lets everybody in whose password is "secret", or who has shown a key (RFC 27). */
static void *answer_zap(void *socket)
{
    for (;;) {
        char frames[8][256];
        int count = 0;
        int more = 1;
        size_t size = sizeof more;
        while (more && (count < 8)) {
            int length = zmq_recv(socket, frames[count], 255, 0);
            if (length < 0) {
                (void)zmq_close(socket);
                return NULL;
            }
            frames[count++][length] = 0;
            (void)zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
        }
        (void)zmq_send(socket, "1.0", 3, ZMQ_SNDMORE);
        (void)zmq_send(socket, frames[1], strlen(frames[1]), ZMQ_SNDMORE);
        (void)zmq_send(socket, ((strcmp(frames[5], "CURVE") == 0) || (strcmp(frames[7], "secret") == 0)) ? "200" : "400", 3, ZMQ_SNDMORE);
        (void)zmq_send(socket, "", 0, ZMQ_SNDMORE);
        (void)zmq_send(socket, "", 0, ZMQ_SNDMORE);
        (void)zmq_send(socket, "", 0, 0);
    }
}

static void turn(void)
{
    CHECK(zmtp_net_turn(&net, 2) == 0);
}

/** What the other side has received, if a message is there. */
static int receive(void *socket)
{
    int more = 1;
    size_t size = sizeof more;
    received.count = 0;
    while (more) {
        int length = zmq_recv(socket, received.octets[received.count], FRAME_MAX, ZMQ_DONTWAIT);
        if (length < 0) {
            return 0;
        }
        received.sizes[received.count++] = (uint32_t)length;
        (void)zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
    }
    return 1;
}

/** Whether the last two frames are those of the message that is sent; what is in front of them is its envelope. */
static int is_ours(const message_t *message)
{
    int first = message->count - 2;
    uint32_t i;
    if ((first < 0) || (message->sizes[first] != 2u) || (memcmp(message->octets[first], "to", 2) != 0)) {
        return 0;
    }
    for (i = 0; (i < LONG_BODY) && (message->octets[first + 1][i] == (uint8_t)i); i++) {
    }
    return (message->sizes[first + 1] == LONG_BODY) && (i == LONG_BODY);
}

static void send_ours(const pairing_t *pairing)
{
    static uint8_t body[LONG_BODY];
    zmtp_slice_t frames[3] = {{NULL, 0}, {(const uint8_t *)"to", 2}, {body, LONG_BODY}};
    uint32_t i;
    for (i = 0; i < LONG_BODY; i++) {
        body[i] = (uint8_t)i;
    }
    CHECK(zmtp_link_send(&links[0], pairing->has_delimiter ? frames : &frames[1], pairing->has_delimiter ? 3u : 2u) == 0);
}

static void send_theirs(void *socket, const pairing_t *pairing, int envelope)
{
    static uint8_t body[LONG_BODY];
    uint32_t i;
    int frame;
    for (i = 0; i < LONG_BODY; i++) {
        body[i] = (uint8_t)i;
    }
    if ((pairing->theirs == ZMQ_DEALER) && (pairing->ours == (uint8_t)ZMTP_REP)) {
        (void)zmq_send(socket, "address", 7, ZMQ_SNDMORE);
        (void)zmq_send(socket, "", 0, ZMQ_SNDMORE);
    }
    for (frame = 0; frame < envelope; frame++) {
        (void)zmq_send(socket, received.octets[frame], received.sizes[frame], ZMQ_SNDMORE);
    }
    (void)zmq_send(socket, "to", 2, ZMQ_SNDMORE);
    (void)zmq_send(socket, body, LONG_BODY, 0);
}

/** Turns until they have received what we sent. */
static void expect_received(void *socket)
{
    uint32_t began = zmtp_net_now_ms();
    int is_there = 0;
    while (!is_there && ((zmtp_net_now_ms() - began) < DEADLINE_MS)) {
        turn();
        is_there = receive(socket);
    }
    CHECK(is_there && is_ours(&received));
}

/** Turns until we have heard what they send, again and again where nobody can know whether our subscription is there yet. */
static void expect_heard(void *socket, const pairing_t *pairing, int envelope)
{
    uint32_t began = zmtp_net_now_ms();
    int repeats = pairing->ours == (uint8_t)ZMTP_SUB;
    memset(&heard_message, 0, sizeof heard_message);
    heard_is_whole = 0;
    if (!repeats) {
        send_theirs(socket, pairing, envelope);
    }
    while (!heard_is_whole && ((zmtp_net_now_ms() - began) < DEADLINE_MS)) {
        if (repeats) {
            send_theirs(socket, pairing, envelope);
        }
        turn();
    }
    CHECK(heard_is_whole && is_ours(&heard_message));
    CHECK(heard_message.count == (pairing->has_delimiter ? 3 : 2));
}

static void set_mechanism(void *socket, zmtp_mechanism_t mechanism, int they_connect)
{
    int one = 1;
    if ((mechanism == ZMTP_PLAIN) && they_connect) {
        (void)zmq_setsockopt(socket, ZMQ_PLAIN_USERNAME, "admin", 5);
        (void)zmq_setsockopt(socket, ZMQ_PLAIN_PASSWORD, "secret", 6);
    } else if (mechanism == ZMTP_PLAIN) {
        (void)zmq_setsockopt(socket, ZMQ_PLAIN_SERVER, &one, sizeof one);
#if ZMTP_WITH_CURVE
    } else if ((mechanism == ZMTP_CURVE) && they_connect) {
        (void)zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys[2], ZMTP_CURVE_KEY);
        (void)zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys[3], ZMTP_CURVE_KEY);
        (void)zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, keys[0], ZMTP_CURVE_KEY);
    } else if (mechanism == ZMTP_CURVE) {
        (void)zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &one, sizeof one);
        (void)zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys[3], ZMTP_CURVE_KEY);
#endif
    } else {
        /* NULL asks for nothing. */
    }
}

static void *open_theirs(const pairing_t *pairing, zmtp_mechanism_t mechanism, int they_connect, char *endpoint)
{
    void *socket = zmq_socket(context, pairing->theirs);
    int zero = 0;
    size_t size = 64;
    (void)zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero);
    set_mechanism(socket, mechanism, they_connect);
    if (pairing->theirs == ZMQ_SUB) {
        (void)zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
    }
    if (they_connect) {
        CHECK(zmq_connect(socket, endpoint) == 0);
    } else {
        CHECK(zmq_bind(socket, "tcp://127.0.0.1:*") == 0);
        CHECK(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
    }
    if (pairing->theirs == ZMQ_XSUB) {
        (void)zmq_send(socket, "\1", 1, 0);
    }
    return socket;
}

static void *connect_both(const pairing_t *pairing, zmtp_mechanism_t mechanism, int they_connect)
{
    static const zmtp_slice_t ADMIN = {(const uint8_t *)"admin", 5};
    static const zmtp_slice_t SECRET = {(const uint8_t *)"secret", 6};
    char endpoint[64] = "";
    void *socket;
    uint32_t began = zmtp_net_now_ms();
    memset(&settings, 0, sizeof settings);
    settings.socket_type = pairing->ours;
    settings.mechanism = (uint8_t)mechanism;
    settings.is_server = (uint8_t)((mechanism != ZMTP_NULL) && they_connect);
#if ZMTP_WITH_CURVE
    settings.curve = &KEYS;
#endif
    settings.username = ADMIN;
    settings.password = SECRET;
    settings.authenticate = authenticate;
    is_ready = 0;
    is_subscribed = 0;
    memset(links, 0, sizeof links);
    net = (zmtp_net_t){.links = links, .memories = MEMORY, .count = 1, .input = input, .input_size = sizeof input, .accepted = {&settings, heard, NULL}};
    CHECK(zmtp_net_open(&net) == 0);
    if (they_connect) {
        (void)snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", (int)zmtp_net_listen(&net, "127.0.0.1", 0));
        socket = open_theirs(pairing, mechanism, 1, endpoint);
    } else {
        socket = open_theirs(pairing, mechanism, 0, endpoint);
        CHECK(zmtp_net_connect(&net, "127.0.0.1", (uint16_t)atoi(strrchr(endpoint, ':') + 1), &net.accepted) != NULL);
    }
    while (!(is_ready && (is_subscribed || (pairing->ours != (uint8_t)ZMTP_PUB))) && ((zmtp_net_now_ms() - began) < DEADLINE_MS)) {
        int events;
        size_t size = sizeof events;
        turn();
        (void)zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size); /* libzmq subscribes when it is called */
    }
    CHECK(is_ready && (is_subscribed || (pairing->ours != (uint8_t)ZMTP_PUB)));
    return socket;
}

static void talk(const pairing_t *pairing, zmtp_mechanism_t mechanism, int they_connect)
{
    static const char *const MECHANISMS[] = {"NULL", "PLAIN", "CURVE"};
    static char about[64];
    void *socket;
    (void)snprintf(about, sizeof about, "%s, %s, %s", pairing->name, MECHANISMS[mechanism], they_connect ? "they connect" : "we connect");
    check_about = about;
    socket = connect_both(pairing, mechanism, they_connect);
    if (is_ready && (pairing->ours == (uint8_t)ZMTP_SUB)) {
        CHECK(zmtp_link_subscribe(&links[0], 1, "t", 1) == 0);
    }
    if (is_ready && pairing->we_begin) {
        send_ours(pairing);
        expect_received(socket);
        if (pairing->is_answered) {
            expect_heard(socket, pairing, received.count - 2);
        }
    } else if (is_ready) {
        expect_heard(socket, pairing, 0);
        if (pairing->is_answered) {
            send_ours(pairing);
            expect_received(socket);
        }
    } else {
        /* It was told. */
    }
    (void)zmq_close(socket);
    zmtp_net_close(&net, &links[0]);
    zmtp_net_listen_no_more(&net);
}

static void every_pairing(zmtp_mechanism_t mechanism)
{
    uint32_t i;
    for (i = 0; i < (sizeof PAIRINGS / sizeof PAIRINGS[0]); i++) {
        talk(&PAIRINGS[i], mechanism, 0);
        talk(&PAIRINGS[i], mechanism, 1);
    }
}

static void every_pairing_with_libzmq_talks_by_null(void)
{
    every_pairing(ZMTP_NULL);
}

static void every_pairing_with_libzmq_talks_by_plain(void)
{
    every_pairing(ZMTP_PLAIN);
}

#if ZMTP_WITH_CURVE
static void every_pairing_with_libzmq_talks_by_curve(void)
{
    draw_keys();
    every_pairing(ZMTP_CURVE);
}
#endif

static void libzmq_keeps_who_answers_its_pings(void)
{
    static const pairing_t PAIRING = {ZMTP_PAIR, ZMQ_PAIR, "heartbeats", 1, 1, 0};
    uint32_t began;
    void *socket = zmq_socket(context, ZMQ_PAIR);
    int interval_ms = 20;
    int timeout_ms = 100;
    char endpoint[64] = "";
    size_t size = sizeof endpoint;
    check_about = PAIRING.name;
    (void)zmq_setsockopt(socket, ZMQ_HEARTBEAT_IVL, &interval_ms, sizeof interval_ms);
    (void)zmq_setsockopt(socket, ZMQ_HEARTBEAT_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    CHECK(zmq_bind(socket, "tcp://127.0.0.1:*") == 0);
    CHECK(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
    memset(&settings, 0, sizeof settings);
    settings.socket_type = ZMTP_PAIR;
    is_ready = 0;
    memset(links, 0, sizeof links);
    net = (zmtp_net_t){.links = links, .memories = MEMORY, .count = 1, .input = input, .input_size = sizeof input, .accepted = {&settings, heard, NULL}};
    CHECK(zmtp_net_open(&net) == 0);
    CHECK(zmtp_net_connect(&net, "127.0.0.1", (uint16_t)atoi(strrchr(endpoint, ':') + 1), &net.accepted) != NULL);
    for (began = zmtp_net_now_ms(); (zmtp_net_now_ms() - began) < 500u;) {
        turn();
    }
    CHECK(is_ready);
    send_ours(&PAIRING);
    expect_received(socket);
    (void)zmq_close(socket);
    zmtp_net_close(&net, &links[0]);
}

int main(void)
{
    pthread_t zap;
    void *handler;
    context = zmq_ctx_new();
    handler = zmq_socket(context, ZMQ_REP);
    if ((zmq_bind(handler, "inproc://zeromq.zap.01") != 0) || (pthread_create(&zap, NULL, answer_zap, handler) != 0)) {
        return 1;
    }
    TEST(every_pairing_with_libzmq_talks_by_null);
    TEST(every_pairing_with_libzmq_talks_by_plain);
#if ZMTP_WITH_CURVE
    TEST(every_pairing_with_libzmq_talks_by_curve);
#endif
    TEST(libzmq_keeps_who_answers_its_pings);
    (void)zmq_ctx_shutdown(context);
    (void)pthread_join(zap, NULL);
    (void)zmq_ctx_term(context);
    return checks_failed != 0;
}
