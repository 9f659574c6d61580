/* SPDX-License-Identifier: Apache-2.0 */
/* What the UI's thread may ask of the collector's. Nothing here waits for it: a key is shown from
 * the snapshot at hand, whatever the collector is doing. */
#include "session_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void session_signal(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));
	(void)n; /* full: it is readable already */
}

void session_clear(int fd)
{
	uint64_t v;
	ssize_t n = read(fd, &v, sizeof(v));
	(void)n;
}

static struct snapshot *ui_take(void *ctx)
{
	struct session *s = ctx;
	return mailbox_take(&s->snaps);
}

/* The collector made it, of its part of the heap: there it is freed. */
static void ui_give_back(void *ctx, struct snapshot *snap)
{
	struct session *s = ctx;
	for (size_t i = 0; snap && i < SESSION_USED; i++) {
		struct snapshot *none = NULL;
		if (atomic_compare_exchange_strong(&s->used[i], &none, snap))
			return;
	}
	snapshot_free(snap); /* more than a UI has */
}

static int ui_command(void *ctx, const struct tui_cmd *cmd)
{
	struct session *s = ctx;
	newest_put(&s->cmds, cmd);
	session_signal(s->wake_fd);
	return 0;
}

static int ui_save(void *ctx, const struct tui_save *what, char *msg, size_t cap)
{
	struct session *s = ctx;
	int ends[2];
	if (s->save_fd >= 0) {
		snprintf(msg, cap, "the one before is still being saved");
		return -EBUSY;
	}
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	struct save_job *j = save_job_new(what, ends[1]);
	if (!j) {
		close(ends[0]);
		close(ends[1]);
		return -ENOMEM;
	}
	s->save_fd = ends[0];
	save_job_free(mailbox_put(&s->jobs, j));
	session_signal(s->wake_fd);
	snprintf(msg, cap, "saving");
	return s->save_fd;
}

static int ui_saved(void *ctx, char *msg, size_t cap)
{
	struct session *s = ctx;
	struct save_told told;
	ssize_t n;
	while ((n = read(s->save_fd, &told, sizeof(told))) < 0 && errno == EINTR)
		;
	close(s->save_fd);
	s->save_fd = -1;
	if (n != sizeof(told)) {
		snprintf(msg, cap, "not saved: the process that saves was killed");
		return -EIO;
	}
	snprintf(msg, cap, "%.*s", (int)sizeof(told.msg), told.msg);
	return told.err;
}

static int ui_story(void *ctx, const struct snapshot *snap, const struct snap_request *r, bool json,
		    char **ret)
{
	(void)ctx;
	return save_story(snap, r, json, ret);
}

const struct tui_ops session_tui_ops = {
	.take = ui_take,
	.give_back = ui_give_back,
	.command = ui_command,
	.save = ui_save,
	.saved = ui_saved,
	.story = ui_story,
};

int session_finish_save(struct session *s, char *msg, size_t cap)
{
	*msg = '\0';
	return s->save_fd < 0 ? 0 : ui_saved(s, msg, cap);
}
