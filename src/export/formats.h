/* SPDX-License-Identifier: Apache-2.0 */
/* formats: the one table of what a snapshot can be written as, for `export` and the UI's save. */
#ifndef CC_FORMATS_H
#define CC_FORMATS_H

#include <stdio.h>

#include "snapshot.h"

/* id, suffix of its files, what people call it */
#define EXPORT_FORMATS(X)                                             \
	X(PPROF, "pb.gz", "pprof")                                    \
	X(FOLDED, "folded", "folded stacks")                          \
	X(FOLDED_WAKERS, "wakers.folded", "folded stacks and wakers") \
	X(PERFETTO, "perfetto-trace", "Perfetto")                     \
	X(OTLP, "otlp.jsonl", "OTLP traces")                          \
	X(OTLP_PROFILES, "otlp-profiles.jsonl", "OTLP profiles")      \
	X(CSV, "csv", "CSV of pieces")                                \
	X(CSV_REQUESTS, "requests.csv", "CSV of requests")            \
	X(JSON, "json", "JSON")                                       \
	X(MARKDOWN, "md", "Markdown")
#define X(id, suffix, name) FORMAT_##id,
enum export_format { EXPORT_FORMATS(X) FORMAT_CNT };
#undef X

const char *format_suffix(enum export_format f);
const char *format_name(enum export_format f);

/* Returns 0, -ENOMEM, or -EIO when @out has an error. The same snapshot gives the same bytes. */
CC_NODISCARD int format_write(enum export_format f, const struct snapshot *s, FILE *out);

#endif
