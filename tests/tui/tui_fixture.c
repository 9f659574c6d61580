/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal UI on snapshots made by hand, for tests through a real terminal.
 * usage: tui_fixture [--replay] [--later MS [--same] [--noise]] [--how FLAGS] [--ascii] [--theme T]
 *	--later MS  a new snapshot every MS, each other than the last
 *	--same      with --later: always the same
 *	--noise     with --later: somebody writes to stderr each time
 *	--how N     SNAP_* of the first snapshot, as a number
 * Closes with one line on stdout: "fixture: rc <tui_run's result>, <n> commands, last <what>". */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mailbox.h"
#include "tui.h"
#include "unit/ui_fixture.c" /* programs here are made of one file */

struct feed {
	struct mailbox box;
	int event_fd;
	int later_ms;
	bool same, noise;
	unsigned int how;
	atomic_bool stop;
	unsigned int cmd_cnt;
	struct tui_cmd last;
};

static void publish(struct feed *f, unsigned int how)
{
	uint64_t one = 1;
	snapshot_free(mailbox_put(&f->box, ui_fixture(how)));
	if (write(f->event_fd, &one, sizeof(one)) < 0)
		abort();
}

static void *feeder(void *ctx)
{
	struct feed *f = ctx;
	for (unsigned int n = 1; !atomic_load(&f->stop); n++) {
		poll(NULL, 0, f->later_ms);
		if (f->noise)
			fputs("a library complains\n", stderr);
		publish(f, f->how ^ (n & 1 && !f->same ? (unsigned int)SNAP_LATER : 0u));
	}
	return NULL;
}

static struct snapshot *take(void *ctx)
{
	struct feed *f = ctx;
	return mailbox_take(&f->box);
}

static int command(void *ctx, const struct tui_cmd *cmd)
{
	struct feed *f = ctx;
	f->cmd_cnt++;
	f->last = *cmd;
	return 0;
}

static int save(void *ctx, const struct tui_save *what, char *msg, size_t cap)
{
	(void)ctx;
	snprintf(msg, cap, "saved kind %d as fixture.pb.gz", (int)what->what);
	return 0;
}

static const struct tui_ops ops = { .take = take, .command = command, .save = save };

int main(int argc, char **argv)
{
	struct feed f = { .event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) };
	struct tui_opts o = { .ops = &ops, .ctx = &f, .event_fd = f.event_fd, .live = true };
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		if (!strcmp(argv[i], "--replay"))
			o.live = false, o.replay_file = "incident.criticast";
		else if (!strcmp(argv[i], "--ascii"))
			o.ascii = true;
		else if (!strcmp(argv[i], "--same"))
			f.same = true;
		else if (!strcmp(argv[i], "--noise"))
			f.noise = true;
		else if (!strcmp(argv[i], "--later"))
			f.later_ms = atoi(value), i++;
		else if (!strcmp(argv[i], "--how"))
			f.how = (unsigned int)atoi(value), i++;
		else if (!strcmp(argv[i], "--theme"))
			o.theme = value, i++;
		else
			return 2;
	}
	sigset_t set;
	tui_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_t thread;
	publish(&f, f.how);
	if (f.later_ms && pthread_create(&thread, NULL, feeder, &f))
		return 1;
	int rc = tui_run(&o);
	atomic_store(&f.stop, true);
	if (f.later_ms)
		pthread_join(thread, NULL);
	snapshot_free(mailbox_take(&f.box));
	close(f.event_fd);
	printf("fixture: rc %d, %u commands, last%s%s sort %d filter '%s'\n", rc, f.cmd_cnt,
	       f.last.paused ? " paused" : "", f.last.selected.kind ? " selected" : "",
	       (int)f.last.sort, f.last.filter);
	return 0;
}
