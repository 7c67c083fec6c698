/* Who gets which units, and whose results count. */

#include "taskfarm_wire.h"

#define IS_FREE(chunk) ((chunk)->range.begin == (chunk)->range.end)

static uint32_t number_of(const taskfarm_master_t *master, const zmtp_link_t *link)
{
    return (uint32_t)(link - master->links);
}

static void grant(taskfarm_master_t *master, const zmtp_link_t *link, const uint8_t *octets)
{
    uint32_t credits = (uint32_t)master->credits[number_of(master, link)] + taskfarm_get16(octets);
    master->credits[number_of(master, link)] = (uint16_t)((credits < TASKFARM_CREDITS_MAX) ? credits : TASKFARM_CREDITS_MAX);
}

/** The chunk of this range that this worker has, or null: then its result was counted already, or is nobody's. */
static taskfarm_chunk_t *find(const taskfarm_master_t *master, const zmtp_link_t *worker, taskfarm_range_t range)
{
    taskfarm_chunk_t *found = NULL;
    uint32_t i;
    for (i = 0; i < master->chunks_count; i++) {
        taskfarm_chunk_t *chunk = &master->chunks[i];
        if (!IS_FREE(chunk) && (chunk->worker == worker) && (chunk->range.begin == range.begin) && (chunk->range.end == range.end)) {
            found = chunk;
        }
    }
    return found;
}

static int32_t heard_message(taskfarm_master_t *master, zmtp_link_t *link, zmtp_slice_t octets)
{
    int32_t result = 0;
    if ((octets.size == 3u) && (octets.octets[0] == (uint8_t)TASKFARM_GRANT)) {
        grant(master, link, &octets.octets[1]);
    } else if ((octets.size >= TASKFARM_RESULT_OVERHEAD) && (octets.octets[0] == (uint8_t)TASKFARM_RESULT)) {
        taskfarm_range_t range = taskfarm_get_range(&octets.octets[1]);
        taskfarm_chunk_t *chunk = find(master, link, range);
        if (chunk == NULL) {
            return ZMTP_UNEXPECTED;
        }
        grant(master, link, &octets.octets[9]);
        octets.octets += TASKFARM_RESULT_OVERHEAD;
        octets.size -= TASKFARM_RESULT_OVERHEAD;
        chunk->range.end = chunk->range.begin;
        master->counted += range.end - range.begin;
        master->result(master, range, octets);
    } else {
        result = ZMTP_BAD_COMMAND;
    }
    return result;
}

int32_t taskfarm_master_heard(taskfarm_master_t *master, zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    zmtp_slice_t octets;
    uint32_t i;
    octets.octets = event->octets;
    octets.size = event->size;
    if (what == (int32_t)ZMTP_FRAME) {
        return (event->more || event->goes_on) ? (int32_t)ZMTP_TOO_LONG : heard_message(master, link, octets);
    }
    if ((what == (int32_t)ZMTP_READY) || (what < 0)) {
        master->credits[number_of(master, link)] = 0;
        for (i = 0; i < master->chunks_count; i++) {
            if (master->chunks[i].worker == link) {
                master->chunks[i].worker = NULL;
            }
        }
    }
    return 0;
}

/** A chunk that a worker had who is gone. */
static taskfarm_chunk_t *lost_chunk(const taskfarm_master_t *master)
{
    uint32_t i = 0;
    while ((i < master->chunks_count) && (IS_FREE(&master->chunks[i]) || (master->chunks[i].worker != NULL))) {
        i++;
    }
    return (i < master->chunks_count) ? &master->chunks[i] : NULL;
}

/** A new one: half of what each worker would get if the rest were given out now (guided self-scheduling). */
static taskfarm_chunk_t *new_chunk(const taskfarm_master_t *master, uint32_t workers)
{
    uint32_t left = master->units - master->given;
    uint32_t size = left / (2u * workers);
    uint32_t i = 0;
    while ((i < master->chunks_count) && !IS_FREE(&master->chunks[i])) {
        i++;
    }
    if ((i == master->chunks_count) || (left == 0u)) {
        return NULL;
    }
    size = (size > master->chunk_min) ? size : master->chunk_min;
    size = ((master->chunk_max > 0u) && (size > master->chunk_max)) ? master->chunk_max : size;
    size = (size > 0u) ? size : 1u;
    size = (size < left) ? size : left;
    master->chunks[i].range.begin = master->given;
    master->chunks[i].range.end = master->given + size;
    master->chunks[i].worker = NULL;
    return &master->chunks[i];
}

static int32_t send_task(taskfarm_master_t *master, zmtp_link_t *link, taskfarm_range_t range)
{
    uint8_t head[TASKFARM_TASK_OVERHEAD];
    zmtp_slice_t load = {NULL, 0};
    int32_t result;
    head[0] = TASKFARM_TASK;
    taskfarm_put_range(&head[1], range);
    if (master->load != NULL) {
        load = master->load(master, range);
    }
    if (load.size == 0u) {
        result = zmtp_link_send_one(link, head, sizeof head);
    } else {
        zmtp_slice_t frames[2];
        frames[0].octets = head;
        frames[0].size = sizeof head;
        frames[1] = load;
        result = zmtp_link_send(link, frames, 2);
    }
    return result;
}

/** The next worker in turn that has a credit, or null. How many workers there are is counted by the way. */
static zmtp_link_t *next_worker(taskfarm_master_t *master, uint32_t *workers)
{
    zmtp_link_t *found = NULL;
    uint32_t i;
    *workers = 0;
    for (i = 1; i <= master->links_count; i++) {
        uint32_t at = (master->last + i) % master->links_count;
        zmtp_link_t *link = &master->links[at];
        int is_there = (link->state == (uint8_t)ZMTP_LINK_OPEN) && zmtp_is_ready(&link->zmtp);
        *workers += (uint32_t)is_there;
        if ((found == NULL) && is_there && (master->credits[at] > 0u)) {
            found = link;
            master->last = at;
        }
    }
    return found;
}

static void end(taskfarm_master_t *master)
{
    static const uint8_t END = TASKFARM_END;
    uint32_t i;
    for (i = 0; i < master->links_count; i++) {
        if ((master->links[i].state == (uint8_t)ZMTP_LINK_OPEN) && (master->credits[i] > 0u)) {
            master->credits[i] = (uint16_t)((zmtp_link_send_one(&master->links[i], &END, 1) == 0) ? 0u : master->credits[i]);
        }
    }
}

void taskfarm_master_turn(taskfarm_master_t *master)
{
    uint32_t workers;
    zmtp_link_t *link = next_worker(master, &workers);
    if (taskfarm_master_is_done(master)) {
        end(master);
        return;
    }
    while (link != NULL) {
        taskfarm_chunk_t *chunk = lost_chunk(master);
        int is_again = chunk != NULL;
        chunk = is_again ? chunk : new_chunk(master, workers);
        if (chunk == NULL) {
            return;
        }
        if (send_task(master, link, chunk->range) != 0) {
            chunk->range.end = is_again ? chunk->range.end : chunk->range.begin;
            return; /* without room it is tried again in the next turn */
        }
        chunk->worker = link;
        master->credits[number_of(master, link)]--;
        master->given = is_again ? master->given : chunk->range.end;
        master->repeated += (uint32_t)is_again;
        link = next_worker(master, &workers);
    }
}

int taskfarm_master_is_done(const taskfarm_master_t *master)
{
    return master->counted == master->units;
}
