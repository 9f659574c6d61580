/* SPDX-License-Identifier: Apache-2.0 */
#include "save.h"
#include "fmt.h"
#include "formats.h"
#include "json.h"
#include "markdown.h"
#include "out_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAVE_ROWS 100000 /* requests in one saved picture */
#define SAVE_STORIES 200 /* of them told as text, as they stand on the screen: it is to be read */

static int write_file(const struct snapshot *s, const char *path, enum export_format format)
{
	struct out_file f;
	int err = out_file_open(&f, path);
	return err ? err : out_file_close(&f, format_write(format, s, f.f));
}

static int write_stories(const struct snapshot *s, const char *path)
{
	struct snapshot few = *s;
	few.request_cnt = CC_MIN(s->request_cnt, (uint32_t)SAVE_STORIES);
	return write_file(&few, path, FORMAT_MARKDOWN);
}

/* The picture to save: what is on the screen, all of the window, or one request. */
static int picture(const struct save_job *j, struct collect *c, const struct cc_query *view,
		   struct snapshot **ret)
{
	struct cc_query q = *view;
	q.by_port = false;
	q.max_rows = SAVE_ROWS;
	q.max_pieces = UINT32_MAX;
	q.lines = j->what.form == TUI_SAVE_PERFETTO;
	if (j->what.what != TUI_SAVE_FILTERED)
		q.filter = NULL;
	if (j->what.what == TUI_SAVE_REQUEST)
		q.only = j->what.id;
	return collect_snapshot(c, &q, ret);
}

static void base_name(char *buf, size_t cap)
{
	time_t now = time(NULL);
	struct tm tm;
	localtime_r(&now, &tm);
	strftime(buf, cap, "criticast-%Y%m%d-%H%M%S", &tm);
}

/* The forms that are one file. */
static const enum export_format formats[TUI_SAVE_FORM_CNT] = {
	[TUI_SAVE_PERFETTO] = FORMAT_PERFETTO, [TUI_SAVE_FOLDED] = FORMAT_FOLDED,
	[TUI_SAVE_OTLP] = FORMAT_OTLP,         [TUI_SAVE_CSV] = FORMAT_CSV,
	[TUI_SAVE_JSON] = FORMAT_JSON,
};

static void save_one(struct save_job *j, struct collect *c, const struct cc_query *view)
{
	enum export_format format = formats[j->what.form];
	char base[64], path[96];
	struct snapshot *s;
	base_name(base, sizeof(base));
	snprintf(path, sizeof(path), "%s.%s", base, format_suffix(format));
	j->err = picture(j, c, view, &s);
	if (!j->err) {
		j->err = write_file(s, path, format);
		snapshot_free(s);
	}
	if (j->err)
		snprintf(j->msg, sizeof(j->msg), "cannot write %s: %s", path, strerror(-j->err));
	else
		snprintf(j->msg, sizeof(j->msg), "saved %s", path);
}

static void save_usual(struct save_job *j, struct collect *c, const struct cc_query *view)
{
	char base[64], path[96];
	struct snapshot *s;
	base_name(base, sizeof(base));
	snprintf(path, sizeof(path), "%s", base);
	j->err = picture(j, c, view, &s);
	if (!j->err) {
		snprintf(path, sizeof(path), "%s.pb.gz", base);
		j->err = write_file(s, path, FORMAT_PPROF);
		if (!j->err) {
			snprintf(path, sizeof(path), "%s.md", base);
			j->err = write_stories(s, path);
		}
		snapshot_free(s);
	}
	char kept[FMT_LEN] = "";
	if (!j->err) {
		snprintf(path, sizeof(path), "%s.criticast", base);
		j->err = collect_save_history(c, path);
		if (!j->err)
			fmt_dur(kept, sizeof(kept), collect_kept_ns(c));
		if (j->err == -ENOENT) /* a replay: the recording is there already */
			j->err = 0;
	}
	if (j->err)
		snprintf(j->msg, sizeof(j->msg), "cannot write %s: %s", path, strerror(-j->err));
	else
		snprintf(j->msg, sizeof(j->msg), "saved %s.pb.gz, .md%s%s%s", base,
			 *kept ? ", .criticast (the last " : "", kept, *kept ? ")" : "");
}

void save_run(struct save_job *j, struct collect *c, const struct cc_query *view)
{
	if (j->what.form == TUI_SAVE_USUAL)
		save_usual(j, c, view);
	else
		save_one(j, c, view);
}

int save_story(const struct snapshot *s, const struct snap_request *r, bool json, char **ret)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return -ENOMEM;
	int err = json ? json_request_line(s, r, f) : markdown_request(s, r, f);
	if (fclose(f) && !err)
		err = -ENOMEM;
	if (err)
		free(text);
	else
		*ret = text;
	return err;
}
