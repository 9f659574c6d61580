/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_send: a snapshot to an OpenTelemetry collector by HTTP. */
#ifndef CC_OTLP_SEND_H
#define CC_OTLP_SEND_H

#include "cli.h"
#include "formats.h"

bool otlp_is_url(const char *where);

/* @format: OTLP or OTLP_PROFILES. A URL without a path gets that of the signal. Headers come from
 * OTEL_EXPORTER_OTLP_HEADERS. The line of a failure is written. */
CC_NODISCARD enum cli_exit otlp_send(const struct snapshot *s, enum export_format format,
				     const char *url);

#endif
