/* SPDX-License-Identifier: Apache-2.0 */
#include "eval.h"
#include "json_write.h"

static const char *const mech_names[] = {
#define X(id, name) name,
	EVAL_MECHANISMS(X)
#undef X
};

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* "0.9987", or "-" of nothing. */
static void put_share(FILE *out, uint64_t part, uint64_t whole)
{
	if (whole)
		fprintf(out, " %9.4f", share(part, whole));
	else
		fprintf(out, " %9s", "-");
}

static void put_row(FILE *out, const char *mode, const char *name, const struct eval_score *s)
{
	uint64_t wrong = s->claimed - s->right;

	fprintf(out, "  %-11s %-18s %7llu %7llu %7llu %6llu %9llu", mode, name,
		(unsigned long long)s->facts, (unsigned long long)s->claimed,
		(unsigned long long)s->right, (unsigned long long)wrong,
		(unsigned long long)s->ambiguous);
	put_share(out, s->right, s->claimed);
	put_share(out, s->right, s->facts);
	put_share(out, wrong, s->facts);
	fputc('\n', out);
}

static void put_matrix(const struct eval_result *r, const struct eval_mode_result *m, FILE *out)
{
	fprintf(out, "  %-11s %-18s %7s %7s %7s %6s %9s %9s %9s %9s\n", "mode", "mechanism",
		"facts", "claimed", "right", "wrong", "ambiguous", "precision", "recall", "false");
	for (unsigned int k = EVAL_NONE + 1; k < EVAL_MECH_CNT; k++)
		for (unsigned int i = 0; i < ENGINE_SERVE_CNT; i++)
			if (r->mode[i] && m[i].mech[k].facts)
				put_row(out, eval_mode_name((enum engine_serve)i), mech_names[k],
					&m[i].mech[k]);
	for (unsigned int i = 0; i < ENGINE_SERVE_CNT; i++)
		if (r->mode[i])
			put_row(out, eval_mode_name((enum engine_serve)i), "all", &m[i].all);
}

static void put_calibration(const struct eval_mode_result *m, FILE *out)
{
	fprintf(out, "\nconfidence said and had (%s):", eval_mode_name(ENGINE_SERVE_FULL));
	for (unsigned int c = 0; c <= 100; c++)
		if (m->by_confidence[c].claims)
			fprintf(out, "  %u: %.2f %% of %llu", c,
				100 * share(m->by_confidence[c].right, m->by_confidence[c].claims),
				(unsigned long long)m->by_confidence[c].claims);
	fprintf(out, "\nconfident and wrong: %llu of %llu\n", (unsigned long long)m->sure_wrong,
		(unsigned long long)m->all.claimed);
}

static void put_entropy(const struct eval_result *r, const struct eval_mode_result *m, FILE *out)
{
	for (unsigned int i = 0; i < ENGINE_SERVE_CNT; i++) {
		if (!r->mode[i] || m[i].entropy_auc < 0)
			continue;
		fprintf(out,
			"entropy tells goroutines that work for many (%s): AUC %.3f (%llu, %llu "
			"not)\n",
			eval_mode_name((enum engine_serve)i), m[i].entropy_auc,
			(unsigned long long)m[i].shared, (unsigned long long)m[i].single);
	}
}

void eval_report_text(const struct eval_result *r, FILE *out)
{
	fprintf(out,
		"log: %llu lines, %zu facts, %llu other lines, %llu not readable; %llu requests\n",
		(unsigned long long)r->log->lines, r->log->cnt, (unsigned long long)r->log->ignored,
		(unsigned long long)r->log->bad, (unsigned long long)r->tokens);
	fprintf(out, "\nby the log alone\n");
	put_matrix(r, r->alone, out);
	if (!r->traced) {
		put_entropy(r, r->alone, out);
		return;
	}
	fprintf(out, "\nby the trace: %llu of %llu requests are in it\n",
		(unsigned long long)r->tokens_found, (unsigned long long)r->tokens);
	put_matrix(r, r->live, out);
	if (r->mode[ENGINE_SERVE_FULL])
		put_calibration(&r->live[ENGINE_SERVE_FULL], out);
	put_entropy(r, r->live, out);
	fprintf(out,
		"paths against the true ones: Jaccard %.3f over %llu requests, %llu do not sum "
		"up\n",
		r->path.jaccard, (unsigned long long)r->path.requests,
		(unsigned long long)r->path.inexact);
}

/* ---- JSON ---- */

static void json_score(struct json *j, const char *name, const struct eval_score *s)
{
	json_open(j, NULL, '{');
	json_str(j, "mechanism", name);
	json_u64(j, "facts", s->facts);
	json_u64(j, "claimed", s->claimed);
	json_u64(j, "right", s->right);
	json_u64(j, "ambiguous", s->ambiguous);
	json_share(j, "precision", share(s->right, s->claimed));
	json_share(j, "recall", share(s->right, s->facts));
	json_share(j, "false_edge_rate", share(s->claimed - s->right, s->facts));
	json_close(j, '}');
}

static void json_mode(struct json *j, const char *name, const struct eval_mode_result *m)
{
	json_open(j, NULL, '{');
	json_str(j, "mode", name);
	json_open(j, "mechanisms", '[');
	for (unsigned int k = EVAL_NONE + 1; k < EVAL_MECH_CNT; k++)
		if (m->mech[k].facts)
			json_score(j, mech_names[k], &m->mech[k]);
	json_score(j, "all", &m->all);
	json_close(j, ']');
	if (m->entropy_auc >= 0)
		json_share(j, "entropy_auc", m->entropy_auc);
	else
		json_null(j, "entropy_auc");
	json_u64(j, "confident_wrong", m->sure_wrong);
	json_open(j, "calibration", '[');
	for (unsigned int c = 0; c <= 100; c++) {
		if (!m->by_confidence[c].claims)
			continue;
		json_open(j, NULL, '{');
		json_u64(j, "confidence", c);
		json_u64(j, "claims", m->by_confidence[c].claims);
		json_u64(j, "right", m->by_confidence[c].right);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void json_modes(struct json *j, const char *key, const struct eval_result *r,
		       const struct eval_mode_result *m)
{
	json_open(j, key, '[');
	for (unsigned int i = 0; i < ENGINE_SERVE_CNT; i++)
		if (r->mode[i])
			json_mode(j, eval_mode_name((enum engine_serve)i), &m[i]);
	json_close(j, ']');
}

void eval_report_json(const struct eval_result *r, FILE *out)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_u64(&j, "schema", 1);
	json_open(&j, "log", '{');
	json_u64(&j, "lines", r->log->lines);
	json_u64(&j, "facts", r->log->cnt);
	json_u64(&j, "other", r->log->ignored);
	json_u64(&j, "unreadable", r->log->bad);
	json_u64(&j, "requests", r->tokens);
	json_close(&j, '}');
	json_modes(&j, "log_alone", r, r->alone);
	if (r->traced) {
		json_u64(&j, "requests_traced", r->tokens_found);
		json_modes(&j, "trace", r, r->live);
		json_open(&j, "path", '{');
		json_u64(&j, "requests", r->path.requests);
		json_share(&j, "jaccard", r->path.jaccard);
		json_u64(&j, "inexact", r->path.inexact);
		json_close(&j, '}');
	}
	json_close(&j, '}');
	fputc('\n', out);
}
