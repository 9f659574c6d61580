/* SPDX-License-Identifier: Apache-2.0 */
#include "flight.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "fmt.h"

#define TICKS_AFTER 2 /* between a reason and the writing */

struct flight {
	struct flight_opts o;
	int signal_fd;
	bool keys;
	char why[192];       /* "": no reason has come */
	uint32_t ticks_left; /* until it is written */
	cc_ns quiet_until;   /* time of the stream */
	cc_ns now;           /* of the last TICK */
	cc_ns from;          /* what is written begins here: a ring before the reason */
	uint32_t files;
	char path[PATH_MAX];
};

int flight_new(const struct flight_opts *o, struct flight **ret)
{
	struct flight *f = calloc(1, sizeof(*f));
	sigset_t set;

	if (!f)
		return -ENOMEM;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	f->o = *o;
	f->keys = o->keys;
	f->signal_fd = pthread_sigmask(SIG_BLOCK, &set, NULL)
			       ? -1
			       : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (f->signal_fd < 0) {
		free(f);
		return -errno;
	}
	*ret = f;
	return 0;
}

void flight_free(struct flight *f)
{
	if (!f)
		return;
	close(f->signal_fd);
	free(f);
}

uint32_t flight_file_cnt(const struct flight *f) { return f->files; }

const char *flight_path(const struct flight *f) { return f->path; }

static void give_reason(struct flight *f, const char *why, cc_ns from)
{
	if (f->why[0])
		return; /* what goes on is in the same file */
	snprintf(f->why, sizeof(f->why), "%s", why);
	f->ticks_left = TICKS_AFTER;
	f->from = CC_MIN(f->now > f->o.ring ? f->now - f->o.ring : 1, from);
}

static void see_request(struct flight *f, const struct cc_rec_req *q)
{
	cc_ns start = q->arrival ? q->arrival : q->first_recv;
	char why[2 * FMT_LEN + 32], id[FMT_LEN], dur[FMT_LEN];

	if (!start || q->last_send < start || q->last_send - start < f->o.trigger ||
	    q->h.ts < f->quiet_until)
		return;
	fmt_reqid(id, sizeof(id), (struct cc_reqid){ q->cookie, q->ordinal, CC_REQID_SOCK });
	fmt_dur(dur, sizeof(dur), q->last_send - start);
	snprintf(why, sizeof(why), "request %s took %s", id, dur);
	give_reason(f, why, start); /* whole, also if it is longer than the ring */
}

void flight_see(struct flight *f, const struct cc_rec *rec)
{
	if (rec->kind == CC_REC_REQ && rec->size >= sizeof(struct cc_rec_req) && f->o.trigger)
		see_request(f, (const struct cc_rec_req *)rec);
	if (rec->kind != CC_REC_TICK)
		return;
	f->now = rec->ts;
	f->ticks_left -= f->ticks_left > 0;
}

static void look_outside(struct flight *f)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	struct signalfd_siginfo info;
	char line[256];

	if (read(f->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		give_reason(f, "SIGUSR1", f->now);
	if (!f->keys || poll(&p, 1, 0) <= 0)
		return;
	if (read(STDIN_FILENO, line, sizeof(line)) > 0)
		give_reason(f, "Enter", f->now);
	else
		f->keys = false; /* the terminal is gone */
}

/* "trace.criticast", "trace-2.criticast", ... */
static void next_path(struct flight *f)
{
	const char *out = f->o.out, *slash = strrchr(out, '/'), *dot = strrchr(out, '.');
	int stem =
		dot && (!slash || dot > slash) && dot != out ? (int)(dot - out) : (int)strlen(out);

	if (f->files == 0)
		snprintf(f->path, sizeof(f->path), "%s", out);
	else
		snprintf(f->path, sizeof(f->path), "%.*s-%u%s", stem, out, f->files + 1,
			 out + stem);
}

static int write_now(struct flight *f, struct collect *c)
{
	next_path(f);
	int err = collect_save_history(c, f->from, f->path);

	if (err)
		return err;
	f->files++;
	f->quiet_until = f->now + f->o.ring;
	fprintf(stderr, "%swrote %s: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", f->path,
		f->why);
	f->why[0] = '\0';
	return 0;
}

int flight_turn(struct flight *f, struct collect *c)
{
	look_outside(f);
	return f->why[0] && !f->ticks_left ? write_now(f, c) : 0;
}

int flight_end(struct flight *f, struct collect *c)
{
	look_outside(f);
	return f->why[0] ? write_now(f, c) : 0;
}
