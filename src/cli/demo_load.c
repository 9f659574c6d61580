// SPDX-License-Identifier: Apache-2.0
/* The demo's customers: for each cause in turn, a few connections that ask and wait. */
#include "demo_compare.h"
#include "demo_net.h"
#include "demo_proc.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define CLIENTS_MAX 16

struct group {
	int clients;
	uint32_t op, answer;
	cc_ns think_ns; /* between an answer and the next question, +-50 % */
	uint32_t chunk; /* reads the answer in pieces of this size ... */
	cc_ns pause_ns; /* ... this far apart; 0: at once */
	int rcvbuf;
};

/* Two groups a cause: those who suffer, and those who make them. */
static const struct group plan[DEMO_CAUSE_CNT][2] = {
	[DEMO_LOCK] = { { .clients = 4, .answer = 128, .think_ns = CC_MS(3) },
			{ .clients = 1,
			  .op = DEMO_OP_CULPRIT,
			  .answer = 128,
			  .think_ns = CC_MS(3) } },
	[DEMO_BARGE] = { { .clients = 16, .answer = 128, .think_ns = CC_MS(1) } },
	[DEMO_POOL] = { { .clients = 8, .answer = 512, .think_ns = CC_MS(1) } },
	[DEMO_UPSTREAM] = { { .clients = 3, .answer = 128, .think_ns = CC_MS(8) } },
	[DEMO_FSYNC] = { { .clients = 1, .answer = 128, .think_ns = CC_MS(5) } },
	[DEMO_SLEEP] = { { .clients = 3, .answer = 128, .think_ns = CC_MS(8) } },
	[DEMO_CPU] = { { .clients = 1, .answer = 4096, .think_ns = CC_MS(8) } },
	[DEMO_HOG] = { { .clients = 1, .answer = 4096, .think_ns = CC_MS(5) } },
	[DEMO_HOL] = { { .clients = 4, .answer = 128, .think_ns = CC_MS(5) },
		       { .clients = 1,
			 .op = DEMO_OP_CULPRIT,
			 .answer = 2048,
			 .think_ns = CC_MS(12) } },
	[DEMO_CLIENT] = { { .clients = 2,
			    .answer = 256 << 10,
			    .think_ns = CC_MS(5),
			    .chunk = 16384,
			    .pause_ns = CC_MS(1),
			    .rcvbuf = 16384 } },
};

struct client {
	const struct group *g;
	uint16_t port;
	const atomic_bool *stop;
	unsigned int seed;
	pthread_t thread;
};

static void *be_client(void *arg)
{
	struct client *c = arg;
	const struct group *g = c->g;
	int fd = demo_connect(c->port, g->rcvbuf);
	if (fd < 0)
		return NULL;
	demo_sleep(CC_MS(20)); /* the server's thread for it stands ready: no accept in the way */
	while (!atomic_load(c->stop)) {
		if (!demo_ask(fd, g->op, g->answer) ||
		    !demo_read_answer(fd, g->answer, g->chunk, g->pause_ns))
			break;
		demo_sleep(g->think_ns / 2 + (cc_ns)rand_r(&c->seed) % g->think_ns);
	}
	close(fd);
	return NULL;
}

#define CLEAR_WANTED (2 * DEMO_REQUESTS_MIN)
#define TIMES_MORE 4 /* half a slot each, at most */

/* When one round is to be judged, a busy machine gets more time to show the cause clearly. */
static void wait_slot(const struct demo_shared *sh, int cause, const struct demo_opts *o)
{
	demo_sleep(o->slot_ns);
	for (int i = 0; o->once && i < TIMES_MORE; i++) {
		if (demo_clear_cnt(sh, (enum demo_cause)cause) >= CLEAR_WANTED)
			break;
		demo_sleep(o->slot_ns / 2);
	}
}

static void drive(struct demo_shared *sh, int cause, const struct demo_opts *o)
{
	struct client clients[CLIENTS_MAX];
	atomic_bool stop = false;
	int n = 0;
	atomic_store(&sh->driving, cause);
	atomic_store(&sh->hog_on, cause == DEMO_HOG);
	for (int i = 0; i < 2; i++) {
		const struct group *g = &plan[cause][i];
		for (int k = 0; k < g->clients && n < CLIENTS_MAX; k++) {
			clients[n] = (struct client){ .g = g,
						      .port = sh->port[cause],
						      .stop = &stop,
						      .seed = (unsigned int)n };
			if (!pthread_create(&clients[n].thread, NULL, be_client, &clients[n]))
				n++;
		}
	}
	wait_slot(sh, cause, o);
	atomic_store(&stop, true);
	while (n > 0)
		pthread_join(clients[--n].thread, NULL);
	atomic_store(&sh->hog_on, false);
}

_Noreturn void demo_load_run(struct demo_shared *sh, const struct demo_opts *o)
{
	while (!atomic_load(&sh->go))
		demo_sleep(CC_MS(5));
	do {
		for (int cause = 0; cause < DEMO_CAUSE_CNT; cause++)
			if (demo_cause_here(sh, (unsigned int)cause))
				drive(sh, cause, o);
	} while (!o->once);
	atomic_store(&sh->load_done, true);
	_exit(0);
}
