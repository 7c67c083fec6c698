/** The events that a node keeps of one topic: a ring from the oldest kept to the newest published. Nothing of it is for callers. */
#ifndef BODKIN_RETAINED_H
#define BODKIN_RETAINED_H

#include "bodkin_node.h"

bodkin_kept_t *bodkin_kept(const bodkin_topic_t *topic, uint64_t sequence);
uint8_t *bodkin_payload(const bodkin_topic_t *topic, uint64_t sequence);
#if BODKIN_WITH_TRACES
char *bodkin_trace(const bodkin_topic_t *topic, uint64_t sequence);
#endif

/** Makes room for one more: nonzero, if there is. `dropped` is the event that was lost for it, or 0. */
int bodkin_make_room(bodkin_topic_t *topic, uint64_t *dropped);

/** Everything up to here is covered: nonzero, if that is new. */
int bodkin_cover(bodkin_topic_t *topic, uint64_t through);

/** Another broker leads, or the connection is another one: everything that is kept may be missing there. */
void bodkin_resume(bodkin_topic_t *topic);

/** This event was refused for a while, with whatever followed it. */
void bodkin_rewind(bodkin_topic_t *topic, uint64_t sequence, uint32_t until_ms);

/** Whether this event was sent on this session, and is kept. */
int bodkin_was_sent(const bodkin_topic_t *topic, uint64_t sequence);

#endif
