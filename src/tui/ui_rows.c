/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of Waits and Threads as they are shown: in the wanted order, threads by role. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

enum { WAITS_TOTAL, WAITS_REQ, WAITS_P50, WAITS_P99, WAITS_CONF, WAITS_SAVES };
enum { THREADS_WORK, THREADS_NOW, THREADS_GROUP, THREADS_TID = THREADS_GROUP + 9 };

static const struct sort_col request_cols[] = {
	[SORT_LATENCY] = { 'l', "LAT", "latency" },
	[SORT_AGE] = { 'a', "AGE", "age (newest first)" },
	[SORT_CONFIDENCE] = { 'c', "CONF", "confidence" },
	[SORT_UNEXPLAINED] = { 'u', "?%", "unexplained time" },
	[SORT_DOMINANT] = { 'd', "DOMINANT", "dominant wait" },
	[SORT_CPU] = { 'p', "CPU%", "share on the CPU" },
	[SORT_RUNQ] = { 'r', "RUNQ%", "share in the run queue" },
};
static const struct sort_col wait_cols[] = {
	[WAITS_TOTAL] = { 't', "TOTAL", "time of all requests" },
	[WAITS_REQ] = { 'r', "REQ", "number of requests" },
	[WAITS_P50] = { '5', "P50", "median" },
	[WAITS_P99] = { '9', "P99", "p99" },
	[WAITS_CONF] = { 'c', "CONF", "confidence" },
	[WAITS_SAVES] = { 's', "SAVES", "what would be saved at most" },
};
static const struct sort_col thread_cols[] = {
	[THREADS_WORK] = { 'w', "REQ", "work: requests, then busy time" },
	[THREADS_NOW] = { 'f', "NOW", "time in what it is in now" },
	[THREADS_GROUP] = { 'c', "CPU", "share on the CPU" },
	{ 'r', "RUNQ", "share in the run queue" },
	{ 'l', "LOCK", "share in locks" },
	{ 'n', "NET", "share in the network" },
	{ 'd', "DISK", "share at disks" },
	{ 's', "SLEEP", "share asleep" },
	{ 'm', "MEMORY", "share in memory" },
	{ 'u', "QUEUE", "share in queues" },
	{ 'o', "OTHER", "share in the rest" },
	[THREADS_TID] = { 't', "TID", "thread id" },
};

const struct sort_col *sort_cols(enum screen s, int *ret_cnt)
{
	*ret_cnt = s == SCREEN_WAITS     ? (int)ARRAY_SIZE(wait_cols)
		   : s == SCREEN_THREADS ? (int)ARRAY_SIZE(thread_cols)
					 : (int)ARRAY_SIZE(request_cols);
	return s == SCREEN_WAITS ? wait_cols : s == SCREEN_THREADS ? thread_cols : request_cols;
}

/* ---- order ---- */

static cc_ns wait_key(const struct snap_wait *w, int col)
{
	switch (col) {
	case WAITS_REQ:
		return w->requests;
	case WAITS_P50:
		return w->p50_ns;
	case WAITS_P99:
		return w->p99_ns;
	case WAITS_CONF:
		return w->confidence;
	case WAITS_SAVES:
		return w->what_if_ns;
	default: /* as the owner gave them */
		return 0;
	}
}

/* Parts of a million of what is known of its time. */
static cc_ns group_part(const struct snap_thread *t, int group)
{
	cc_ns total = 0;
	for (int i = 0; i < 9; i++)
		total += t->mix[i];
	return total ? (cc_ns)((double)t->mix[group] / (double)total * 1e6) : 0;
}

static cc_ns thread_key(const struct snap_thread *t, int col)
{
	if (col == THREADS_WORK) /* the same */
		return 0;
	if (col == THREADS_NOW)
		return t->now_ns;
	if (col == THREADS_TID)
		return t->task.goid ? t->task.goid : t->task.tid;
	return group_part(t, col - THREADS_GROUP);
}

struct keyed {
	cc_ns key;
	uint32_t at;
};

/* Largest first, as the owner gave them where they are equal. */
static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	if (x->key != y->key)
		return x->key > y->key ? -1 : 1;
	return x->at > y->at ? 1 : x->at < y->at ? -1 : 0;
}

static void sort_keyed(struct keyed *k, uint32_t cnt, bool ascending)
{
	qsort(k, cnt, sizeof(*k), by_key);
	if (!ascending)
		return;
	for (uint32_t i = 0; i < cnt / 2; i++) {
		struct keyed first = k[i];
		k[i] = k[cnt - 1 - i];
		k[cnt - 1 - i] = first;
	}
}

/* "worker/7" and "worker/12" are both workers: the end that tells them apart goes. */
static size_t role_len(const char *comm)
{
	size_t n = strlen(comm);
	while (n && strchr("0123456789/:#-_ ", comm[n - 1]))
		n--;
	return n ? n : strlen(comm);
}

static bool role_folded(const struct ui *ui, const char *comm)
{
	char role[64];
	snprintf(role, sizeof(role), "%.*s", (int)role_len(comm), comm);
	return ui_folded(ui, view_hash(ROLE_KEY, role));
}

static bool same_role(const struct snapshot *s, uint32_t a, uint32_t b)
{
	const char *x = snapshot_str(s, s->threads[a].task.comm);
	const char *y = snapshot_str(s, s->threads[b].task.comm);
	size_t n = role_len(x);
	return n == role_len(y) && !memcmp(x, y, n);
}

/* Each role of several where its first thread is, its threads below it unless it is folded. */
static uint32_t group_roles(const struct ui *ui, const struct keyed *k, bool *taken,
			    struct thread_row *ret, uint32_t *members)
{
	const struct snapshot *s = ui->snap;
	uint32_t n = 0, used = 0;
	for (uint32_t i = 0; i < s->thread_cnt; i++) {
		if (taken[i])
			continue;
		struct thread_row role = { .at = k[i].at, .members = members + used };
		for (uint32_t j = i; j < s->thread_cnt; j++) {
			if (taken[j] || !same_role(s, k[i].at, k[j].at))
				continue;
			taken[j] = true;
			members[used++] = k[j].at;
			role.cnt++;
		}
		if (role.cnt == 1) { /* it stands for itself */
			ret[n++] = (struct thread_row){ .at = k[i].at };
			continue;
		}
		role.folded = role_folded(ui, snapshot_str(s, s->threads[role.at].task.comm));
		ret[n++] = role;
		for (uint32_t m = 0; m < role.cnt && !role.folded; m++)
			ret[n++] = (struct thread_row){ .at = role.members[m], .in_role = true };
	}
	return n;
}

static void order_waits(const struct ui *ui, struct keyed *k, uint32_t *ret)
{
	const struct snapshot *s = ui->snap;
	const struct row_sort *by = &ui->sorts[SCREEN_WAITS];
	for (uint32_t i = 0; i < s->wait_cnt; i++)
		k[i] = (struct keyed){ wait_key(&s->waits[i], by->col), i };
	sort_keyed(k, s->wait_cnt, by->ascending);
	for (uint32_t i = 0; i < s->wait_cnt; i++)
		ret[i] = k[i].at;
}

static uint32_t order_threads(const struct ui *ui, struct keyed *k, bool *taken,
			      struct thread_row *ret, uint32_t *members)
{
	const struct snapshot *s = ui->snap;
	const struct row_sort *by = &ui->sorts[SCREEN_THREADS];
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->thread_cnt; i++)
		k[i] = (struct keyed){ thread_key(&s->threads[i], by->col), i };
	sort_keyed(k, s->thread_cnt, by->ascending);
	if (ui->by_role)
		n = group_roles(ui, k, taken, ret, members);
	else
		for (; n < s->thread_cnt; n++)
			ret[n] = (struct thread_row){ .at = k[n].at };
	for (uint32_t i = 0; i < s->outside_cnt; i++)
		ret[n++] = (struct thread_row){ .at = i, .outside = true };
	return n;
}

int ui_rows(struct ui *ui)
{
	const struct snapshot *s = ui->snap;
	uint32_t cnt = CC_MAX(s->wait_cnt, s->thread_cnt) + 1;
	uint32_t *waits = calloc(cnt, sizeof(*waits));
	struct thread_row *threads = calloc(2 * cnt + s->outside_cnt, sizeof(*threads));
	struct keyed *k = calloc(cnt, sizeof(*k));
	uint32_t *members = calloc(cnt, sizeof(*members));
	bool *taken = calloc(cnt, sizeof(*taken));
	int err = waits && threads && k && members && taken ? 0 : -ENOMEM;
	free(take_ptr(ui->waits)); /* they index the snapshot that was before */
	free(take_ptr(ui->threads));
	free(take_ptr(ui->role_members));
	ui->thread_rows = 0;
	if (err)
		goto out;
	order_waits(ui, k, waits);
	ui->thread_rows = order_threads(ui, k, taken, threads, members);
	ui->waits = take_ptr(waits);
	ui->threads = take_ptr(threads);
	ui->role_members = take_ptr(members);
out:
	free(waits);
	free(threads);
	free(k);
	free(members);
	free(taken);
	return err;
}

const struct snap_wait *ui_wait(const struct ui *ui, int row)
{
	bool there = ui->snap && ui->waits && row >= 0 && (uint32_t)row < ui->snap->wait_cnt;
	return there ? &ui->snap->waits[ui->waits[row]] : NULL;
}

const struct thread_row *ui_thread_row(const struct ui *ui, int row)
{
	bool there = ui->snap && row >= 0 && (uint32_t)row < ui->thread_rows;
	return there ? &ui->threads[row] : NULL;
}

const struct snap_thread *ui_thread(const struct ui *ui, int row)
{
	const struct thread_row *r = ui_thread_row(ui, row);
	return r && !r->outside && !r->cnt ? &ui->snap->threads[r->at] : NULL;
}

void ui_role(const struct ui *ui, int row, char *buf, size_t cap)
{
	const struct thread_row *r = ui_thread_row(ui, row);
	const char *comm =
		r && r->cnt ? snapshot_str(ui->snap, ui->snap->threads[r->at].task.comm) : "";
	snprintf(buf, cap, "%.*s", (int)role_len(comm), comm);
}
