/* The task farm over links in memory: every unit counts once, whoever dies. */

#include <stdlib.h>

#include "check.h"
#include "party.h"
#include "taskfarm.h"

int checks_failed = 0;
const char *check_about = "";

#define WORKERS 3u
#define CREDITS 2u
#define UNITS 1000u

static zmtp_link_t near_links[WORKERS];
static zmtp_link_t far_links[WORKERS];
static uint8_t in[2][WORKERS][128];
static uint8_t out[2][WORKERS][256];
static taskfarm_worker_t workers[WORKERS];
static taskfarm_range_t tasks[WORKERS][CREDITS];
static uint16_t credits[WORKERS];
static taskfarm_chunk_t chunks[WORKERS * CREDITS];
static taskfarm_master_t master;
static uint8_t counted[UNITS];
static uint32_t sizes[UNITS]; /* of the chunks, by their first units */
static uint32_t sizes_count;
static uint32_t loaded;
static int32_t master_said;
static int32_t worker_said;

static void master_heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    int32_t said = taskfarm_master_heard(&master, link, what, event);
    master_said = (said < 0) ? said : master_said;
}

static void worker_heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    int32_t said = taskfarm_worker_heard(link->owner, link, what, event);
    worker_said = (said < 0) ? said : worker_said;
}

static void result(taskfarm_master_t *of, taskfarm_range_t range, zmtp_slice_t octets)
{
    uint32_t i;
    (void)of;
    CHECK((octets.size == 1u) && (octets.octets[0] == (uint8_t)(range.end - range.begin)));
    for (i = range.begin; i < range.end; i++) {
        counted[i]++;
    }
    sizes[range.begin] = range.end - range.begin;
    sizes_count++;
}

static uint32_t work(taskfarm_worker_t *worker, uint32_t slot, taskfarm_range_t range, uint8_t *to, uint32_t room)
{
    (void)worker;
    (void)slot;
    CHECK(room >= 1u);
    to[0] = (uint8_t)(range.end - range.begin);
    return 1;
}

static void load(taskfarm_worker_t *worker, uint32_t slot, zmtp_slice_t octets)
{
    (void)worker;
    CHECK(slot < CREDITS);
    loaded += octets.size;
}

static zmtp_slice_t text_of(taskfarm_master_t *of, taskfarm_range_t range)
{
    static uint8_t text[150];
    zmtp_slice_t slice = {text, sizeof text};
    (void)of;
    (void)range;
    return slice;
}

static void join(uint32_t i)
{
    static const zmtp_settings_t ROUTER = {.socket_type = ZMTP_ROUTER};
    static const zmtp_settings_t DEALER = {.socket_type = ZMTP_DEALER};
    zmtp_link_memory_t near_memory = {in[0][i], sizeof in[0][i], out[0][i], sizeof out[0][i]};
    zmtp_link_memory_t far_memory = {in[1][i], sizeof in[1][i], out[1][i], sizeof out[1][i]};
    memset(&workers[i], 0, sizeof workers[i]);
    workers[i].credits = CREDITS;
    workers[i].tasks = tasks[i];
    workers[i].work = work;
    workers[i].load = load;
    CHECK(zmtp_link_open(&near_links[i], &ROUTER, &near_memory, master_heard, NULL) == 0);
    CHECK(zmtp_link_open(&far_links[i], &DEALER, &far_memory, worker_heard, &workers[i]) == 0);
    near_links[i].state = ZMTP_LINK_OPEN;
    far_links[i].state = ZMTP_LINK_OPEN;
}

static void leave(uint32_t i)
{
    static const zmtp_event_t NOTHING = {0};
    near_links[i].state = ZMTP_LINK_FREE;
    zmtp_close(&near_links[i].zmtp);
    master_heard(&near_links[i], ZMTP_GONE, &NOTHING);
}

static void carry(zmtp_link_t *from, zmtp_link_t *to)
{
    zmtp_slice_t waiting = zmtp_link_waiting(from);
    (void)zmtp_link_received(to, waiting.octets, waiting.size);
    zmtp_link_sent(from, waiting.size);
}

static void begin(uint32_t count)
{
    uint32_t i;
    memset(&master, 0, sizeof master);
    memset(near_links, 0, sizeof near_links);
    memset(far_links, 0, sizeof far_links);
    memset(chunks, 0, sizeof chunks);
    memset(counted, 0, sizeof counted);
    memset(sizes, 0, sizeof sizes);
    master = (taskfarm_master_t){.units = UNITS, .chunks = chunks, .chunks_count = WORKERS * CREDITS, .links = near_links, .credits = credits,
                                 .links_count = WORKERS, .result = result};
    master_said = 0;
    worker_said = 0;
    sizes_count = 0;
    loaded = 0;
    for (i = 0; i < count; i++) {
        join(i);
    }
}

/** One step of everybody who is there; a worker does one thing in it, or nothing. */
static void step(uint32_t idle)
{
    uint32_t i;
    taskfarm_master_turn(&master);
    for (i = 0; i < WORKERS; i++) {
        if (near_links[i].state == (uint8_t)ZMTP_LINK_OPEN) {
            carry(&near_links[i], &far_links[i]);
            if (i != idle) {
                (void)taskfarm_worker_turn(&workers[i], &far_links[i]);
            }
            carry(&far_links[i], &near_links[i]);
        }
    }
}

static void expect_done(void)
{
    uint32_t i;
    uint32_t steps = 0;
    uint32_t wrong = 0;
    while (!taskfarm_master_is_done(&master) && (steps++ < 5000u)) {
        step(WORKERS);
    }
    step(WORKERS);
    for (i = 0; i < UNITS; i++) {
        wrong += counted[i] != 1u;
    }
    CHECK(wrong == 0u);
    CHECK(taskfarm_master_is_done(&master));
    CHECK((master_said == 0) && (worker_said == 0));
}

static void each_unit_counts_once_and_chunks_shrink(void)
{
    uint32_t i;
    uint32_t before = 100;
    begin(WORKERS);
    master.chunk_max = 100;
    expect_done();
    CHECK(workers[0].is_ended && workers[1].is_ended && workers[2].is_ended);
    CHECK(sizes[0] == 100u);
    CHECK(sizes[UNITS - 1u] == 1u);
    for (i = 0; i < UNITS; i++) {
        CHECK(sizes[i] <= before);
        before = (sizes[i] > 0u) ? sizes[i] : before;
    }
    CHECK(master.repeated == 0u);
}

static void the_chunks_of_a_worker_that_is_gone_are_given_to_others(void)
{
    uint32_t i;
    begin(WORKERS);
    while (!workers[1].has_granted) {
        step(WORKERS);
    }
    for (i = 0; i < 6u; i++) {
        step(1);
    }
    leave(1);
    expect_done();
    CHECK(master.repeated == CREDITS);
}

static void the_work_waits_for_workers_and_who_comes_late_takes_part(void)
{
    uint32_t i;
    begin(1);
    while (!workers[0].has_granted) {
        step(WORKERS);
    }
    for (i = 0; i < 6u; i++) {
        step(0);
    }
    CHECK(workers[0].waiting == CREDITS);
    leave(0);
    for (i = 0; i < 6u; i++) {
        step(WORKERS);
    }
    CHECK(master.counted == 0u);
    join(2);
    expect_done();
    CHECK(workers[2].is_ended);
}

static void what_a_task_carries_comes_in_pieces(void)
{
    begin(2);
    master.load = text_of;
    master.chunk_min = 250;
    expect_done();
    CHECK(loaded == (150u * sizes_count));
}

static void who_breaks_the_rules_is_closed(void)
{
    static const uint8_t NOBODYS[12] = {3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1, 7};
    static const uint8_t TASK[9] = {2, 0, 0, 0, 0, 0, 0, 0, 7};
    begin(1);
    while (!workers[0].has_granted) {
        step(WORKERS);
    }
    step(0);
    CHECK(zmtp_link_send_one(&far_links[0], NOBODYS, sizeof NOBODYS) == 0);
    step(0);
    CHECK(master_said == (int32_t)ZMTP_UNEXPECTED);
    CHECK(master.counted == 0u);
    CHECK(zmtp_link_send_one(&far_links[0], "?", 1) == 0);
    step(0);
    CHECK(master_said == (int32_t)ZMTP_BAD_COMMAND);
    CHECK(worker_said == 0);
    CHECK(zmtp_link_send_one(&near_links[0], TASK, sizeof TASK) == 0);
    step(0);
    CHECK(worker_said == (int32_t)ZMTP_UNEXPECTED);
}

int main(void)
{
    TEST(each_unit_counts_once_and_chunks_shrink);
    TEST(the_chunks_of_a_worker_that_is_gone_are_given_to_others);
    TEST(the_work_waits_for_workers_and_who_comes_late_takes_part);
    TEST(what_a_task_carries_comes_in_pieces);
    TEST(who_breaks_the_rules_is_closed);
    return checks_failed != 0;
}
