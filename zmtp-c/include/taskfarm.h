/**
 * A task farm over DEALER (workers) and ROUTER (the master): work of so many units is given out in chunks, and each unit's result counts once.
 *
 * A worker grants credits for as many chunks as it can hold, two or more, so that it never waits for the next one; a credit comes back on each result.
 * Chunks are large at the beginning and shrink towards the end, so that all workers end together. The chunks of a worker that is gone are given to others.
 * Messages are one frame each (docs/formats/taskfarm.md). No I/O, no clock, no allocation.
 */
#ifndef TASKFARM_H
#define TASKFARM_H

#include "zmtp_link.h"

/** Most credits of a worker. */
#define TASKFARM_CREDITS_MAX 64u

/** Octets of a result beside what the worker says, and of a task beside its payload. */
#define TASKFARM_RESULT_OVERHEAD 11u
#define TASKFARM_TASK_OVERHEAD 9u

/** Units begin to end - 1. */
typedef struct {
    uint32_t begin;
    uint32_t end;
} taskfarm_range_t;

/* ---- master ---- */

/** What was given out and has no result. A free place has an empty range; without a worker it is to be given again. */
typedef struct {
    taskfarm_range_t range;
    zmtp_link_t *worker;
} taskfarm_chunk_t;

typedef struct taskfarm_master taskfarm_master_t;

/** The master. The first group is the caller's to set, the rest begins as zeros. */
struct taskfarm_master {
    uint32_t units;           /**< all of the work: units 0 to units - 1 */
    uint32_t chunk_max;       /**< units in a chunk at the most; 0: as many as there are */
    uint32_t chunk_min;       /**< and at the least, but for the last one; 0: one */
    taskfarm_chunk_t *chunks; /**< as many as may be out at the same time: workers times their credits */
    uint32_t chunks_count;
    zmtp_link_t *links;       /**< those of the net on which workers come */
    uint16_t *credits;        /**< one for each link */
    uint32_t links_count;
    /** What a task carries beside its range, up to the next call; null: nothing. */
    zmtp_slice_t (*load)(taskfarm_master_t *master, taskfarm_range_t range);
    /** Is given each chunk's result, once. */
    void (*result)(taskfarm_master_t *master, taskfarm_range_t range, zmtp_slice_t octets);
    void *owner; /**< the caller's */

    uint32_t given;    /* units that were given out at least once: those below */
    uint32_t counted;  /* units whose result has come */
    uint32_t repeated; /* chunks that were given again */
    uint32_t last;     /* the link that was given a chunk last */
};

/** For the heard function of the net: what a worker's link was told. 0, or a fault of the worker's for which the caller closes the link. */
int32_t taskfarm_master_heard(taskfarm_master_t *master, zmtp_link_t *link, int32_t what, const zmtp_event_t *event);

/** Gives out what workers have credits for. To be called after each turn of the net. */
void taskfarm_master_turn(taskfarm_master_t *master);

/** Whether every unit's result has come. */
int taskfarm_master_is_done(const taskfarm_master_t *master);

/* ---- worker ---- */

typedef struct taskfarm_worker taskfarm_worker_t;

/** The worker. The first group is the caller's to set, the rest begins as zeros. */
struct taskfarm_worker {
    uint16_t credits;        /**< chunks that it can hold: 1 to TASKFARM_CREDITS_MAX */
    taskfarm_range_t *tasks; /**< `credits` of them */
    /** Is given what a task carries, in one or several pieces, as it comes; null: nobody wants it. `slot` is below credits, the task's until its result. */
    void (*load)(taskfarm_worker_t *worker, uint32_t slot, zmtp_slice_t octets);
    /** Does a task: writes its result, at most `room` octets; how many. */
    uint32_t (*work)(taskfarm_worker_t *worker, uint32_t slot, taskfarm_range_t range, uint8_t *out, uint32_t room);
    void *owner; /**< the caller's */

    uint32_t first;   /* slot of the oldest task */
    uint32_t waiting; /* tasks that wait */
    uint32_t loading; /* slot whose task is coming in, if is_loading */
    uint8_t is_loading;
    uint8_t has_granted;
    uint8_t is_ended; /* the master has everything */
};

/** For the heard function of the worker's link. 0, or a fault of the master's. */
int32_t taskfarm_worker_heard(taskfarm_worker_t *worker, zmtp_link_t *link, int32_t what, const zmtp_event_t *event);

/**
 * Grants, or does the oldest task. To be called until it has nothing to do, each time with a turn of the net behind it, so that a result does not wait for the next one.
 *
 * @retval nonzero: it has done something
 */
int taskfarm_worker_turn(taskfarm_worker_t *worker, zmtp_link_t *link);

#endif
