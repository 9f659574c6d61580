/* SPDX-License-Identifier: Apache-2.0 */
#include "save.h"
#include "fmt.h"
#include "formats.h"
#include "json.h"
#include "markdown.h"
#include "out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SAVE_ROWS 100000 /* requests in one saved picture */
#define SAVE_SECONDS 300 /* then it is given up */
#define SAVE_STORIES 200 /* of them told as text, as they stand on the screen: it is to be read */

struct save_job {
	struct tui_save what;
	int fd;
	struct save_told told;
};

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

static bool is_taken(const char *base, const char *suffix)
{
	char path[96];
	snprintf(path, sizeof(path), "%s.%s", base, suffix);
	return !access(path, F_OK);
}

/* Named after this second; what was saved in the same one stays as it is. */
static void base_name(char *buf, size_t cap, const char *suffix)
{
	char at[32];
	time_t now = time(NULL);
	struct tm tm;
	localtime_r(&now, &tm);
	strftime(at, sizeof(at), "criticast-%Y%m%d-%H%M%S", &tm);
	snprintf(buf, cap, "%s", at);
	for (int n = 2; n < 100 && is_taken(buf, suffix); n++)
		snprintf(buf, cap, "%s-%d", at, n);
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
	base_name(base, sizeof(base), format_suffix(format));
	snprintf(path, sizeof(path), "%s.%s", base, format_suffix(format));
	j->told.err = picture(j, c, view, &s);
	if (!j->told.err) {
		j->told.err = write_file(s, path, format);
		snapshot_free(s);
	}
	if (j->told.err)
		snprintf(j->told.msg, sizeof(j->told.msg), "cannot write %s: %s", path,
			 strerror(-j->told.err));
	else
		snprintf(j->told.msg, sizeof(j->told.msg), "saved %s", path);
}

static void save_usual(struct save_job *j, struct collect *c, const struct cc_query *view)
{
	char base[64], path[96];
	struct snapshot *s;
	base_name(base, sizeof(base), "pb.gz");
	snprintf(path, sizeof(path), "%s", base);
	j->told.err = picture(j, c, view, &s);
	if (!j->told.err) {
		snprintf(path, sizeof(path), "%s.pb.gz", base);
		j->told.err = write_file(s, path, FORMAT_PPROF);
		if (!j->told.err) {
			snprintf(path, sizeof(path), "%s.md", base);
			j->told.err = write_stories(s, path);
		}
		snapshot_free(s);
	}
	char kept[FMT_LEN] = "";
	if (!j->told.err) {
		snprintf(path, sizeof(path), "%s.criticast", base);
		j->told.err = collect_save_history(c, 0, path);
		if (!j->told.err)
			fmt_dur(kept, sizeof(kept), collect_kept_ns(c));
		if (j->told.err == -ENOENT) /* a replay: the recording is there already */
			j->told.err = 0;
	}
	if (j->told.err)
		snprintf(j->told.msg, sizeof(j->told.msg), "cannot write %s: %s", path,
			 strerror(-j->told.err));
	else
		snprintf(j->told.msg, sizeof(j->told.msg), "saved %s.pb.gz, .md%s%s%s", base,
			 *kept ? ", .criticast (the last " : "", kept, *kept ? ")" : "");
}

struct save_job *save_job_new(const struct tui_save *what, int fd)
{
	struct save_job *j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->what = *what;
	j->what.filter = NULL; /* the picture's is that of the view */
	j->fd = fd;
	return j;
}

void save_job_free(struct save_job *j)
{
	if (!j)
		return;
	close(j->fd);
	free(j);
}

static void tell(const struct save_job *j)
{
	ssize_t n = write(j->fd, &j->told, sizeof(j->told)); /* at once, or not at all */
	(void)n; /* nobody is there to hear it; what was saved is saved */
}

/* Nothing of the parent's is touched: its terminal, its probes, its signals' handlers. */
static void leave_parent(int keep_fd)
{
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	if (keep_fd > 3)
		close_range(3, (unsigned int)keep_fd - 1, 0);
	close_range((unsigned int)keep_fd + 1, ~0u, 0);
	setpriority(PRIO_PROCESS, 0, 10);
	alarm(SAVE_SECONDS);
}

static void save_run(struct save_job *j, struct collect *c, const struct cc_query *view)
{
	if (j->what.form == TUI_SAVE_USUAL)
		save_usual(j, c, view);
	else
		save_one(j, c, view);
	tell(j);
}

int save_fork(struct save_job *j, struct collect *c, const struct cc_query *view, pid_t *ret)
{
	/* fork() itself would stop every thread that asks for memory until it is done, the one that
	 * reads keys among them. Of the heap the child uses only this thread's part, which no other
	 * has a lock of; should another lock be one that somebody has just then (of the time zone,
	 * say), the alarm ends it, which is told. */
	pid_t pid = _Fork();
	if (pid == 0) {
		leave_parent(j->fd);
		save_run(j, c, view);
		_exit(0);
	}
	if (pid > 0) {
		*ret = pid;
		return 0;
	}
	j->told.err = -errno;
	snprintf(j->told.msg, sizeof(j->told.msg), "not saved: no process for it: %s",
		 strerror(errno));
	tell(j);
	return j->told.err;
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
