/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp: OpenTelemetry in its JSON form, a message a line, as the collector's file receiver reads it
 * and as HTTP carries it (a line a POST). One trace for each request, its path as child spans. Ids
 * follow from host, request id and time, so that what is sent twice is the same trace.
 */
#ifndef CC_OTLP_H
#define CC_OTLP_H

#include <stdio.h>

#include "snapshot.h"

/* Return 0, -ENOMEM, or -EIO when @out has an error. The same snapshot gives the same bytes. */
CC_NODISCARD int otlp_write(const struct snapshot *s, FILE *out); /* ExportTraceServiceRequest */
/* ExportProfilesServiceRequest, v1development: the stacks, linked to the traces of otlp_write(). */
CC_NODISCARD int otlp_profiles_write(const struct snapshot *s, FILE *out);

#endif
