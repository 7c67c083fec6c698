/* A node's sessions to both brokers of a pair. */

#include "bodkin_sessions.h"

#include <string.h>

#include "bodkin_subscriber.h"

/** A turn of the net lasts no longer: pauses, retries and the last event's name are late by it at the most. */
#define TURN_MS_MAX 10u

#if ZMTP_WITH_PROPERTY
/** What the handshake has more for metadata: the property with both of its lengths. */
#define METADATA_PROPERTY_SIZE ((uint32_t)sizeof BODKIN_METADATA_PROPERTY + (uint32_t)sizeof BODKIN_METADATA_WANTED + 3u)
#endif

static void heard(zmtp_link_t *link, int32_t what, const zmtp_event_t *event)
{
    bodkin_session_t *broker = link->owner;
    bodkin_sessions_t *sessions = broker->sessions;
    uint32_t session = (uint32_t)(broker - sessions->brokers);
    uint32_t now_ms = zmtp_net_now_ms();
    if (what == (int32_t)ZMTP_READY) {
        broker->pause_ms = BODKIN_RECONNECT_MS_MIN;
    }
    if (what < 0) {
        broker->link = NULL;
        broker->away_ms = now_ms;
        if (sessions->ended != NULL) {
            sessions->ended(sessions, session, what);
        }
    }
    if ((bodkin_heard(sessions->node, session, link, what, event, now_ms) < 0) && (what > 0)) {
        zmtp_net_close(sessions->net, link);
        heard(link, ZMTP_GONE, event);
    }
}

/** Whether what brokers send fits into a link's memory, and CURVE's handshake into what goes out. */
static int has_room(const bodkin_sessions_t *sessions, const zmtp_link_memory_t *memory)
{
#if ZMTP_WITH_CURVE
    if (sessions->curve != NULL) {
        uint32_t out_size = ZMTP_CURVE_POLL_ROOM + sessions->settings.identity.size;
#if ZMTP_WITH_PROPERTY
        out_size += sessions->wants_metadata ? METADATA_PROPERTY_SIZE : 0u;
#endif
        return (memory->in_size >= BODKIN_CURVE_COMMAND_MAX) && (memory->out_size >= out_size) && (memory->curve != NULL);
    }
#endif
    (void)sessions;
    return memory->in_size >= BODKIN_COMMAND_MAX;
}

int32_t bodkin_sessions_open(bodkin_sessions_t *sessions)
{
    uint32_t i;
    memset(&sessions->settings, 0, sizeof sessions->settings);
    if (sessions->net->silence_ms == 0u) {
        sessions->net->silence_ms = BODKIN_SILENCE_MS;
    }
#if ZMTP_WITH_CURVE
    sessions->settings.mechanism = (uint8_t)((sessions->curve == NULL) ? ZMTP_NULL : ZMTP_CURVE);
    sessions->settings.curve = sessions->curve;
#endif
    sessions->settings.socket_type = ZMTP_DEALER;
    sessions->settings.identity.octets = (const uint8_t *)sessions->node->name;
    sessions->settings.identity.size = (uint32_t)strlen(sessions->node->name);
#if ZMTP_WITH_PROPERTY
    if (sessions->wants_metadata) {
        sessions->settings.property = BODKIN_METADATA_PROPERTY;
        sessions->settings.property_value.octets = (const uint8_t *)BODKIN_METADATA_WANTED;
        sessions->settings.property_value.size = (uint32_t)sizeof BODKIN_METADATA_WANTED - 1u;
    }
#endif
    for (i = 0; i < BODKIN_SESSIONS; i++) {
        bodkin_session_t *broker = &sessions->brokers[i];
        broker->sessions = sessions;
        broker->link = NULL;
        broker->away_ms = zmtp_net_now_ms();
        broker->pause_ms = 0;
        if ((broker->address != NULL) && ((i >= sessions->net->count) || !has_room(sessions, &sessions->net->memories[i]))) {
            return ZMTP_ARGUMENT;
        }
    }
    return 0;
}

/** Connects where the pause is over. */
static void connect_due(bodkin_sessions_t *sessions, bodkin_session_t *broker, uint32_t now_ms)
{
    zmtp_end_t end = {&sessions->settings, heard, broker};
    if ((broker->address == NULL) || (broker->link != NULL) || ((now_ms - broker->away_ms) < broker->pause_ms)) {
        return;
    }
    broker->link = zmtp_net_connect(sessions->net, broker->address, broker->port, &end);
    broker->away_ms = now_ms;
    broker->pause_ms = (broker->pause_ms < BODKIN_RECONNECT_MS_MIN) ? BODKIN_RECONNECT_MS_MIN : (2u * broker->pause_ms);
    broker->pause_ms = (broker->pause_ms < BODKIN_RECONNECT_MS_MAX) ? broker->pause_ms : BODKIN_RECONNECT_MS_MAX;
}

int32_t bodkin_sessions_turn(bodkin_sessions_t *sessions, uint32_t wait_ms)
{
    uint32_t began_ms = zmtp_net_now_ms();
    uint32_t spent_ms = 0;
    int32_t result = 0;
    do {
        uint32_t left_ms = wait_ms - spent_ms;
        uint32_t i;
        for (i = 0; i < BODKIN_SESSIONS; i++) {
            connect_due(sessions, &sessions->brokers[i], zmtp_net_now_ms());
        }
        bodkin_turn(sessions->node, zmtp_net_now_ms());
        result = zmtp_net_turn(sessions->net, (left_ms < TURN_MS_MAX) ? left_ms : TURN_MS_MAX);
        spent_ms = zmtp_net_now_ms() - began_ms;
    } while ((result == 0) && (spent_ms < wait_ms));
    bodkin_turn(sessions->node, zmtp_net_now_ms());
    return result;
}
