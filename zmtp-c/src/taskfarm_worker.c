/* Tasks as they come, and their results. */

#include "taskfarm_wire.h"

/** Octets of a result that fit into what the worker writes. */
#define RESULT_MAX 64u

static int32_t begin_task(taskfarm_worker_t *worker, const zmtp_event_t *event)
{
    taskfarm_range_t range;
    if ((event->size == 1u) && (event->octets[0] == (uint8_t)TASKFARM_END)) {
        worker->is_ended = 1;
        return 0;
    }
    if ((event->size != TASKFARM_TASK_OVERHEAD) || (event->octets[0] != (uint8_t)TASKFARM_TASK)) {
        return ZMTP_BAD_COMMAND;
    }
    if (worker->waiting == worker->credits) {
        return ZMTP_UNEXPECTED; /* nobody has granted this */
    }
    range = taskfarm_get_range(&event->octets[1]);
    if (range.begin >= range.end) {
        return ZMTP_BAD_COMMAND;
    }
    worker->loading = (worker->first + worker->waiting) % worker->credits;
    worker->tasks[worker->loading] = range;
    worker->is_loading = event->more;
    worker->waiting += (uint32_t)(event->more == 0u);
    return 0;
}

int32_t taskfarm_worker_heard(taskfarm_worker_t *worker, zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    int32_t result = 0;
    (void)link;
    if ((what == (int32_t)ZMTP_READY) || (what < 0)) {
        /* What was given on the connection before is given to others. */
        worker->waiting = 0;
        worker->is_loading = 0;
        worker->has_granted = 0;
    } else if ((what == (int32_t)ZMTP_FRAME) && worker->is_loading) {
        zmtp_slice_t octets;
        octets.octets = event->octets;
        octets.size = event->size;
        if (worker->load != NULL) {
            worker->load(worker, worker->loading, octets);
        }
        worker->is_loading = (uint8_t)(event->goes_on || event->more);
        worker->waiting += (uint32_t)(worker->is_loading == 0u);
    } else if (what == (int32_t)ZMTP_FRAME) {
        result = begin_task(worker, event);
    } else {
        /* Heartbeats are the link's. */
    }
    return result;
}

int taskfarm_worker_turn(taskfarm_worker_t *worker, zmtp_link_t *link)
{
    uint8_t message[TASKFARM_RESULT_OVERHEAD + RESULT_MAX];
    int has_done = 0;
    if (!zmtp_is_ready(&link->zmtp)) {
        return 0;
    }
    if (!worker->has_granted) {
        message[0] = TASKFARM_GRANT;
        taskfarm_put16(&message[1], worker->credits);
        has_done = zmtp_link_send_one(link, message, 3) == 0;
        worker->has_granted = (uint8_t)has_done;
    } else if ((worker->waiting > 0u) && (zmtp_link_room(link) >= zmtp_frame_size(sizeof message))) {
        taskfarm_range_t range = worker->tasks[worker->first];
        uint32_t size = worker->work(worker, worker->first, range, &message[TASKFARM_RESULT_OVERHEAD], RESULT_MAX);
        message[0] = TASKFARM_RESULT;
        taskfarm_put_range(&message[1], range);
        taskfarm_put16(&message[9], 1);
        has_done = zmtp_link_send_one(link, message, TASKFARM_RESULT_OVERHEAD + size) == 0;
        worker->first = (worker->first + 1u) % worker->credits;
        worker->waiting--;
    } else {
        /* There is nothing to do, or no room for its result. */
    }
    return has_done;
}
