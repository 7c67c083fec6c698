/**
 * A subscriber on a node's sessions to both brokers of a pair: each event once, what is missing told, and what has come acknowledged to whoever leads.
 *
 * The node (bodkin_node.h) has the sessions: it may publish besides, or have no topic. The machine is that of `broker::subscriber` in Rust, with 64 places of a stream that are
 * remembered. Built with BODKIN_WITH_SUBSCRIBER.
 *
 *     node.subscriber = &subscriber;      in front of bodkin_open
 */
#ifndef BODKIN_SUBSCRIBER_H
#define BODKIN_SUBSCRIBER_H

#include "bodkin_node.h"

/**
 * A session whose settings have this property with this value is sent events' metadata, by which they say which trace they are of. What is longer than the
 * buffer of the session's link is passed over: the event is heard without it.
 */
#define BODKIN_METADATA_PROPERTY "X-Bodkin-Metadata"
#define BODKIN_METADATA_WANTED "yes"

/** Streams of a subscription at the most. */
#define BODKIN_STREAMS_MAX 8u

/** What one run of a publisher has published of an event type, as far as it is known. Begins as zeros, and is the library's. */
typedef struct {
    uint64_t publisher;
    uint64_t incarnation;
    uint64_t begins_behind; /* everything up to here was before the subscriber's time */
    uint64_t newest;
    uint64_t places; /* bit i: newest - i has come */
    uint8_t is_used;
    uint8_t is_unacknowledged;
} bodkin_stream_t;

/** An event type that is heard; all of it is the caller's to set. */
typedef struct {
    const char *name;         /**< of the event type, in upper case */
    bodkin_stream_t *streams; /**< two for each publisher: it may begin anew */
    uint32_t streams_count;   /**< at most BODKIN_STREAMS_MAX; events of further publishers are dropped and told */
    uint32_t waited_for_ms;   /**< required: so long the broker waits for who is away, and keeps what is not acknowledged. 0: not required */
    uint32_t deadline_ms;     /**< asked for, beyond the declared one; 0: nothing is asked */
    uint8_t has_loss_tolerance;
    uint32_t loss_tolerance; /**< asked for, if has_loss_tolerance is set: so many events in a row may be lost */
    uint8_t begins_first;    /**< nonzero: what is missing in front of the first event that comes is told as lost */
} bodkin_subscription_t;

/** An event. */
typedef struct {
    const bodkin_subscription_t *subscription;
    uint64_t publisher;
    uint64_t incarnation;
    uint64_t sequence;
    uint64_t created_utc_ns;
    zmtp_slice_t payload; /**< its first payload_max octets, until the call ends */
    uint32_t size;        /**< how many there are */
    zmtp_slice_t metadata; /**< a JSON object of texts, until the call ends; of size 0: it has none, or it was passed over */
    zmtp_slice_t trace;    /**< its traceparent, BODKIN_TRACE_SIZE octets of the metadata; of size 0: it is of no trace */
    uint8_t is_late;      /**< it was told as lost, and is not */
    uint8_t is_recovered; /**< late by a fail-over */
    uint8_t is_derived;   /**< a graph has made it of events, and it is named after one of them: numbers that are passed over are no losses */
    uint8_t is_marked;    /**< some of these were not valid */
} bodkin_event_t;

/** What a subscriber is told besides. */
typedef enum {
    BODKIN_SUBSCRIBED,      /**< by the broker of this session */
    BODKIN_NOT_SUBSCRIBED,  /**< by the broker of this session; count is its reason (replica-link.md) */
    BODKIN_MISSED,          /**< so many events in a row are lost, the first one of this sequence */
    BODKIN_TOO_MANY_STREAMS /**< an event of a publisher for which there is no stream is dropped */
} bodkin_hears_told_t;

typedef struct bodkin_subscriber bodkin_subscriber_t;

/** The subscriber. The first group is the caller's to set, the rest begins as zeros. */
struct bodkin_subscriber {
    const bodkin_subscription_t *subscriptions;
    uint32_t subscriptions_count;
    uint8_t *payloads;    /**< BODKIN_SESSIONS times payload_max octets */
    uint32_t payload_max; /**< octets of an event that are kept for `heard` */
    void (*heard)(bodkin_subscriber_t *subscriber, const bodkin_event_t *event);
    /** `from` is a session or a sequence. Null: nobody wants to know. */
    void (*told)(bodkin_subscriber_t *subscriber, bodkin_hears_told_t what, const bodkin_subscription_t *subscription, uint64_t from, uint64_t count);
    void *owner; /**< the caller's */

    uint8_t is_attached[BODKIN_SESSIONS]; /* the broker has said whether it leads */
    uint32_t subscribed[BODKIN_SESSIONS]; /* subscriptions that were said on this connection */
    uint8_t frame[BODKIN_SESSIONS];       /* of an event that comes in: which one is next */
    uint32_t size[BODKIN_SESSIONS];       /* its payload's */
    const bodkin_subscription_t *coming[BODKIN_SESSIONS];
    uint8_t headers[BODKIN_SESSIONS][BODKIN_HEADER_SIZE]; /* while the metadata behind it come */
};

#endif
