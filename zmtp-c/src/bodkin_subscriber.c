/* A subscriber: which events are new, which are missing, and what is acknowledged. */

#include "bodkin_subscriber.h"

#include <string.h>

#include "bodkin_hears.h"
#include "bodkin_trace.h"

#if BODKIN_WITH_SUBSCRIBER

#define PLACES 64u
#define NS_PER_MS 1000000u

static const zmtp_slice_t NOTHING = {NULL, 0};

enum { FLAG_RECOVERED = 2, FLAG_LAST = 4, FLAG_DERIVED = 16, FLAG_MARKED = 32, FLAGS_MAX = 63 };
enum { FRAME_TYPE, FRAME_PAYLOAD, FRAME_HEADER, FRAME_METADATA, FRAME_METADATA_REST };

static void tell(bodkin_subscriber_t *subscriber, bodkin_hears_told_t what, const bodkin_subscription_t *subscription, uint64_t from, uint64_t count)
{
    if (subscriber->told != NULL) {
        subscriber->told(subscriber, what, subscription, from, count);
    }
}

static const bodkin_subscription_t *subscription_of(const bodkin_subscriber_t *subscriber, zmtp_slice_t name)
{
    uint32_t i;
    for (i = 0; i < subscriber->subscriptions_count; i++) {
        const char *ours = subscriber->subscriptions[i].name;
        if ((strlen(ours) == name.size) && (memcmp(ours, name.octets, name.size) == 0)) {
            return &subscriber->subscriptions[i];
        }
    }
    return NULL;
}

/* ---- streams ---- */

/** Nothing up to here comes any more: what is passed over is lost, but for what a graph has held back, which was never there. */
static void pass(bodkin_subscriber_t *subscriber, const bodkin_subscription_t *subscription, bodkin_stream_t *stream, uint64_t through, int is_derived)
{
    if (through > stream->newest) {
        uint64_t run = through - stream->newest;
        uint64_t from = stream->newest + 1u;
        stream->places = (run < PLACES) ? (stream->places << run) : 0u;
        stream->newest = through;
        stream->is_unacknowledged = 1;
        if (!is_derived) {
            tell(subscriber, BODKIN_MISSED, subscription, from, run);
        }
    }
}

/** Takes an event's place: nonzero, if the event is for the application; it is late if newer ones came before it. */
static int take(bodkin_subscriber_t *subscriber, bodkin_stream_t *stream, bodkin_event_t *event)
{
    uint64_t sequence = event->sequence;
    uint64_t age;
    int is_new = sequence > stream->newest;
    stream->is_unacknowledged = 1; /* what the broker sends again it has no acknowledgement for */
    if (is_new) {
        pass(subscriber, event->subscription, stream, sequence - 1u, event->is_derived);
        stream->places = (stream->places << 1) | 1u;
        stream->newest = sequence;
    }
    age = stream->newest - sequence;
    if (!is_new && (sequence > stream->begins_behind) && (age < PLACES) && ((stream->places & ((uint64_t)1u << age)) == 0u)) {
        stream->places |= (uint64_t)1u << age;
        event->is_late = 1;
    }
    return is_new || event->is_late;
}

/** A place for a run that is not known yet: a free one, or that of the run before the publisher's newest; null: there is none, or this run is older than either. */
static bodkin_stream_t *place_for(const bodkin_subscription_t *subscription, uint64_t publisher, uint64_t incarnation, int *is_known)
{
    bodkin_stream_t *unused = NULL;
    bodkin_stream_t *oldest = NULL;
    uint32_t runs = 0;
    uint32_t i;
    for (i = 0; i < subscription->streams_count; i++) {
        bodkin_stream_t *stream = &subscription->streams[i];
        if (!stream->is_used) {
            unused = (unused == NULL) ? stream : unused;
        } else if (stream->publisher == publisher) {
            runs++;
            oldest = ((oldest == NULL) || (stream->incarnation < oldest->incarnation)) ? stream : oldest;
        } else {
            /* Another publisher's. */
        }
    }
    *is_known = runs > 0u;
    if ((oldest != NULL) && (incarnation < oldest->incarnation)) {
        return NULL;
    }
    return ((runs > 1u) || (unused == NULL)) ? oldest : unused;
}

/** The stream of a run of a publisher, which begins if it is not known; or null. */
static bodkin_stream_t *stream_of(bodkin_subscriber_t *subscriber, const bodkin_subscription_t *subscription, uint64_t publisher, uint64_t incarnation, uint64_t behind)
{
    bodkin_stream_t *stream;
    int is_known;
    uint32_t i;
    for (i = 0; i < subscription->streams_count; i++) {
        stream = &subscription->streams[i];
        if (stream->is_used && (stream->publisher == publisher) && (stream->incarnation == incarnation)) {
            return stream;
        }
    }
    stream = place_for(subscription, publisher, incarnation, &is_known);
    if (stream != NULL) {
        memset(stream, 0, sizeof *stream);
        stream->is_used = 1;
        stream->publisher = publisher;
        stream->incarnation = incarnation;
        stream->begins_behind = (is_known || subscription->begins_first) ? 0u : behind;
        stream->newest = stream->begins_behind;
    } else if (!is_known) {
        tell(subscriber, BODKIN_TOO_MANY_STREAMS, subscription, 0, 1);
    } else {
        /* A newer run has published so much that this one is forgotten. */
    }
    return stream;
}

/** Whether a frame of this epoch comes from who leads; that of a higher one says that its sender does. */
static int believes(bodkin_node_t *node, uint32_t session, uint64_t epoch)
{
    if (epoch > node->epoch) {
        bodkin_leads(node, session, epoch);
        bodkin_hears_leader(node, session);
    }
    return epoch == node->epoch;
}

static void last(bodkin_subscriber_t *subscriber, const bodkin_subscription_t *subscription, uint64_t publisher, uint64_t incarnation, uint64_t sequence)
{
    bodkin_stream_t *stream = stream_of(subscriber, subscription, publisher, incarnation, sequence);
    if (stream != NULL) {
        pass(subscriber, subscription, stream, sequence, 0);
    }
}

/* ---- what comes ---- */

void bodkin_hears_session(const bodkin_node_t *node, uint32_t session)
{
    bodkin_subscriber_t *subscriber = node->subscriber;
    if (subscriber != NULL) {
        subscriber->is_attached[session] = 0;
        subscriber->subscribed[session] = 0;
        subscriber->frame[session] = FRAME_TYPE;
    }
}

void bodkin_hears_leader(const bodkin_node_t *node, uint32_t session)
{
    if (node->subscriber != NULL) {
        node->subscriber->is_attached[session] = 1;
    }
}

int bodkin_hears_frame(const bodkin_node_t *node, uint32_t session, const zmtp_event_t *event)
{
    return (node->subscriber != NULL) && (event->more || (node->subscriber->frame[session] != FRAME_TYPE));
}

/** Header and metadata are in: the event is whole. */
static int32_t hear_event(bodkin_node_t *node, uint32_t session, zmtp_slice_t header, zmtp_slice_t metadata)
{
    bodkin_subscriber_t *subscriber = node->subscriber;
    bodkin_reader_t reader = {header, 0};
    bodkin_event_t event;
    uint8_t version = bodkin_read_octet(&reader);
    uint8_t flags = bodkin_read_octet(&reader);
    bodkin_stream_t *stream;
    uint64_t epoch;
    memset(&event, 0, sizeof event);
    event.subscription = subscriber->coming[session];
    event.publisher = bodkin_read_number(&reader);
    event.incarnation = bodkin_read_number(&reader);
    event.sequence = bodkin_read_number(&reader);
    event.created_utc_ns = bodkin_read_number(&reader);
    epoch = bodkin_read_number(&reader);
    event.size = subscriber->size[session];
    event.payload.octets = &subscriber->payloads[session * subscriber->payload_max];
    event.payload.size = (event.size < subscriber->payload_max) ? event.size : subscriber->payload_max;
    event.metadata = metadata;
#if BODKIN_WITH_TRACES
    event.trace = bodkin_find_trace(metadata);
#endif
    event.is_recovered = (uint8_t)((flags & FLAG_RECOVERED) != 0);
    event.is_derived = (uint8_t)((flags & FLAG_DERIVED) != 0);
    event.is_marked = (uint8_t)((flags & FLAG_MARKED) != 0);
    if ((header.size != BODKIN_HEADER_SIZE) || (version != 1u) || (flags > FLAGS_MAX) || ((event.sequence == 0u) && ((flags & FLAG_LAST) == 0))) {
        return ZMTP_BAD_COMMAND;
    }
    if ((event.subscription == NULL) || !believes(node, session, epoch)) {
        return 0;
    }
    if ((flags & FLAG_LAST) != 0) {
        last(subscriber, event.subscription, event.publisher, event.incarnation, event.sequence);
        return 0;
    }
    stream = stream_of(subscriber, event.subscription, event.publisher, event.incarnation, event.sequence - 1u);
    if ((stream != NULL) && take(subscriber, stream, &event)) {
        subscriber->heard(subscriber, &event);
    }
    return 0;
}

/** Keeps octets of a payload, as far as there is room. */
static void keep(bodkin_subscriber_t *subscriber, uint32_t session, const zmtp_event_t *event)
{
    uint32_t at = subscriber->size[session];
    uint32_t room = (at < subscriber->payload_max) ? (subscriber->payload_max - at) : 0u;
    uint32_t size = (event->size < room) ? event->size : room;
    if (size > 0u) {
        memcpy(&subscriber->payloads[(session * subscriber->payload_max) + at], event->octets, size);
    }
    subscriber->size[session] += event->size;
}

/** Takes metadata, which are the last frame: those that come whole. */
static int32_t hear_metadata(bodkin_node_t *node, uint32_t session, const zmtp_event_t *event)
{
    uint8_t *frame = &node->subscriber->frame[session];
    zmtp_slice_t header;
    zmtp_slice_t metadata;
    int is_whole = (*frame == (uint8_t)FRAME_METADATA) && !event->goes_on;
    if (event->more) {
        return ZMTP_BAD_COMMAND;
    }
    *frame = FRAME_METADATA_REST;
    if (event->goes_on) {
        return 0;
    }
    *frame = FRAME_TYPE;
    header.octets = node->subscriber->headers[session];
    header.size = BODKIN_HEADER_SIZE;
    metadata.octets = event->octets;
    metadata.size = event->size;
    return hear_event(node, session, header, is_whole ? metadata : NOTHING);
}

int32_t bodkin_hear(bodkin_node_t *node, uint32_t session, const zmtp_event_t *event)
{
    bodkin_subscriber_t *subscriber = node->subscriber;
    uint8_t *frame = &subscriber->frame[session];
    zmtp_slice_t octets;
    int32_t result = 0;
    octets.octets = event->octets;
    octets.size = event->size;
    if (*frame == (uint8_t)FRAME_PAYLOAD) {
        keep(subscriber, session, event);
        if (!event->goes_on) {
            /* Without a header it is nothing that could be heard once. */
            *frame = (uint8_t)(event->more ? FRAME_HEADER : FRAME_TYPE);
        }
    } else if (*frame >= (uint8_t)FRAME_METADATA) {
        result = hear_metadata(node, session, event);
    } else if (event->goes_on || (!event->more && (*frame == (uint8_t)FRAME_TYPE))) {
        result = ZMTP_BAD_COMMAND;
    } else if (*frame == (uint8_t)FRAME_TYPE) {
        subscriber->coming[session] = subscription_of(subscriber, octets);
        subscriber->size[session] = 0;
        *frame = FRAME_PAYLOAD;
    } else if (!event->more) {
        *frame = FRAME_TYPE;
        result = hear_event(node, session, octets, NOTHING);
    } else if (octets.size != BODKIN_HEADER_SIZE) {
        result = ZMTP_BAD_COMMAND;
    } else {
        memcpy(subscriber->headers[session], octets.octets, BODKIN_HEADER_SIZE);
        *frame = FRAME_METADATA;
    }
    return result;
}

int32_t bodkin_hears_command(bodkin_node_t *node, uint32_t session, uint8_t kind, uint64_t epoch, bodkin_reader_t reader)
{
    bodkin_subscriber_t *subscriber = node->subscriber;
    uint8_t reason = (kind == (uint8_t)BODKIN_KIND_SUBSCRIBE_REFUSED) ? bodkin_read_octet(&reader) : 0u;
    int is_last = kind == (uint8_t)BODKIN_KIND_LAST;
    uint64_t publisher = is_last ? bodkin_read_number(&reader) : 0u;
    uint64_t incarnation = is_last ? bodkin_read_number(&reader) : 0u;
    uint64_t sequence = is_last ? bodkin_read_number(&reader) : 0u;
    const bodkin_subscription_t *subscription;
    if ((subscriber == NULL) || (!is_last && (kind != (uint8_t)BODKIN_KIND_SUBSCRIBED) && (kind != (uint8_t)BODKIN_KIND_SUBSCRIBE_REFUSED))) {
        return BODKIN_NOT_HEARD;
    }
    subscription = subscription_of(subscriber, bodkin_read_text(&reader));
    if (reader.is_cut || (subscription == NULL)) {
        return ZMTP_BAD_COMMAND;
    }
    if (kind == (uint8_t)BODKIN_KIND_SUBSCRIBED) {
        tell(subscriber, BODKIN_SUBSCRIBED, subscription, session, 0);
    } else if (kind == (uint8_t)BODKIN_KIND_SUBSCRIBE_REFUSED) {
        tell(subscriber, BODKIN_NOT_SUBSCRIBED, subscription, session, reason);
    } else if (believes(node, session, epoch)) {
        last(subscriber, subscription, publisher, incarnation, sequence);
    } else {
        /* Whoever says it does not lead any more. */
    }
    return 0;
}

/* ---- what is sent ---- */

static int32_t send(zmtp_link_t *link, const bodkin_command_t *command)
{
    return zmtp_link_send_one(link, command->octets, command->size);
}

/** An optional value: whether it is there, and its octets. */
static void add_optional(bodkin_command_t *command, int is_there, uint64_t value, uint32_t size)
{
    uint32_t i;
    bodkin_add_octet(command, (uint8_t)(is_there != 0));
    for (i = size; is_there && (i > 0u); i--) {
        bodkin_add_octet(command, (uint8_t)(value >> (8u * (i - 1u))));
    }
}

static int32_t send_subscribe(const bodkin_node_t *node, zmtp_link_t *link, const bodkin_subscription_t *subscription)
{
    bodkin_command_t command;
    uint8_t used = 0;
    uint32_t i;
    bodkin_begin(&command, BODKIN_KIND_SUBSCRIBE, node->epoch);
    add_optional(&command, subscription->has_loss_tolerance, subscription->loss_tolerance, 4);
    add_optional(&command, subscription->deadline_ms > 0u, (uint64_t)subscription->deadline_ms * NS_PER_MS, 8);
    bodkin_add_octet(&command, (uint8_t)(subscription->waited_for_ms > 0u));
    bodkin_add_number(&command, (uint64_t)subscription->waited_for_ms * NS_PER_MS);
    bodkin_add_text(&command, subscription->name);
    for (i = 0; i < subscription->streams_count; i++) {
        used = (uint8_t)(used + subscription->streams[i].is_used);
    }
    bodkin_add_octet(&command, 0);
    bodkin_add_octet(&command, used);
    for (i = 0; i < subscription->streams_count; i++) {
        const bodkin_stream_t *stream = &subscription->streams[i];
        if (stream->is_used) {
            bodkin_add_number(&command, stream->publisher);
            bodkin_add_number(&command, stream->incarnation);
            bodkin_add_number(&command, stream->newest);
        }
    }
    return send(link, &command);
}

/** Acknowledges the streams of a subscription in which something has come: nonzero, if all found room. */
static int acknowledge(const bodkin_node_t *node, zmtp_link_t *link, const bodkin_subscription_t *subscription)
{
    uint32_t i = 0;
    int has_room = 1;
    for (i = 0; has_room && (i < subscription->streams_count); i++) {
        bodkin_stream_t *stream = &subscription->streams[i];
        bodkin_command_t command;
        if (stream->is_unacknowledged) {
            bodkin_begin(&command, BODKIN_KIND_DELIVERED, node->epoch);
            bodkin_add_number(&command, stream->publisher);
            bodkin_add_number(&command, stream->incarnation);
            bodkin_add_number(&command, stream->newest);
            bodkin_add_text(&command, subscription->name);
            has_room = send(link, &command) == 0;
            stream->is_unacknowledged = (uint8_t)!has_room;
        }
    }
    return has_room;
}

void bodkin_hears_turn(bodkin_node_t *node)
{
    bodkin_subscriber_t *subscriber = node->subscriber;
    uint32_t session;
    uint32_t i;
    if (subscriber == NULL) {
        return;
    }
    for (session = 0; session < BODKIN_SESSIONS; session++) {
        uint32_t *said = &subscriber->subscribed[session];
        while (subscriber->is_attached[session] && !node->owes_hello[session] && (*said < subscriber->subscriptions_count) &&
               (send_subscribe(node, node->links[session], &subscriber->subscriptions[*said]) == 0)) {
            (*said)++;
        }
    }
    for (i = 0; (node->leader < BODKIN_SESSIONS) && (i < subscriber->subscribed[node->leader]); i++) {
        if (!acknowledge(node, node->links[node->leader], &subscriber->subscriptions[i])) {
            return;
        }
    }
}

#endif
