/* SPDX-License-Identifier: Apache-2.0 */
#include "formats.h"

#include "csv.h"
#include "folded.h"
#include "json.h"
#include "markdown.h"
#include "otlp.h"
#include "perfetto.h"
#include "pprof.h"

static int markdown_all(const struct snapshot *s, FILE *out)
{
	int err = 0;

	for (uint32_t i = 0; i < s->request_cnt && !err; i++)
		err = markdown_request(s, &s->requests[i], out);
	return err;
}

static int (*const writers[])(const struct snapshot *s, FILE *out) = {
	[FORMAT_PPROF] = pprof_write,
	[FORMAT_FOLDED] = folded_write,
	[FORMAT_FOLDED_WAKERS] = folded_wakers_write,
	[FORMAT_PERFETTO] = perfetto_write,
	[FORMAT_OTLP] = otlp_write,
	[FORMAT_OTLP_PROFILES] = otlp_profiles_write,
	[FORMAT_CSV] = csv_write,
	[FORMAT_CSV_REQUESTS] = csv_requests_write,
	[FORMAT_JSON] = json_snapshot_line,
	[FORMAT_MARKDOWN] = markdown_all,
};
_Static_assert(ARRAY_SIZE(writers) == FORMAT_CNT, "every format has a writer");

static const struct {
	const char *suffix, *name;
} texts[] = {
#define X(id, suffix, name) { suffix, name },
	EXPORT_FORMATS(X)
#undef X
};

const char *format_suffix(enum export_format f) { return texts[f].suffix; }
const char *format_name(enum export_format f) { return texts[f].name; }

int format_write(enum export_format f, const struct snapshot *s, FILE *out)
{
	return writers[f](s, out);
}
