/** Between a node and its subscriber; nothing of it is for callers. */
#ifndef BODKIN_HEARS_H
#define BODKIN_HEARS_H

#include "bodkin_subscriber.h"
#include "bodkin_wire.h"

/** The node's: a broker says that it leads, or shows it by an epoch. */
void bodkin_leads(bodkin_node_t *node, uint32_t session, uint64_t epoch);

/** A session begins or ends. */
void bodkin_hears_session(const bodkin_node_t *node, uint32_t session);
/** Its broker has said whether it leads. */
void bodkin_hears_leader(const bodkin_node_t *node, uint32_t session);
/** Whether this frame is one of an event's. */
int bodkin_hears_frame(const bodkin_node_t *node, uint32_t session, const zmtp_event_t *event);
/** Takes it: 0 or a fault of the broker's. */
int32_t bodkin_hear(bodkin_node_t *node, uint32_t session, const zmtp_event_t *event);
/** Takes a command about what is heard, behind its epoch: 0, a fault, or BODKIN_NOT_HEARD: it is none. */
int32_t bodkin_hears_command(bodkin_node_t *node, uint32_t session, uint8_t kind, uint64_t epoch, bodkin_reader_t reader);
/** Subscribes and acknowledges, as far as there is room. */
void bodkin_hears_turn(bodkin_node_t *node);

#define BODKIN_NOT_HEARD 1

#endif
