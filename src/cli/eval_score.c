/* SPDX-License-Identifier: Apache-2.0 */
/* How often a model was right: per mechanism, by its own confidence, and whether goroutines that
 * work for many can be told by what it says. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "confidence.h"
#include "eval.h"

static void count(struct eval_score *s, const struct eval_fact *f, const struct eval_claim *c)
{
	s->facts++;
	s->ambiguous += c->ambiguous;
	s->claimed += c->token != 0;
	s->right += c->token == f->token;
}

/* ---- entropy ---- */

struct seen { /* what a model said at one line of a goroutine */
	uint64_t goid;
	uint32_t claim, truth;
};

static int by_goid_claim(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->goid != y->goid)
		return x->goid < y->goid ? -1 : 1;
	return (x->claim > y->claim) - (x->claim < y->claim);
}

static int by_goid_truth(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->goid != y->goid)
		return x->goid < y->goid ? -1 : 1;
	return (x->truth > y->truth) - (x->truth < y->truth);
}

/* H / log2(K) of the claims in s[cnt], sorted by them: 0 one for all, 1 each another. */
static double entropy(const struct seen *s, size_t cnt)
{
	double h = 0;
	size_t kinds = 0;

	for (size_t i = 0, next; i < cnt; i = next, kinds++) {
		double p;

		for (next = i; next < cnt && s[next].claim == s[i].claim;)
			next++;
		p = (double)(next - i) / (double)cnt;
		h -= p * log2(p);
	}
	return kinds > 1 ? h / log2((double)kinds) : 0;
}

struct judged {
	double entropy;
	bool shared; /* in truth: works for many */
};

#define LINES_LEAST 2 /* of a goroutine that is judged */

static int by_entropy(const void *a, const void *b)
{
	const struct judged *x = a, *y = b;

	return (x->entropy > y->entropy) - (x->entropy < y->entropy);
}

/* Share of pairs (shared, not shared) that entropy puts in the right order, equal ones half; -1: no
 * such pair. */
static double auc(struct judged *v, size_t cnt, struct eval_mode_result *ret)
{
	double won = 0;

	if (cnt)
		qsort(v, cnt, sizeof(*v), by_entropy);
	for (size_t i = 0, next; i < cnt; i = next) {
		uint64_t shared = 0, single = 0;

		for (next = i; next < cnt && v[next].entropy <= v[i].entropy; next++) {
			shared += v[next].shared;
			single += !v[next].shared;
		}
		won += (double)shared * ((double)ret->single + (double)single / 2);
		ret->shared += shared;
		ret->single += single;
	}
	return ret->shared && ret->single ? won / ((double)ret->shared * (double)ret->single) : -1;
}

static int judge_goroutines(const struct eval_log *l, const struct eval_claim *claims,
			    struct eval_mode_result *ret)
{
	struct seen *s = calloc(l->cnt + 1, sizeof(*s));
	struct judged *v = calloc(l->cnt + 1, sizeof(*v));
	size_t cnt = 0, judged = 0;

	if (!s || !v) {
		free(s);
		free(v);
		return -ENOMEM;
	}
	for (size_t i = 0; i < l->cnt; i++)
		if (claims[i].asked && l->v[i].mech != EVAL_NONE)
			s[cnt++] = (struct seen){ l->v[i].goid, claims[i].token, l->v[i].token };
	qsort(s, cnt, sizeof(*s), by_goid_truth);
	for (size_t i = 0, next; i < cnt; i = next) {
		bool shared;

		for (next = i; next < cnt && s[next].goid == s[i].goid;)
			next++;
		shared = s[i].truth != s[next - 1].truth;
		if (next - i < LINES_LEAST)
			continue;
		qsort(s + i, next - i, sizeof(*s), by_goid_claim);
		v[judged++] = (struct judged){ entropy(s + i, next - i), shared };
	}
	ret->entropy_auc = auc(v, judged, ret);
	free(s);
	free(v);
	return 0;
}

int eval_score_claims(const struct eval_log *l, const struct eval_claim *claims,
		      struct eval_mode_result *ret)
{
	*ret = (struct eval_mode_result){ 0 };
	for (size_t i = 0; i < l->cnt; i++) {
		const struct eval_fact *f = &l->v[i];
		const struct eval_claim *c = &claims[i];
		struct eval_bucket *b = &ret->by_confidence[CC_MIN(c->confidence, 100)];

		if (!c->asked || f->mech == EVAL_NONE)
			continue;
		count(&ret->mech[f->mech], f, c);
		count(&ret->all, f, c);
		if (!c->token)
			continue;
		b->claims++;
		b->right += c->token == f->token;
		ret->sure_wrong += c->token != f->token && confidence_letter(c->confidence) == 'H';
	}
	return judge_goroutines(l, claims, ret);
}

/* ---- thresholds ---- */

#define RECALL_LEAST 0.95
#define JACCARD_LEAST 0.9
#define SURE_WRONG_MOST 0.001 /* of claims */

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

const char *eval_failure(const struct eval_result *r, double min_precision, char *buf, size_t cap)
{
	static const uint8_t judged[] = { EVAL_SPAWN, EVAL_CHAN, EVAL_POOL, EVAL_MUTEX };
	static const char *const names[] = {
#define X(id, name) name,
		EVAL_MECHANISMS(X)
#undef X
	};
	const struct eval_mode_result *m =
		r->traced ? &r->live[ENGINE_SERVE_FULL] : &r->alone[ENGINE_SERVE_FULL];
	const char *by = eval_mode_name(ENGINE_SERVE_FULL);

	for (size_t i = 0; i < ARRAY_SIZE(judged); i++) {
		const struct eval_score *s = &m->mech[judged[i]];

		if (!s->facts && r->traced)
			snprintf(buf, cap, "no %s in both log and trace", names[judged[i]]);
		else if (s->claimed && share(s->right, s->claimed) < min_precision)
			snprintf(buf, cap, "%s: precision of %s is %.4f, wanted %.4f",
				 names[judged[i]], by, share(s->right, s->claimed), min_precision);
		else if (s->facts && share(s->right, s->facts) < RECALL_LEAST)
			snprintf(buf, cap, "%s: recall of %s is %.4f, wanted %.2f",
				 names[judged[i]], by, share(s->right, s->facts), RECALL_LEAST);
		else
			continue;
		return buf;
	}
	if (share(m->sure_wrong, m->all.claimed) > SURE_WRONG_MOST)
		snprintf(buf, cap, "%llu of %llu answers are confident and wrong",
			 (unsigned long long)m->sure_wrong, (unsigned long long)m->all.claimed);
	else if (r->traced && r->path.inexact)
		snprintf(buf, cap, "%llu paths do not sum up", (unsigned long long)r->path.inexact);
	else if (r->traced && r->path.jaccard < JACCARD_LEAST)
		snprintf(buf, cap, "paths agree %.3f with the true ones, wanted %.1f",
			 r->path.jaccard, JACCARD_LEAST);
	else
		return NULL;
	return buf;
}
