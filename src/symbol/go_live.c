/* SPDX-License-Identifier: Apache-2.0 */
#include "go_live.h"
#include "go_layout_find.h"
#include "go_tab.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define RIGHT_MIN 2   /* samples that must fit */
#define WRONG_SHARE 8 /* at most one in so many may not: it was read while it changed */
#define GOID_MAX (1ull << 40)
#define STATUS_MAX 11 /* of Go 1.27, without the bit below */
#define STATUS_SCAN 0x1000

bool go_live_read_process(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct iovec here = { buf, len }, there = { (void *)(uintptr_t)addr, len };

	return process_vm_readv(*(const pid_t *)ctx, &here, 1, &there, 1, 0) == (ssize_t)len;
}

static bool word(const struct go_live *p, uint64_t addr, uint64_t *ret)
{
	return p->read(p->ctx, addr, ret, sizeof(*ret));
}

static bool status_right(uint32_t v) { return (v & ~(uint32_t)STATUS_SCAN) <= STATUS_MAX; }

/* What is wrong with a goroutine; NULL: nothing. */
static const char *wrong_goroutine(const struct go_live *p, const struct go_layout *l, uint64_t g)
{
	uint64_t goid, start;
	uint32_t status;
	uint8_t reason;
	struct go_func fn;

	if (!p->read(p->ctx, g + l->g_atomicstatus, &status, sizeof(status)) ||
	    !p->read(p->ctx, g + l->g_waitreason, &reason, sizeof(reason)) ||
	    !word(p, g + l->g_goid, &goid) || !word(p, g + l->g_startpc, &start))
		return "g cannot be read";
	if (!status_right(status))
		return "g.atomicstatus is no state";
	if (p->t->reasons.cnt && reason >= p->t->reasons.cnt)
		return "g.waitreason is no reason";
	if (!goid || goid > GOID_MAX)
		return "g.goid is no id";
	if (!go_tab_func(p->tab, start - p->bias, &fn) || fn.entry != start - p->bias)
		return "g.startpc is no function";
	return NULL;
}

enum judged { RIGHT, WRONG, IDLE };

static enum judged judge(const struct go_live *p, const struct go_layout *l,
			 const struct go_sample *s, const char **ret_why)
{
	uint64_t m, procid, curg, g0;

	/* a thread that just began has not written its id yet; one that ends has no m */
	if (!s->g || !word(p, s->g + l->g_m, &m) || !m || !word(p, m + l->m_procid, &procid) ||
	    !word(p, m + l->m_curg, &curg) || !word(p, m + l->m_g0, &g0))
		return IDLE;
	*ret_why = procid != s->tid ? "m.procid is not the thread"
		   : curg == s->g   ? wrong_goroutine(p, l, s->g)
		   : g0 != s->g     ? "neither m.curg nor m.g0 is g"
				    : NULL;
	return *ret_why ? WRONG : RIGHT;
}

int go_live_check(const struct go_live *p, const struct go_layout *l, const struct go_sample *s,
		  size_t cnt, struct go_verdict *ret)
{
	*ret = (struct go_verdict){ 0 };
	for (size_t i = 0; i < CC_MIN(cnt, GO_LIVE_SAMPLES); i++) {
		const char *why = NULL;

		switch (judge(p, l, &s[i], &why)) {
		case RIGHT:
			ret->right++;
			break;
		case WRONG:
			if (!ret->wrong++)
				snprintf(ret->why, sizeof(ret->why), "%s", why);
			break;
		case IDLE:
			ret->idle++;
			break;
		}
	}
	if (ret->wrong && ret->wrong * WRONG_SHARE > ret->right)
		return -EINVAL;
	if (ret->right >= RIGHT_MIN)
		return 0;
	snprintf(ret->why, sizeof(ret->why), "%u of %zu threads had a goroutine to look at",
		 ret->right, cnt);
	return -EAGAIN;
}
