/* SPDX-License-Identifier: Apache-2.0 */
#include "filter_term.h"

#include <string.h>
#include <strings.h>

#include "fmt.h"

#define DAY_NS (86400 * CC_S(1))

static bool in_range(const struct term *t, uint64_t v)
{
	switch ((enum op)t->op) {
	case OP_EQ:
		return v >= t->lo && v <= t->hi;
	case OP_NE:
		return v < t->lo || v > t->hi;
	case OP_GT:
		return v > t->hi;
	case OP_GE:
		return v >= t->lo;
	case OP_LT:
		return v < t->lo;
	case OP_LE:
		return v <= t->hi;
	case OP_CONTAINS:
		break;
	}
	return false;
}

/* A client is named by its address, with its port, or with the ordinal as well. */
static bool peer_is(const char *peer, const char *want)
{
	size_t n = strlen(want);
	const char *port = strrchr(peer, ':');

	if (strncasecmp(peer, want, n) == 0 && (peer[n] == '\0' || peer[n] == '#'))
		return true;
	return strncasecmp(peer, want, n) == 0 && peer + n == port;
}

static bool match_text(const struct term *t, const struct filter_subject *s)
{
	char text[256];

	if (!s->text(s->ctx, s->r, (enum filter_key)t->key, text, sizeof(text)) || !text[0])
		return false;
	if (t->op == OP_CONTAINS)
		return strcasestr(text, t->text) != NULL;
	bool peer = t->key == FK_PEER || t->key == FK_CONN || t->key == FK_UPSTREAM;
	bool same = peer ? peer_is(text, t->text) : strcasecmp(text, t->text) == 0;

	return same == (t->op == OP_EQ);
}

/* Was the request going on within [lo, hi] of any day? */
static bool match_time(const struct term *t, const struct filter_subject *s)
{
	uint64_t start = s->r->start + (uint64_t)s->wall_off_ns;
	uint64_t len = s->r->end > s->r->start ? s->r->end - s->r->start : 0;
	uint64_t since_lo = (start % DAY_NS + DAY_NS - t->lo) % DAY_NS; /* from lo to the start */

	return since_lo <= t->hi - t->lo || since_lo + len >= DAY_NS;
}

bool request_is(const struct cc_request *r, struct cc_reqid want)
{
	return fmt_reqid_matches(want, r->id) ||
	       (want.kind == CC_REQID_TID && (want.id == r->tid || want.id == r->recv_tid));
}

static bool match_id(const struct term *t, const struct filter_subject *s)
{
	return request_is(s->r, t->id) == (t->op == OP_EQ);
}

/* The wait of a request without a path is not known: no term about it matches. */
static bool match_wait(const struct term *t, const struct cc_request *r)
{
	unsigned int cls = t->key == FK_ROOT ? request_root(r)->cls : request_dominant(r)->cls;

	return r->path_ok && cls < WAIT_CLASS_CNT && (t->lo >> cls & 1) == (t->op != OP_NE);
}

static bool match_num(const struct term *t, const struct cc_request *r)
{
	switch (t->key) {
	case FK_LAT:
		return in_range(t, r->end > r->start ? r->end - r->start : 0);
	case FK_PORT:
		return r->rec.local_port && in_range(t, r->rec.local_port);
	case FK_CONF:
		return in_range(t, r->confidence);
	case FK_TID: /* either of the two; for != and ranges: the one that sent it */
		return (r->recv_tid && t->op == OP_EQ && in_range(t, r->recv_tid)) ||
		       (r->tid && in_range(t, r->tid));
	case FK_UNEXPLAINED:
		return r->path_ok && in_range(t, r->unexplained_ns);
	}
	unsigned int cls = (unsigned int)t->key - KEY_CLASS_BASE;
	struct cc_found buf;

	return r->path_ok && cls < WAIT_CLASS_CNT &&
	       in_range(t, request_found(r, &buf)->class_ns[cls]);
}

static bool match_term(const struct term *t, const struct filter_subject *s)
{
	switch (filter_key_type(t->key)) {
	case FILTER_TEXT:
		return match_text(t, s);
	case FILTER_TIME:
		return match_time(t, s);
	case FILTER_ID:
		return match_id(t, s);
	case FILTER_WAIT:
		return match_wait(t, s->r);
	case FILTER_NS:
	case FILTER_NUM:
	case FILTER_CONF:
		break;
	}
	return match_num(t, s->r);
}

bool filter_match(const struct filter *f, const struct filter_subject *s)
{
	bool all = true;

	for (uint32_t i = 0; i < f->cnt; i++) {
		const struct term *t = &f->terms[i];

		if (t->starts_or) {
			if (all)
				return true;
			all = true;
		}
		all = all && match_term(t, s) != t->negated;
	}
	return all;
}
