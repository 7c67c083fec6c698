/* A reliable publisher: who leads, what is sent, what is sent again. */

#include "bodkin_node.h"

#include <string.h>

#include "bodkin_hears.h"
#include "bodkin_retained.h"
#include "bodkin_trace.h"
#include "bodkin_wire.h"

#define NOBODY BODKIN_SESSIONS
#define NS_PER_MS 1000000u

int32_t bodkin_open(bodkin_node_t *node)
{
    uint32_t i;
    int is_right = strlen(node->name) <= BODKIN_NAME_MAX;
    node->leader = NOBODY;
    node->raised_by = NOBODY;
    for (i = 0; i < node->topics_count; i++) {
        bodkin_topic_t *topic = &node->topics[i];
        topic->oldest = 1;
        topic->next = 1;
        is_right = is_right && (strlen(topic->name) <= BODKIN_NAME_MAX) && (topic->capacity > 0u) && (topic->capacity >= topic->retention);
    }
    return is_right ? 0 : (int32_t)ZMTP_ARGUMENT;
}

static void tell(bodkin_node_t *node, bodkin_told_t what, const bodkin_topic_t *topic, uint64_t number, uint8_t reason)
{
    if (node->told != NULL) {
        node->told(node, what, topic, number, reason);
    }
}

/** Takes an event, of no trace: null, and why not. */
static bodkin_kept_t *take(bodkin_node_t *node, bodkin_topic_t *topic, const void *payload, uint32_t size, int32_t *result)
{
    uint64_t dropped;
    bodkin_kept_t *kept;
    *result = (size > topic->payload_max) ? (int32_t)ZMTP_TOO_LONG : 0;
    if ((*result == 0) && !bodkin_make_room(topic, &dropped)) {
        *result = ZMTP_ROOM;
    }
    if (*result != 0) {
        return NULL;
    }
    topic->newest++;
    kept = bodkin_kept(topic, topic->newest);
    memset(kept, 0, sizeof *kept);
    kept->created_utc_ns = node->utc_ns();
    kept->size = size;
    if (size > 0u) {
        memcpy(bodkin_payload(topic, topic->newest), payload, size);
    }
    if (dropped > 0u) {
        tell(node, BODKIN_DROPPED, topic, dropped, 0);
    }
    return kept;
}

int32_t bodkin_publish(bodkin_node_t *node, bodkin_topic_t *topic, const void *payload, uint32_t size)
{
    int32_t result;
    (void)take(node, topic, payload, size, &result);
    return result;
}

#if BODKIN_WITH_TRACES
int32_t bodkin_publish_traced(bodkin_node_t *node, bodkin_topic_t *topic, const void *payload, uint32_t size, const char *traceparent)
{
    int32_t result = 0;
    bodkin_kept_t *kept;
    if ((traceparent != NULL) && ((topic->traces == NULL) || !bodkin_is_trace((const uint8_t *)traceparent, BODKIN_TRACE_SIZE))) {
        return ZMTP_ARGUMENT;
    }
    kept = take(node, topic, payload, size, &result);
    if ((kept != NULL) && (traceparent != NULL)) {
        memcpy(bodkin_trace(topic, topic->newest), traceparent, BODKIN_TRACE_SIZE);
        kept->is_traced = 1;
    }
    return result;
}
#endif

/* ---- what is sent ---- */

static int32_t send_command(zmtp_link_t *link, const bodkin_command_t *command)
{
    return zmtp_link_send_one(link, command->octets, command->size);
}

static int32_t send_hello(const bodkin_node_t *node, zmtp_link_t *link)
{
    bodkin_command_t command;
    bodkin_begin(&command, BODKIN_KIND_HELLO, node->epoch);
    bodkin_add_number(&command, node->incarnation);
    bodkin_add_text(&command, node->name);
    return send_command(link, &command);
}

static int32_t send_watch(const bodkin_node_t *node, zmtp_link_t *link)
{
    bodkin_command_t command;
    bodkin_begin(&command, BODKIN_KIND_WATCH_GUARANTEE, node->epoch);
    return send_command(link, &command);
}

static int32_t send_resume(const bodkin_node_t *node, zmtp_link_t *link, const bodkin_topic_t *topic)
{
    bodkin_command_t command;
    bodkin_begin(&command, BODKIN_KIND_RESUME, node->epoch);
    bodkin_add_number(&command, node->incarnation);
    bodkin_add_number(&command, topic->oldest);
    bodkin_add_number(&command, topic->newest);
    bodkin_add_text(&command, topic->name);
    return send_command(link, &command);
}

static int32_t send_last(const bodkin_node_t *node, zmtp_link_t *link, const bodkin_topic_t *topic)
{
    bodkin_command_t command;
    bodkin_begin(&command, BODKIN_KIND_LAST, node->epoch);
    bodkin_add_number(&command, 0);
    bodkin_add_number(&command, node->incarnation);
    bodkin_add_number(&command, topic->next - 1u);
    bodkin_add_text(&command, topic->name);
    return send_command(link, &command);
}

static int32_t send_event(const bodkin_node_t *node, zmtp_link_t *link, const bodkin_topic_t *topic)
{
    const bodkin_kept_t *kept = bodkin_kept(topic, topic->next);
    uint8_t header[BODKIN_HEADER_SIZE];
    zmtp_slice_t frames[4];
    uint32_t count = 3;
#if BODKIN_WITH_TRACES
    uint8_t metadata[BODKIN_TRACE_METADATA_SIZE];
#endif
    bodkin_write_header(header, topic->next <= topic->resent_through, node->incarnation, topic->next, kept->created_utc_ns, node->epoch);
    frames[0].octets = (const uint8_t *)topic->name;
    frames[0].size = (uint32_t)strlen(topic->name);
    frames[1].octets = bodkin_payload(topic, topic->next);
    frames[1].size = kept->size;
    frames[2].octets = header;
    frames[2].size = BODKIN_HEADER_SIZE;
#if BODKIN_WITH_TRACES
    if (kept->is_traced) {
        bodkin_write_trace(metadata, bodkin_trace(topic, topic->next));
        frames[3].octets = metadata;
        frames[3].size = sizeof metadata;
        count = 4;
    }
#endif
    return zmtp_link_send(link, frames, count);
}

/** Sends the next thing of a topic: nonzero, if there was one and it found room. */
static int send_next(bodkin_node_t *node, zmtp_link_t *link, bodkin_topic_t *topic, uint32_t now_ms)
{
    int is_sent = 0;
    topic->is_paused = (uint8_t)(topic->is_paused && ((int32_t)(now_ms - topic->paused_until_ms) < 0));
    if (topic->is_paused) {
        return 0;
    }
    while ((topic->next <= topic->newest) && bodkin_kept(topic, topic->next)->is_gone) {
        topic->next++;
    }
    if (topic->is_resuming) {
        is_sent = send_resume(node, link, topic) == 0;
        if (is_sent) {
            topic->is_resuming = 0;
            topic->resent_through = topic->newest;
        }
    } else if (topic->next <= topic->newest) {
        is_sent = send_event(node, link, topic) == 0;
        topic->next += (uint64_t)is_sent;
    } else if (((topic->next - 1u) > topic->covered) && ((now_ms - topic->sent_ms) >= BODKIN_LAST_MS)) {
        is_sent = send_last(node, link, topic) == 0;
    } else {
        /* Everything is said. */
    }
    topic->sent_ms = is_sent ? now_ms : topic->sent_ms;
    return is_sent;
}

void bodkin_turn(bodkin_node_t *node, uint32_t now_ms)
{
    uint32_t session;
    uint32_t idle = 0;
    for (session = 0; session < BODKIN_SESSIONS; session++) {
        if (node->owes_hello[session]) {
            node->owes_hello[session] = (uint8_t)(send_hello(node, node->links[session]) != 0);
        }
        if (node->owes_watch[session] && !node->owes_hello[session]) {
            node->owes_watch[session] = (uint8_t)(send_watch(node, node->links[session]) != 0);
        }
    }
    /* Topics take turns, until each has nothing or finds no room. */
    while ((node->leader != NOBODY) && (idle < node->topics_count)) {
        bodkin_topic_t *topic = &node->topics[node->turn % node->topics_count];
        node->turn = (node->turn + 1u) % node->topics_count;
        idle = send_next(node, node->links[node->leader], topic, now_ms) ? 0u : (idle + 1u);
    }
#if BODKIN_WITH_SUBSCRIBER
    bodkin_hears_turn(node);
#endif
}

/* ---- what is heard ---- */

static void resigned(bodkin_node_t *node, uint32_t session)
{
    if (node->leader == session) {
        node->leader = NOBODY;
        tell(node, BODKIN_LEADERLESS, NULL, 0, 0);
    }
}

/** A broker says that it leads. Epochs only grow, and one epoch has one leader; brokers that are no pair lead in epoch 0. */
void bodkin_leads(bodkin_node_t *node, uint32_t session, uint64_t epoch)
{
    int is_other = (node->raised_by != NOBODY) && (node->raised_by != session);
    int is_known = (epoch == node->epoch) && (node->leader == session);
    uint32_t i;
    if ((epoch < node->epoch) || ((epoch == node->epoch) && is_other && (epoch != 0u)) || is_known) {
        return;
    }
    node->epoch = epoch;
    node->raised_by = (uint8_t)session;
    node->leader = (uint8_t)session;
    for (i = 0; i < node->topics_count; i++) {
        bodkin_resume(&node->topics[i]);
    }
    tell(node, BODKIN_LEADS, NULL, session, 0);
}

static bodkin_topic_t *topic_of(bodkin_node_t *node, zmtp_slice_t name)
{
    uint32_t i;
    for (i = 0; i < node->topics_count; i++) {
        if ((strlen(node->topics[i].name) == name.size) && (memcmp(node->topics[i].name, name.octets, name.size) == 0)) {
            return &node->topics[i];
        }
    }
    return NULL;
}

static void refused(bodkin_node_t *node, bodkin_topic_t *topic, uint64_t sequence, uint8_t reason, uint64_t retry_ns, uint32_t now_ms)
{
    uint64_t retry_ms = retry_ns / NS_PER_MS;
    if (!bodkin_was_sent(topic, sequence) || (reason == BODKIN_NOT_LEADING) || (reason == BODKIN_HIGHER_EPOCH)) {
        return; /* whoever leads instead will say so, and everything is sent again */
    }
    if (reason == BODKIN_FULL) {
        bodkin_rewind(topic, sequence, now_ms + (uint32_t)((retry_ms < BODKIN_RETRY_MS_MAX) ? retry_ms : BODKIN_RETRY_MS_MAX));
    } else {
        bodkin_kept(topic, sequence)->is_gone = 1;
        tell(node, BODKIN_NOT_TAKEN, topic, sequence, reason);
    }
}

/** What is guaranteed, and seven figures that it follows from, which are for whoever looks after the broker. */
static int32_t heard_guarantee(bodkin_node_t *node, uint32_t session, uint64_t epoch, bodkin_reader_t *reader)
{
    uint8_t deadlines = bodkin_read_octet(reader);
    uint8_t losses = bodkin_read_octet(reader);
    uint32_t i;
    for (i = 0; i < 7u; i++) {
        (void)bodkin_read_number(reader);
    }
    if (reader->is_cut || (deadlines < (uint8_t)BODKIN_PENDING) || (deadlines > (uint8_t)BODKIN_SUSPENDED) || (losses < (uint8_t)BODKIN_PENDING) ||
        (losses > (uint8_t)BODKIN_SUSPENDED)) {
        return ZMTP_BAD_COMMAND;
    }
    if ((node->leader == session) && (epoch == node->epoch)) {
        tell(node, BODKIN_GUARANTEE, NULL, deadlines, losses);
    }
    return 0;
}

static int32_t answer_clock(bodkin_node_t *node, zmtp_link_t *link, uint64_t sent_utc_ns)
{
    bodkin_command_t command;
    uint64_t now = node->utc_ns();
    bodkin_begin(&command, BODKIN_KIND_CLOCK_REPLY, node->epoch);
    bodkin_add_number(&command, sent_utc_ns);
    bodkin_add_number(&command, now);
    bodkin_add_number(&command, now);
    (void)send_command(link, &command); /* without room for it the broker asks again */
    return 0;
}

/** A command that is of a topic: its fields in front of the topic's name are up to three numbers, with a reason behind the first. */
static int32_t heard_of_topic(bodkin_node_t *node, uint32_t session, uint8_t kind, uint64_t epoch, bodkin_reader_t *reader, uint32_t now_ms)
{
    uint64_t first = bodkin_read_number(reader);
    uint8_t reason = (kind == BODKIN_KIND_REFUSED) ? bodkin_read_octet(reader) : 0u;
    uint64_t second = bodkin_read_number(reader);
    uint64_t third = (kind == BODKIN_KIND_LOST) ? bodkin_read_number(reader) : 0u;
    bodkin_topic_t *topic = topic_of(node, bodkin_read_text(reader));
    if (reader->is_cut || ((topic == NULL) && (kind != BODKIN_KIND_LOST))) {
        return ZMTP_BAD_COMMAND;
    }
    if (topic == NULL) {
        /* Of what is heard only, it is missed when the next event comes. */
    } else if (kind == BODKIN_KIND_LOST) {
        tell(node, BODKIN_LOST, topic, third, 0);
    } else if (node->leader != session) {
        /* Who does not lead decides nothing. */
    } else if (kind == BODKIN_KIND_REFUSED) {
        refused(node, topic, first, reason, second, now_ms);
    } else if (first != node->incarnation) {
        /* It is of an earlier run. */
    } else if (kind == BODKIN_KIND_EXCESS) {
        tell(node, BODKIN_EXCESS, topic, second, 0);
    } else if ((epoch == node->epoch) && bodkin_cover(topic, second)) {
        tell(node, BODKIN_COVERED, topic, second, 0);
    } else {
        /* It is covered already. */
    }
    return 0;
}

static int32_t heard_command(bodkin_node_t *node, uint32_t session, zmtp_link_t *link, zmtp_slice_t octets, uint32_t now_ms)
{
    bodkin_reader_t reader = {octets, 0};
    int32_t result = 0;
    uint8_t version = bodkin_read_octet(&reader);
    uint8_t kind = bodkin_read_octet(&reader);
    uint64_t epoch = bodkin_read_number(&reader);
#if BODKIN_WITH_SUBSCRIBER
    result = bodkin_hears_command(node, session, kind, epoch, reader);
    if ((result != BODKIN_NOT_HEARD) && (version == 1u)) {
        return result;
    }
    result = 0;
#endif
    switch (kind) {
    case BODKIN_KIND_LEADER:
        if (bodkin_read_octet(&reader) != 0u) {
            bodkin_leads(node, session, epoch);
        } else {
            resigned(node, session);
        }
#if BODKIN_WITH_SUBSCRIBER
        bodkin_hears_leader(node, session);
#endif
        break;
    case BODKIN_KIND_CLOCK_REQUEST:
        result = answer_clock(node, link, bodkin_read_number(&reader));
        break;
    case BODKIN_KIND_GUARANTEED:
        result = heard_guarantee(node, session, epoch, &reader);
        break;
    case BODKIN_KIND_COVERED:
    case BODKIN_KIND_REFUSED:
    case BODKIN_KIND_LOST:
    case BODKIN_KIND_EXCESS:
        result = heard_of_topic(node, session, kind, epoch, &reader, now_ms);
        break;
    default:
        result = ZMTP_BAD_COMMAND;
        break;
    }
    return ((version != 1u) || reader.is_cut) ? (int32_t)ZMTP_BAD_COMMAND : result;
}

int32_t bodkin_heard(bodkin_node_t *node, uint32_t session, zmtp_link_t *link, int32_t what, const zmtp_event_t *event, uint32_t now_ms)
{
    int32_t result = 0;
    if (what < 0) {
        resigned(node, session);
        node->links[session] = NULL;
        node->owes_hello[session] = 0;
        node->owes_watch[session] = 0;
        node->is_inside[session] = 0;
#if BODKIN_WITH_SUBSCRIBER
        bodkin_hears_session(node, session);
#endif
    } else if (what == (int32_t)ZMTP_READY) {
        node->links[session] = link;
        node->owes_hello[session] = 1;
        node->owes_watch[session] = node->watches_guarantee;
#if BODKIN_WITH_SUBSCRIBER
        bodkin_hears_session(node, session);
    } else if ((what == (int32_t)ZMTP_FRAME) && !node->is_inside[session] && bodkin_hears_frame(node, session, event)) {
        result = bodkin_hear(node, session, event);
#endif
    } else if ((what == (int32_t)ZMTP_FRAME) && !node->is_inside[session]) {
        zmtp_slice_t octets;
        octets.octets = event->octets;
        octets.size = event->size;
        /* A command is one frame; of one that is longer than the buffer only its text is cut. */
        result = event->more ? (int32_t)ZMTP_BAD_COMMAND : heard_command(node, session, link, octets, now_ms);
        node->is_inside[session] = event->goes_on;
    } else if (what == (int32_t)ZMTP_FRAME) {
        node->is_inside[session] = event->goes_on;
    } else {
        /* Heartbeats are the link's. */
    }
    return result;
}
