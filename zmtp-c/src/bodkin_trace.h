/** Which trace an event is of, as metadata tell it (docs/formats/traces.md). Nothing of it is for callers. */
#ifndef BODKIN_TRACE_H
#define BODKIN_TRACE_H

#include "bodkin_node.h"

/** Whether these octets are a context of version 00, BODKIN_TRACE_SIZE of them. */
int bodkin_is_trace(const uint8_t *octets, uint32_t size);

/** Writes the metadata that tell a context: BODKIN_TRACE_METADATA_SIZE octets. */
void bodkin_write_trace(uint8_t *out, const char *trace);

/** The context that metadata tell, in their octets; of size 0: none. */
zmtp_slice_t bodkin_find_trace(zmtp_slice_t metadata);

#endif
