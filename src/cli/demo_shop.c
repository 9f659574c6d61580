// SPDX-License-Identifier: Apache-2.0
/* The handlers of the thread-per-connection services. Each notes when its cause began and ended. */
#include "demo_shop.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Named objects, not members of a context, so that the screen can show the locks by name. */
static pthread_mutex_t cart_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t stock_mutex = PTHREAD_MUTEX_INITIALIZER;

static void wait_took(struct demo_conn *c, struct demo_req *r, const struct demo_usage *a,
		      const struct demo_usage *b)
{
	c->runq_seen = b->runq;
	r->wait_start = a->now;
	r->wait_end = b->now;
	r->wait_ns = demo_off_ns(a, b);
	r->wait_runq_ns = b->runq - a->runq;
}

/* What this request had from @from to @to, for whoever wanted it meanwhile. */
static void held(const struct demo_conn *c, const struct demo_usage *from,
		 const struct demo_usage *to)
{
	struct demo_hold h = { .cause = (uint8_t)c->cause,
			       .peer_port = c->peer_port,
			       .ordinal = c->ordinal,
			       .tid = (uint32_t)gettid(),
			       .start = from->now,
			       .end = to->now,
			       .off_ns = demo_off_ns(from, to),
			       .cpu_ns = to->cpu - from->cpu,
			       .runq_ns = to->runq - from->runq };
	demo_log_hold(c->sh, &h);
}

/* Each part by itself, as naive code does, until the disk was waited for long enough to be felt. */
static DEMO_SITE bool journal_sync(struct demo_conn *c)
{
	struct demo_usage begun = demo_meter_read(&c->meter), now;
	do {
		if (!demo_journal_sync(&c->sh->journal))
			return false;
		now = demo_meter_read(&c->meter);
	} while (demo_off_ns(&begun, &now) < CC_MS(8));
	return true;
}

static DEMO_SITE bool cart_flush(struct demo_conn *c, const struct demo_msg *m)
{
	pthread_mutex_lock(&cart_mutex);
	struct demo_usage got = demo_meter_read(&c->meter);
	bool ok = journal_sync(c);
	struct demo_usage done = demo_meter_read(&c->meter);
	pthread_mutex_unlock(&cart_mutex);
	held(c, &got, &done);
	return ok && demo_answer(c->fd, m->answer);
}

static DEMO_SITE bool cart_add(struct demo_conn *c, const struct demo_msg *m, struct demo_req *r)
{
	if (m->op == DEMO_OP_CULPRIT)
		return cart_flush(c, m);
	struct demo_usage want = demo_meter_read(&c->meter);
	pthread_mutex_lock(&cart_mutex);
	struct demo_usage got = demo_meter_read(&c->meter);
	struct demo_usage done = demo_meter_read(&c->meter);
	pthread_mutex_unlock(&cart_mutex);
	held(c, &got, &done);
	wait_took(c, r, &want, &got);
	r->judged = true;
	return demo_answer(c->fd, m->answer);
}

static DEMO_SITE bool stock_reserve(struct demo_conn *c, const struct demo_msg *m,
				    struct demo_req *r)
{
	struct demo_usage want = demo_meter_read(&c->meter);
	pthread_mutex_lock(&stock_mutex);
	struct demo_usage got = demo_meter_read(&c->meter);
	demo_sleep(CC_US(2000 + rand_r(&c->seed) % 3000));
	struct demo_usage done = demo_meter_read(&c->meter);
	pthread_mutex_unlock(&stock_mutex);
	held(c, &got, &done);
	wait_took(c, r, &want, &got);
	r->judged = true;
	return demo_answer(c->fd, m->answer);
}

static DEMO_SITE bool price_lookup(struct demo_conn *c, const struct demo_msg *m,
				   struct demo_req *r)
{
	if (c->upstream_fd < 0)
		c->upstream_fd = demo_connect(c->sh->upstream_port, 0);
	struct demo_usage asked = demo_meter_read(&c->meter);
	if (c->upstream_fd < 0 || !demo_ask(c->upstream_fd, DEMO_OP_NORMAL, 64) ||
	    !demo_read_answer(c->upstream_fd, 64, 0, 0))
		return false;
	struct demo_usage told = demo_meter_read(&c->meter);
	wait_took(c, r, &asked, &told);
	r->judged = true;
	return demo_answer(c->fd, m->answer);
}

static DEMO_SITE bool order_commit(struct demo_conn *c, const struct demo_msg *m,
				   struct demo_req *r)
{
	struct demo_usage begun = demo_meter_read(&c->meter);
	bool ok = journal_sync(c);
	struct demo_usage done = demo_meter_read(&c->meter);
	wait_took(c, r, &begun, &done);
	r->judged = true;
	return ok && demo_answer(c->fd, m->answer);
}

static DEMO_SITE bool payment_poll(struct demo_conn *c, const struct demo_msg *m,
				   struct demo_req *r)
{
	struct demo_usage begun = demo_meter_read(&c->meter);
	demo_sleep(CC_MS(8));
	struct demo_usage done = demo_meter_read(&c->meter);
	wait_took(c, r, &begun, &done);
	r->judged = true;
	return demo_answer(c->fd, m->answer);
}

static DEMO_SITE uint64_t render_rows(struct demo_conn *c, cc_ns cpu_ns)
{
	cc_ns end = demo_meter_read(&c->meter).cpu + cpu_ns;
	uint64_t sum = c->ordinal;
	while (demo_meter_read(&c->meter).cpu < end) {
		for (int i = 0; i < 20000; i++)
			sum = sum * 6364136223846793005ull + 1442695040888963407ull;
	}
	return sum;
}

static DEMO_SITE bool page_render(struct demo_conn *c, const struct demo_msg *m, struct demo_req *r)
{
	struct demo_usage begun = demo_meter_read(&c->meter);
	c->seed = (unsigned int)render_rows(c, CC_MS(8));
	struct demo_usage done = demo_meter_read(&c->meter);
	wait_took(c, r, &begun, &done);
	r->wait_ns = done.cpu - begun.cpu;
	r->judged = true;
	return demo_answer(c->fd, m->answer);
}

/* Syncing threads wake often and run little. At once, where that is allowed: else what is to be a
 * wait for the disk is one for CPUs on a busy machine. */
static void sync_begin(struct demo_conn *c)
{
	(void)c;
	demo_run_at_once(true);
}

/* On the CPU that the hog has, and nicer than it. */
static void thumbnail_begin(struct demo_conn *c)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(c->sh->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, 0) + 10);
}

static DEMO_SITE bool thumbnail_make(struct demo_conn *c, const struct demo_msg *m,
				     struct demo_req *r)
{
	struct demo_usage begun = demo_meter_read(&c->meter);
	c->seed = (unsigned int)render_rows(c, CC_MS(2));
	struct demo_usage done = demo_meter_read(&c->meter);
	wait_took(c, r, &begun, &done);
	/* it never blocks: when it is on no CPU it waits for one, also when that is not counted */
	r->wait_ns += c->woken_ns + r->wait_runq_ns;
	r->judged = true;
	return demo_answer(c->fd, m->answer);
}

static void report_begin(struct demo_conn *c)
{
	int bytes = 16384; /* so that most of an answer waits for its reader */
	setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

static DEMO_SITE bool report_export(struct demo_conn *c, const struct demo_msg *m,
				    struct demo_req *r)
{
	struct demo_usage begun = demo_meter_read(&c->meter);
	bool ok = demo_answer(c->fd, m->answer);
	struct demo_usage done = demo_meter_read(&c->meter);
	wait_took(c, r, &begun, &done);
	r->judged = true;
	return ok;
}

const struct demo_service demo_services[DEMO_CAUSE_CNT] = {
	[DEMO_LOCK] = { "cart", cart_add, sync_begin },
	[DEMO_BARGE] = { "stock", stock_reserve, NULL },
	[DEMO_UPSTREAM] = { "price", price_lookup, NULL },
	[DEMO_FSYNC] = { "order", order_commit, sync_begin },
	[DEMO_SLEEP] = { "payment", payment_poll, NULL },
	[DEMO_CPU] = { "page", page_render, NULL },
	[DEMO_HOG] = { "thumbnail", thumbnail_make, thumbnail_begin },
	[DEMO_CLIENT] = { "report", report_export, report_begin },
};
