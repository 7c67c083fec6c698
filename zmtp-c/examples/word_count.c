/**
 * Word and line count, the second use case of Mueller's thesis: 1,345 words in 117 lines, which the master has and the workers count.
 *
 *     word_count master FORM WORKERS PASSAGES PORT [COPIES]
 *     word_count worker FORM ADDRESS PORT
 *
 * FORM `original` is the thesis': each worker is given PASSAGES passages, the next one when the two messages with its counts of the one before are there. `farm`
 * gives out lines by the task farm (PASSAGES does not matter). The text is there COPIES times, one behind the other. Nobody holds it: the master writes a passage when it
 * gives it out, and a worker counts as it comes.
 * Either says a line of what it has counted and how long it took: the connection, the work and the end apart.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "station.h"
#include "taskfarm.h"

#define LINES 117u
#define WORDS 1345u
#define WORDS_OF_A_LINE (WORDS / LINES)
/** Lines from here on have a word more, so that the words come out even. */
#define FIRST_LONGER_LINE (LINES - (WORDS % LINES))
/** Octets of the longest passage: as long as the whole text once. */
#define PASSAGE_MAX 12288u
#define CREDITS 2u
/** What an octet of text takes a Cortex-M3 to look at. */
#define CYCLES_PER_OCTET 15u

static int is_farm;
static zmtp_net_t *net;
static uint32_t words;
static uint32_t lines;
static uint32_t messages; /* that were heard */
static uint32_t gone_count;

static void say(const char *who, uint32_t connect_us, uint32_t work_us, uint32_t close_us)
{
    printf("{\"who\": \"%s\", \"connect_us\": %u, \"work_us\": %u, \"close_us\": %u, \"words\": %u, \"lines\": %u, \"messages\": %u}\n", who, connect_us,
           work_us, close_us, words, lines, messages);
}

/* ---- the master ---- */

static taskfarm_master_t master;
static taskfarm_chunk_t chunks[STATION_LINKS_MAX * CREDITS];
static uint16_t credits[STATION_LINKS_MAX];
static uint32_t lines_of_all;               /* in all copies */
static uint32_t passages;                   /* of a worker */
static uint32_t given[STATION_LINKS_MAX];   /* passages that a worker was given */
static uint32_t replies[STATION_LINKS_MAX]; /* messages that it has answered with */
static uint8_t is_given;                    /* the first ones are */
static uint32_t lost_count; /* workers that were gone before they were done: nobody has their passages now */

/** Writes a line, and returns its octets: the words of a sentence, over and over. */
static uint32_t write_line(uint32_t line, uint8_t *out)
{
    static const char *const SOME[] = {"a", "node", "speaks", "when", "the", "channel", "is", "free"};
    uint32_t longer = (line > FIRST_LONGER_LINE) ? (line - FIRST_LONGER_LINE) : 0u;
    uint32_t word = (WORDS_OF_A_LINE * line) + longer;
    uint32_t count = WORDS_OF_A_LINE + (uint32_t)(line >= FIRST_LONGER_LINE);
    uint32_t size = 0;
    for (; count > 0u; count--) {
        const char *some = SOME[word++ % 8u];
        uint32_t length = (uint32_t)strlen(some);
        memcpy(&out[size], some, length);
        out[size + length] = (uint8_t)((count == 1u) ? '\n' : ' ');
        size += length + 1u;
    }
    return size;
}

/** The text of these lines, LINES at the most, up to the next call. */
static zmtp_slice_t lines_of(taskfarm_master_t *of, taskfarm_range_t range)
{
    static uint8_t passage[PASSAGE_MAX];
    zmtp_slice_t slice = {passage, 0};
    uint32_t line;
    (void)of;
    for (line = range.begin; line < range.end; line++) {
        slice.size += write_line(line % LINES, &passage[slice.size]);
    }
    station_compute(CYCLES_PER_OCTET * slice.size);
    return slice;
}

static void add_result(taskfarm_master_t *of, taskfarm_range_t range, zmtp_slice_t octets)
{
    (void)of;
    lines += range.end - range.begin;
    words += station_number(octets);
}

/** Gives a worker its next passage, if it has answered the one before. */
static void give(zmtp_link_t *link)
{
    uint32_t worker = (uint32_t)(link - net->links);
    uint32_t all = net->count * passages;
    uint32_t passage = (worker * passages) + given[worker];
    if ((given[worker] < passages) && (replies[worker] == (2u * given[worker]))) {
        taskfarm_range_t range;
        zmtp_slice_t slice;
        range.begin = (lines_of_all * passage) / all;
        range.end = (lines_of_all * (passage + 1u)) / all;
        slice = lines_of(NULL, range);
        given[worker] += (uint32_t)(zmtp_link_send_one(link, slice.octets, slice.size) == 0);
    }
}

static void master_heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    zmtp_slice_t octets;
    octets.octets = event->octets;
    octets.size = event->size;
    messages += what == (int32_t)ZMTP_FRAME;
    if (is_farm) {
        if ((taskfarm_master_heard(&master, link, what, event) < 0) && (what > 0)) {
            zmtp_net_close(net, link);
        }
    } else if (what == (int32_t)ZMTP_FRAME) {
        uint32_t *reply = &replies[link - net->links];
        words += ((*reply % 2u) == 0u) ? station_number(octets) : 0u;
        lines += ((*reply % 2u) == 0u) ? 0u : station_number(octets);
        (*reply)++;
        give(link);
    } else {
        /* Who is ready is seen by station_await_all. */
        lost_count += (what < 0) && is_given && (replies[link - net->links] < (2u * passages));
    }
}

static int run_master(uint32_t workers, uint16_t port, uint32_t copies)
{
    uint32_t began_us;
    uint32_t ready_us;
    uint32_t done_us;
    uint32_t i;
    net = station_open(ZMTP_ROUTER, workers, master_heard);
    began_us = station_now_us();
    if ((net == NULL) || (zmtp_net_listen(net, NULL, port) < 0)) {
        return 1;
    }
    lines_of_all = LINES * copies;
    master = (taskfarm_master_t){.units = lines_of_all, .chunk_max = LINES, .chunks = chunks, .chunks_count = workers * CREDITS, .links = net->links,
                                 .credits = credits, .links_count = workers, .load = lines_of, .result = add_result};
    station_await_all(net);
    ready_us = station_now_us();
    is_given = 1;
    for (i = 0; !is_farm && (i < workers); i++) {
        give(&net->links[i]);
    }
    while ((lines < lines_of_all) && (lost_count == 0u)) {
        if (is_farm) {
            taskfarm_master_turn(&master);
        }
        station_turn(net, 1000);
    }
    done_us = station_now_us();
    taskfarm_master_turn(&master);
    say("master", ready_us - began_us, done_us - ready_us, station_close(net));
    if (lost_count > 0u) {
        (void)fprintf(stderr, "word_count: a worker was gone before it was done, and nobody has its passages\n");
    }
    return (words == (WORDS * copies)) ? 0 : 1;
}

/* ---- a worker ---- */

/** What was counted of the text of a slot. */
typedef struct {
    uint32_t words;
    uint32_t lines;
    uint8_t is_inside; /* of a word */
} count_t;

static count_t counts[CREDITS];
static taskfarm_worker_t worker;
static taskfarm_range_t tasks[CREDITS];

static void count_text(taskfarm_worker_t *of, uint32_t slot, zmtp_slice_t octets)
{
    count_t *count = &counts[slot];
    uint32_t i;
    (void)of;
    for (i = 0; i < octets.size; i++) {
        int is_space = (octets.octets[i] == (uint8_t)' ') || (octets.octets[i] == (uint8_t)'\n');
        count->words += (uint32_t)(!is_space && !count->is_inside);
        count->lines += (uint32_t)(octets.octets[i] == (uint8_t)'\n');
        count->is_inside = (uint8_t)!is_space;
    }
    station_compute(CYCLES_PER_OCTET * octets.size);
}

static uint32_t tell_words(taskfarm_worker_t *of, uint32_t slot, taskfarm_range_t range, uint8_t *out, uint32_t room)
{
    uint32_t size = station_text(counts[slot].words, out);
    (void)of;
    (void)range;
    (void)room;
    words += counts[slot].words;
    lines += counts[slot].lines;
    counts[slot] = (count_t){0};
    return size;
}

/** A passage of the original form is over: two messages. */
static void answer(zmtp_link_t *link)
{
    uint8_t number[10];
    (void)zmtp_link_send_one(link, number, station_text(counts[0].words, number));
    zmtp_net_flush(net, link);
    (void)zmtp_link_send_one(link, number, station_text(counts[0].lines, number));
    zmtp_net_flush(net, link);
    words += counts[0].words;
    lines += counts[0].lines;
    counts[0] = (count_t){0};
}

static void worker_heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    zmtp_slice_t octets;
    octets.octets = event->octets;
    octets.size = event->size;
    gone_count += what < 0;
    messages += (what == (int32_t)ZMTP_FRAME) && !event->goes_on && !event->more;
    if (is_farm) {
        if ((taskfarm_worker_heard(&worker, link, what, event) < 0) && (what > 0)) {
            zmtp_net_close(net, link);
            gone_count++;
        }
    } else if (what == (int32_t)ZMTP_FRAME) {
        count_text(NULL, 0, octets);
        if (!event->goes_on) {
            answer(link);
        }
    } else {
        /* Who is ready is seen by station_connect. */
    }
}

static int run_worker(const char *address, uint16_t port)
{
    uint32_t began_us;
    uint32_t ready_us;
    uint32_t done_us;
    zmtp_link_t *link;
    worker = (taskfarm_worker_t){.credits = CREDITS, .tasks = tasks, .load = count_text, .work = tell_words};
    net = station_open(ZMTP_DEALER, 1, worker_heard);
    began_us = station_now_us();
    link = (net == NULL) ? NULL : station_connect(net, address, port);
    ready_us = station_now_us();
    if (link == NULL) {
        return 1;
    }
    gone_count = 0;
    while ((gone_count == 0u) && !worker.is_ended) {
        int has_done = is_farm && taskfarm_worker_turn(&worker, link);
        station_turn(net, has_done ? 0u : 1000u);
    }
    done_us = station_now_us();
    say("worker", ready_us - began_us, done_us - ready_us, station_close(net));
    station_linger();
    return 0; /* the master knows whether all is there */
}

int main(int count, char **arguments)
{
    int is_master = ((count == 6) || (count == 7)) && (strcmp(arguments[1], "master") == 0);
    int is_worker = (count == 5) && (strcmp(arguments[1], "worker") == 0);
    uint32_t workers = is_master ? (uint32_t)atoi(arguments[3]) : 0u;
    uint32_t copies = (is_master && (count == 7)) ? (uint32_t)atoi(arguments[6]) : 1u;
    passages = is_master ? (uint32_t)atoi(arguments[4]) : 0u;
    is_farm = (count > 2) && (strcmp(arguments[2], "farm") == 0);
    if ((!is_master && !is_worker) || (!is_farm && (strcmp(arguments[2], "original") != 0))) {
        (void)fprintf(stderr, "word_count master original|farm WORKERS PASSAGES PORT [COPIES]\nword_count worker original|farm ADDRESS PORT\n");
        return 2;
    }
    if (is_master && !is_farm && (copies > (workers * passages))) {
        (void)fprintf(stderr, "a passage would be longer than the text once: %u copies need as many passages of all workers\n", copies);
        return 2;
    }
    return is_master ? run_master(workers, (uint16_t)atoi(arguments[5]), copies) : run_worker(arguments[3], (uint16_t)atoi(arguments[4]));
}
