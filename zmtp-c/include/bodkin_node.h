/**
 * A reliable publisher to Bodkin: it keeps what the broker has not covered, and its newest N in any case, and sends it again to whoever leads next.
 *
 * The bytes are those of docs/formats/event-header.md and docs/formats/replica-link.md, the machine that of `broker::publisher` in Rust. No I/O, no clock, no
 * allocation: it speaks on two links (zmtp_link.h), one to each broker of a pair, whose heard function calls bodkin_heard. Deadline and bound on losses are
 * the topic's, declared at Bodkin.
 *
 *     bodkin_open(&node);                            name, incarnation, topics and their memory are set
 *     bodkin_publish(&node, &topic, "21.5", 4);      kept, and sent with the next turn if somebody leads
 *     bodkin_turn(&node, now_ms);                    often: after each turn of the net
 */
#ifndef BODKIN_NODE_H
#define BODKIN_NODE_H

#include "zmtp_link.h"

/** Brokers of a pair. */
#define BODKIN_SESSIONS 2u

/** Octets of an event's header. */
#define BODKIN_HEADER_SIZE 42u

/** Octets of the buffer that a session's link needs at least: the commands that brokers send, with a topic's name. A refusal's text may be cut. */
#define BODKIN_COMMAND_MAX 192u

/** The same with CURVE, which opens a frame whole: with the longest text of a refusal, and its box. */
#define BODKIN_CURVE_COMMAND_MAX 1220u

/** Octets of a trace's context in the W3C's form, `00-TRACE-SPAN-FLAGS` (docs/formats/traces.md); no zero ends it. */
#define BODKIN_TRACE_SIZE 55u

/** Octets of the metadata that tell it: `{"traceparent":"..."}`. */
#define BODKIN_TRACE_METADATA_SIZE (BODKIN_TRACE_SIZE + 18u)

/** Longest name of a node or a topic, in octets. */
#define BODKIN_NAME_MAX 128u

/** Silence of a topic after which its last uncovered event is named to the broker, in milliseconds. */
#define BODKIN_LAST_MS 100u

/** Longest time for which a refusal is believed that says when to come again, in milliseconds. */
#define BODKIN_RETRY_MS_MAX 300000u

/** Why a broker does not take an event (replica-link.md has all of them). */
enum { BODKIN_NOT_AUTHORIZED = 1, BODKIN_UNKNOWN_TOPIC = 2, BODKIN_FULL = 3, BODKIN_NOT_LEADING = 6, BODKIN_HIGHER_EPOCH = 7 };

/** What a broker can guarantee: of deadlines, and of losses. */
typedef enum {
    BODKIN_PENDING = 1, /**< it is being measured */
    BODKIN_UNSTATED,    /**< nobody has stated what it depends on; of losses: there is no pair */
    BODKIN_HELD,
    BODKIN_SUSPENDED /**< the broker's machine, a clock or a network is worse than was assumed; of losses: there is no Backup that may lead */
} bodkin_guarantee_t;

/** An event's place: its octets are in the topic's payloads. */
typedef struct {
    uint64_t created_utc_ns;
    uint32_t size;
    uint8_t is_gone;   /* the broker will not take it */
#if BODKIN_WITH_TRACES
    uint8_t is_traced; /* its context is in the topic's traces */
#endif
} bodkin_kept_t;

/** A topic: the first group is the caller's to set, the rest begins as zeros. */
typedef struct {
    const char *name;     /**< of the event type, in upper case */
    bodkin_kept_t *kept;  /**< `capacity` of them */
    uint8_t *payloads;    /**< `capacity` times `payload_max` octets */
    uint32_t capacity;    /**< events that are kept at the most, N or more */
    uint32_t payload_max; /**< octets of an event at the most */
    uint32_t retention;   /**< N: the newest events that are kept although they are covered */
    uint8_t drops_oldest; /**< nonzero: a full topic loses its oldest event, which is told; else it takes no new one */
#if BODKIN_WITH_TRACES
    char *traces;         /**< `capacity` times BODKIN_TRACE_SIZE octets, for bodkin_publish_traced; null: events are of no trace */
#endif

    uint8_t is_resuming;  /* what is kept has to be named before it is sent again */
    uint8_t is_paused;    /* until paused_until_ms */
    uint32_t paused_until_ms;
    uint32_t sent_ms;         /* when something was sent last */
    uint64_t oldest;          /* kept are oldest to newest */
    uint64_t newest;
    uint64_t covered;         /* all events up to here */
    uint64_t next;            /* to be sent on this session */
    uint64_t resent_through;  /* what is sent up to here may have been sent before */
} bodkin_topic_t;

/** What a node is told. */
typedef enum {
    BODKIN_LEADS,     /**< a broker leads: number is its session */
    BODKIN_LEADERLESS, /**< nobody is known to lead: events are kept */
    BODKIN_COVERED,   /**< all events of the topic up to this sequence are safe */
    BODKIN_DROPPED,   /**< this event was lost to make room for a new one */
    BODKIN_NOT_TAKEN, /**< the broker will not take this event: it is lost; reason says why */
    BODKIN_EXCESS,    /**< this event came faster than the topic's period: it is never covered */
    BODKIN_LOST,      /**< the broker has dropped so many events that nobody will get */
    BODKIN_GUARANTEE  /**< what whoever leads can guarantee now: number is a bodkin_guarantee_t of deadlines, reason one of losses */
} bodkin_told_t;

typedef struct bodkin_node bodkin_node_t;

/** The node, with its topics. The first group is the caller's to set, the rest begins as zeros. */
struct bodkin_node {
    const char *name;         /**< the system that publishes; also the links' identity */
    uint64_t incarnation;     /**< greater than that of every earlier run, and not a time in the future: nanoseconds since 1970 at the start will do */
    bodkin_topic_t *topics;
    uint32_t topics_count;
    uint64_t (*utc_ns)(void); /**< nanoseconds since 1970: the broker measures deadlines by it */
    /** Is told what happens; `topic` is null for what concerns none. */
    void (*told)(bodkin_node_t *node, bodkin_told_t what, const bodkin_topic_t *topic, uint64_t number, uint8_t reason);
    void *owner; /**< the caller's */
    uint8_t watches_guarantee; /**< nonzero: brokers are asked to tell BODKIN_GUARANTEE whenever it changes; one that is too old to know that ends the session */
#if BODKIN_WITH_SUBSCRIBER
    struct bodkin_subscriber *subscriber; /**< what is heard (bodkin_subscriber.h); null: nothing */
#endif

    zmtp_link_t *links[BODKIN_SESSIONS]; /* ready ones */
    uint8_t owes_hello[BODKIN_SESSIONS];
    uint8_t owes_watch[BODKIN_SESSIONS];
    uint8_t is_inside[BODKIN_SESSIONS]; /* of a message whose beginning was read */
    uint8_t leader;    /* a session, or BODKIN_SESSIONS: nobody */
    uint8_t raised_by; /* the session that has shown the epoch, likewise */
    uint64_t epoch;
    uint32_t turn;     /* the topic that is first in the next turn */
};

/** Begins, with everything set. 0; or ZMTP_ARGUMENT: a name is too long, or a capacity is below N or 0. */
int32_t bodkin_open(bodkin_node_t *node);

/**
 * Takes an event, whether anybody leads or not. It is created now, and goes out with the next turn.
 *
 * @retval 0; ZMTP_ROOM: everything that is kept is uncovered, take some turns first; ZMTP_TOO_LONG
 */
int32_t bodkin_publish(bodkin_node_t *node, bodkin_topic_t *topic, const void *payload, uint32_t size);

#if BODKIN_WITH_TRACES
/**
 * The same of an event that is of a trace: `traceparent` are its BODKIN_TRACE_SIZE octets, copied. It goes out as the event's metadata, and Bodkin hands it on to
 * whoever hears the event and asks for these. Null: bodkin_publish.
 *
 * @retval as of bodkin_publish; ZMTP_ARGUMENT: it is no such text, or the topic has no memory for traces. Nothing was taken.
 */
int32_t bodkin_publish_traced(bodkin_node_t *node, bodkin_topic_t *topic, const void *payload, uint32_t size, const char *traceparent);
#endif

/** For the heard function of a session's link: what it was told. 0, or a fault of the broker's for which the caller closes the link. */
int32_t bodkin_heard(bodkin_node_t *node, uint32_t session, zmtp_link_t *link, int32_t what, const zmtp_event_t *event, uint32_t now_ms);

/** Sends what is to be sent, as far as there is room. */
void bodkin_turn(bodkin_node_t *node, uint32_t now_ms);

/** Writes an event's header: BODKIN_HEADER_SIZE octets. `resend`: it may have been sent before. */
void bodkin_write_header(uint8_t *out, int resend, uint64_t incarnation, uint64_t sequence, uint64_t created_utc_ns, uint64_t epoch);

#endif
