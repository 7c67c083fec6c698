/**
 * A target for libFuzzer and for fuzz/replay.c: whatever workers tell a master, each unit counts once; and whatever a master tells a worker, it holds no more than it has granted.
 *
 * The input is operations of an octet each: its two lowest bits say which, the next two of which connection it is: those of three workers at the master, or a fourth worker's own.
 *     0  a frame comes: an octet has its size in six bits, whether it goes on in the next and whether more follow in the highest; then the frame
 *     1  the worker grants a credit, and answers what it was given first      2  a turn of either end      3  the worker's connection ends, and another one begins
 */
#include <stdlib.h>
#include <string.h>

#include "../test/party.h"
#include "input.h"
#include "taskfarm.h"

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t size);

#define WORKERS 3u
#define CREDITS 2u
#define UNITS 64u

static zmtp_link_t links[WORKERS + 1u]; /* the last one is the worker's own */
static uint8_t in[WORKERS + 1u][64];
static uint8_t out[WORKERS + 1u][256];
static uint16_t credits[WORKERS];
static taskfarm_chunk_t chunks[WORKERS * CREDITS];
static taskfarm_master_t master;
static taskfarm_worker_t worker;
static taskfarm_range_t tasks[CREDITS];
static uint8_t counted[UNITS];

static void demand(int condition)
{
    if (!condition) {
        abort();
    }
}

static void result(taskfarm_master_t *of, taskfarm_range_t range, zmtp_slice_t octets)
{
    uint32_t unit;
    (void)of;
    (void)octets;
    demand((range.begin < range.end) && (range.end <= UNITS));
    for (unit = range.begin; unit < range.end; unit++) {
        demand(counted[unit] == 0u);
        counted[unit] = 1;
    }
}

static void load(taskfarm_worker_t *of, uint32_t slot, zmtp_slice_t octets)
{
    (void)octets;
    demand((slot < CREDITS) && (of->waiting < CREDITS));
}

static uint32_t work(taskfarm_worker_t *of, uint32_t slot, taskfarm_range_t range, uint8_t *to, uint32_t room)
{
    (void)of;
    demand((slot < CREDITS) && (range.begin < range.end));
    memset(to, 0, room);
    return room;
}

static void ignore(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    (void)link;
    (void)what;
    (void)event;
}

static int32_t tell(uint32_t at, int32_t what, const zmtp_event_t *event)
{
    return (at == WORKERS) ? taskfarm_worker_heard(&worker, &links[at], what, event) : taskfarm_master_heard(&master, &links[at], what, event);
}

static void begin_link(uint32_t at)
{
    static const zmtp_event_t NOTHING = {0};
    static const zmtp_settings_t ROUTER = {.socket_type = ZMTP_ROUTER};
    zmtp_link_memory_t memory = {in[at], sizeof in[at], out[at], sizeof out[at]};
    uint8_t peer[128];
    uint32_t size = party_peer(ZMTP_DEALER, 1, peer);
    demand(zmtp_link_open(&links[at], &ROUTER, &memory, ignore, NULL) == 0);
    demand(zmtp_link_received(&links[at], peer, size) == 0);
    links[at].state = ZMTP_LINK_OPEN;
    demand(tell(at, ZMTP_READY, &NOTHING) == 0);
}

static void end_link(uint32_t at)
{
    static const zmtp_event_t NOTHING = {0};
    links[at].state = ZMTP_LINK_FREE;
    (void)tell(at, ZMTP_GONE, &NOTHING);
    begin_link(at);
}

static void receive(uint32_t at, input_t *input)
{
    zmtp_event_t event = {0};
    uint8_t octet = input_octet(input);
    zmtp_slice_t body = input_take(input, octet & 0x3fu);
    event.octets = body.octets;
    event.size = body.size;
    event.goes_on = (octet >> 6) & 1u;
    event.more = octet >> 7;
    if (tell(at, ZMTP_FRAME, &event) < 0) {
        end_link(at);
    }
}

/** The worker does what it should. */
static void answer(uint32_t at)
{
    uint8_t message[TASKFARM_RESULT_OVERHEAD] = {1, 0, 1};
    zmtp_event_t event = {message, 3, 0, 0, 0};
    uint32_t i = 0;
    demand((at == WORKERS) || (tell(at, ZMTP_FRAME, &event) == 0));
    while ((at != WORKERS) && (i < (WORKERS * CREDITS)) && ((chunks[i].worker != &links[at]) || (chunks[i].range.begin == chunks[i].range.end))) {
        i++;
    }
    if ((at != WORKERS) && (i < (WORKERS * CREDITS))) {
        message[0] = 3;
        message[1] = message[2] = message[3] = 0;
        message[4] = (uint8_t)chunks[i].range.begin;
        message[8] = (uint8_t)chunks[i].range.end;
        event.size = sizeof message;
        demand(tell(at, ZMTP_FRAME, &event) == 0);
    }
}

static void turn(void)
{
    uint32_t i;
    taskfarm_master_turn(&master);
    (void)taskfarm_worker_turn(&worker, &links[WORKERS]);
    for (i = 0; i <= WORKERS; i++) {
        zmtp_link_sent(&links[i], zmtp_link_waiting(&links[i]).size);
    }
}

static void begin(void)
{
    uint32_t i;
    memset(counted, 0, sizeof counted);
    memset(chunks, 0, sizeof chunks);
    memset(credits, 0, sizeof credits);
    master = (taskfarm_master_t){.units = UNITS, .chunks = chunks, .chunks_count = WORKERS * CREDITS, .links = links, .credits = credits, .links_count = WORKERS,
                                 .result = result};
    worker = (taskfarm_worker_t){.credits = CREDITS, .tasks = tasks, .load = load, .work = work};
    for (i = 0; i <= WORKERS; i++) {
        begin_link(i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t size)
{
    input_t input = {octets, size};
    begin();
    while (input.left > 0u) {
        uint8_t operation = input_octet(&input);
        uint32_t at = (operation >> 2) & 3u;
        switch (operation & 3u) {
        case 0:
            receive(at, &input);
            break;
        case 1:
            answer(at);
            break;
        case 2:
            turn();
            break;
        default:
            end_link(at);
            break;
        }
        demand((worker.waiting <= CREDITS) && (master.counted <= master.given) && (master.given <= UNITS));
    }
    return 0;
}
