/**
 * Prime count, the first use case of Mueller's thesis: how many primes there are among so many numbers from 1,001 on.
 *
 *     prime_count master FORM WORKERS NUMBERS PORT
 *     prime_count worker FORM ADDRESS PORT [WORK_US]
 *
 * FORM `original` is the thesis': an interval for each worker as two messages of text, a message for each prime, each in a segment of its own, and then DONE.
 * `joined` says the same, and messages that wait share segments. `farm` gives out chunks by the task farm, and a result is a number of primes; with WORK_US a worker
 * works on something else for so long, for each number.
 * Either says a line of what it has counted and how long it took: the connection, the work and the end apart.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "station.h"
#include "taskfarm.h"

#define FIRST_NUMBER 1001u
#define CREDITS 2u

/** What one division of the search takes a Cortex-M3: 2 to 12 cycles of UDIV, the multiplications and the loop around it. */
#define CYCLES_PER_DIVISION 20u

typedef enum { ORIGINAL, JOINED, FARM } form_t;

static form_t form;
static zmtp_net_t *net;
static uint32_t primes;
static uint32_t divisions;
static uint32_t messages; /* that were heard */
static uint32_t gone_count;

static int is_prime(uint32_t number)
{
    uint32_t divisor = 2;
    while (((divisor * divisor) <= number) && ((number % divisor) != 0u)) {
        divisor++;
    }
    divisions += divisor - 1u;
    return (number >= 2u) && ((divisor * divisor) > number);
}

/** Lets the machine know what was divided. */
static void account(void)
{
    station_compute(CYCLES_PER_DIVISION * divisions);
    divisions = 0;
}

static void say(const char *who, uint32_t connect_us, uint32_t work_us, uint32_t close_us)
{
    printf("{\"who\": \"%s\", \"connect_us\": %u, \"work_us\": %u, \"close_us\": %u, \"primes\": %u, \"messages\": %u}\n", who, connect_us, work_us, close_us,
           primes, messages);
}

/** Sends a message, when there is room; in the original form when all others are sent, which would be put into the same segment. */
static void send(zmtp_link_t *link, const void *message, uint32_t size)
{
    while ((gone_count == 0u) && (form == ORIGINAL) && ((zmtp_link_waiting(link).size > 0u) || !station_has_sent(link))) {
        station_turn(net, 1000);
    }
    while ((gone_count == 0u) && (zmtp_link_send_one(link, message, size) == (int32_t)ZMTP_ROOM)) {
        station_turn(net, 1000);
    }
    if (form == ORIGINAL) {
        zmtp_net_flush(net, link);
    }
}

/* ---- the master ---- */

static taskfarm_master_t master;
static taskfarm_chunk_t chunks[STATION_LINKS_MAX * CREDITS];
static uint16_t credits[STATION_LINKS_MAX];
static uint8_t is_given;                     /* the intervals are */
static uint8_t is_done[STATION_LINKS_MAX];
static uint32_t done_count;
static uint32_t lost_count; /* workers that were gone before they were done: nobody has their intervals now */

static void add_result(taskfarm_master_t *of, taskfarm_range_t range, zmtp_slice_t octets)
{
    (void)of;
    (void)range;
    primes += station_number(octets);
}

static void master_heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    messages += what == (int32_t)ZMTP_FRAME;
    if (form == FARM) {
        if ((taskfarm_master_heard(&master, link, what, event) < 0) && (what > 0)) {
            zmtp_net_close(net, link);
        }
    } else if (what == (int32_t)ZMTP_FRAME) {
        uint8_t is_last = (event->size == 4u) && (memcmp(event->octets, "DONE", 4) == 0);
        is_done[link - net->links] = is_last;
        done_count += is_last;
        primes += (uint32_t)!is_last;
    } else {
        /* Who is ready is seen by station_await_all. */
        lost_count += (what < 0) && is_given && !is_done[link - net->links];
    }
}

/** An interval for each worker, alike but for the last one's rest. */
static void give_intervals(uint32_t workers, uint32_t numbers)
{
    uint32_t i;
    for (i = 0; i < workers; i++) {
        uint8_t text[10];
        uint32_t begin = FIRST_NUMBER + ((numbers / workers) * i);
        uint32_t end = ((i + 1u) == workers) ? (FIRST_NUMBER + numbers) : (begin + (numbers / workers));
        send(&net->links[i], text, station_text(begin, text));
        send(&net->links[i], text, station_text(end, text));
    }
}

static int run_master(uint32_t workers, uint32_t numbers, uint16_t port)
{
    uint32_t began_us;
    uint32_t ready_us;
    uint32_t done_us;
    net = station_open(ZMTP_ROUTER, workers, master_heard);
    began_us = station_now_us();
    if ((net == NULL) || (zmtp_net_listen(net, NULL, port) < 0)) {
        return 1;
    }
    master = (taskfarm_master_t){.units = numbers, .chunks = chunks, .chunks_count = workers * CREDITS, .links = net->links, .credits = credits,
                                 .links_count = workers, .result = add_result};
    station_await_all(net);
    ready_us = station_now_us();
    if (form != FARM) {
        is_given = 1;
        give_intervals(workers, numbers);
    }
    while ((form == FARM) ? !taskfarm_master_is_done(&master) : ((done_count < workers) && (lost_count == 0u))) {
        if (form == FARM) {
            taskfarm_master_turn(&master);
        }
        station_turn(net, 1000);
    }
    done_us = station_now_us();
    taskfarm_master_turn(&master);
    say("master", ready_us - began_us, done_us - ready_us, station_close(net));
    if (lost_count > 0u) {
        (void)fprintf(stderr, "prime_count: a worker was gone before it was done, and nobody has its interval\n");
    }
    return lost_count > 0u;
}

/* ---- a worker ---- */

static taskfarm_worker_t worker;
static taskfarm_range_t tasks[CREDITS];
static uint32_t interval[2];
static uint32_t work_us_per_number;

static uint32_t count_primes(taskfarm_worker_t *of, uint32_t slot, taskfarm_range_t range, uint8_t *out, uint32_t room)
{
    uint32_t found = 0;
    uint32_t number;
    (void)of;
    (void)slot;
    (void)room;
    for (number = range.begin; number < range.end; number++) {
        found += (uint32_t)is_prime(FIRST_NUMBER + number);
    }
    account();
    if (work_us_per_number > 0u) {
        station_work(work_us_per_number * (range.end - range.begin));
    }
    primes += found;
    return station_text(found, out);
}

static void worker_heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    zmtp_slice_t octets;
    octets.octets = event->octets;
    octets.size = event->size;
    gone_count += what < 0;
    if (form == FARM) {
        messages += what == (int32_t)ZMTP_FRAME;
        if ((taskfarm_worker_heard(&worker, link, what, event) < 0) && (what > 0)) {
            zmtp_net_close(net, link);
            gone_count++;
        }
    } else if ((what == (int32_t)ZMTP_FRAME) && (messages < 2u)) {
        interval[messages++] = station_number(octets);
    } else {
        /* Who is ready is seen by station_connect. */
    }
}

/** Sends each prime of the interval, and then DONE. */
static void send_primes(zmtp_link_t *link)
{
    uint32_t number;
    uint8_t text[10];
    for (number = interval[0]; (number < interval[1]) && (gone_count == 0u); number++) {
        if (is_prime(number)) {
            account();
            primes++;
            send(link, text, station_text(number, text));
        }
    }
    account();
    send(link, "DONE", 4);
}

static int run_worker(const char *address, uint16_t port)
{
    uint32_t began_us;
    uint32_t ready_us;
    uint32_t done_us;
    zmtp_link_t *link;
    int is_lost;
    worker = (taskfarm_worker_t){.credits = CREDITS, .tasks = tasks, .work = count_primes};
    net = station_open(ZMTP_DEALER, 1, worker_heard);
    began_us = station_now_us();
    link = (net == NULL) ? NULL : station_connect(net, address, port);
    ready_us = station_now_us();
    if (link == NULL) {
        return 1;
    }
    gone_count = 0;
    while ((gone_count == 0u) && ((form == FARM) ? !worker.is_ended : (messages < 2u))) {
        int has_done = (form == FARM) && taskfarm_worker_turn(&worker, link);
        station_turn(net, has_done ? 0u : 1000u);
    }
    if (form != FARM) {
        send_primes(link);
    }
    is_lost = (form != FARM) && (gone_count > 0u); /* nobody else has its interval */
    done_us = station_now_us();
    say("worker", ready_us - began_us, done_us - ready_us, station_close(net));
    station_linger();
    return is_lost;
}

int main(int count, char **arguments)
{
    static const char *const FORMS[] = {"original", "joined", "farm"};
    int is_master = (count == 6) && (strcmp(arguments[1], "master") == 0);
    int is_worker = ((count == 5) || (count == 6)) && (strcmp(arguments[1], "worker") == 0);
    uint32_t i = 0;
    while ((count > 2) && (i < 3u) && (strcmp(arguments[2], FORMS[i]) != 0)) {
        i++;
    }
    if ((!is_master && !is_worker) || (i == 3u)) {
        (void)fprintf(stderr, "prime_count master original|joined|farm WORKERS NUMBERS PORT\nprime_count worker original|joined|farm ADDRESS PORT [WORK_US]\n");
        return 2;
    }
    form = (form_t)i;
    work_us_per_number = (is_worker && (count == 6)) ? (uint32_t)atoi(arguments[5]) : 0u;
    return is_master ? run_master((uint32_t)atoi(arguments[3]), (uint32_t)atoi(arguments[4]), (uint16_t)atoi(arguments[5]))
                     : run_worker(arguments[3], (uint16_t)atoi(arguments[4]));
}
