/* SPDX-License-Identifier: Apache-2.0 */
#include "csv.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "digest.h"
#include "snap_text.h"

struct row {
	FILE *out;
	bool more; /* something stands before in this line: a comma is due */
};

static void comma(struct row *r)
{
	if (r->more)
		fputc(',', r->out);
	r->more = true;
}

static void cell_u64(struct row *r, uint64_t v)
{
	comma(r);
	fprintf(r->out, "%" PRIu64, v);
}

static void cell(struct row *r, const char *text)
{
	comma(r);
	bool formula = *text && strchr("=+-@", *text);

	if (!formula && !strpbrk(text, ",\"\r\n")) {
		fputs(text, r->out);
		return;
	}
	fputc('"', r->out);
	if (formula)
		fputc('\'', r->out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', r->out);
		fputc(*text, r->out);
	}
	fputc('"', r->out);
}

static void end_row(struct row *r)
{
	fputs("\r\n", r->out);
	r->more = false;
}

/* "": no such task. */
static void cell_task(struct row *r, const struct snapshot *s, const struct snap_task *t)
{
	cell(r, t->tid || t->goid ? snap_task_text(s, t).s : "");
}

static void cell_str(struct row *r, const struct snapshot *s, cc_str str)
{
	cell(r, snapshot_str(s, str));
}

static void put_piece(struct row *r, const struct snapshot *s, const struct snap_request *q,
		      uint32_t i)
{
	const struct snap_piece *p = &s->pieces[q->first_piece + i];
	bool waker = *snap_waker_name(p->p.waker_kind);

	cell_str(r, s, q->id_text);
	cell_u64(r, i);
	cell_u64(r, p->p.depth);
	cell_u64(r, p->p.flags & CC_PC_NESTED ? 0 : 1);
	cell_u64(r, p->p.start);
	cell_u64(r, p->p.end);
	cell_u64(r, piece_ns(&p->p));
	cell(r, wait_class_json(p->p.cls));
	cell_task(r, s, &p->task);
	cell_u64(r, p->task.tid);
	cell_u64(r, p->task.tgid);
	cell_u64(r, p->task.goid);
	cell_str(r, s, p->site);
	cell_str(r, s, p->resource);
	cell(r, waker ? snap_waker_text(s, p).s : "");
	cell(r, snap_waker_name(p->p.waker_kind));
	cell_str(r, s, p->waker_site);
	cell_task(r, s, &p->holder);
	cell_task(r, s, &p->occupant);
	cell_str(r, s, p->for_request);
	cell_str(r, s, p->by_request);
	cell(r, snap_ended_name(p->p.ended));
	cell_u64(r, p->p.flags & CC_PC_OPEN ? 1 : 0);
	cell_u64(r, p->p.confidence);
	end_row(r);
}

int csv_write(const struct snapshot *s, FILE *out)
{
	struct row r = { .out = out };

	fputs("request,piece,depth,leaf,start_ns,end_ns,ns,class,task,tid,pid,goid,site,resource,"
	      "waker,waker_kind,waker_site,holder,occupant,for_request,by_request,ended,open,"
	      "confidence\r\n",
	      out);
	for (uint32_t i = 0; i < s->request_cnt; i++) {
		for (uint32_t k = 0; k < s->requests[i].piece_cnt; k++)
			put_piece(&r, s, &s->requests[i], k);
	}
	return ferror(out) ? -EIO : 0;
}

static void put_wait(struct row *r, const struct snapshot *s, const struct snap_dominant *d)
{
	cell(r, wait_class_json(d->cls));
	cell_u64(r, d->ns);
	cell_str(r, s, d->site);
	cell_str(r, s, d->resource);
}

static void put_request(struct row *r, const struct snapshot *s, const struct snap_request *q)
{
	cell_str(r, s, q->id_text);
	cell(r, snap_state_name(q->state));
	cell_str(r, s, q->peer);
	cell_u64(r, q->rec.local_port);
	cell_task(r, s, &q->task);
	cell_u64(r, q->start);
	cell_u64(r, q->end);
	cell_u64(r, q->start + (uint64_t)s->realtime_off_ns);
	cell_u64(r, q->latency_ns);
	cell_u64(r, q->path_sum_ns);
	cell_u64(r, q->unexplained_ns);
	cell_u64(r, q->ambiguous_ns);
	cell_u64(r, q->rec.bytes_in);
	cell_u64(r, q->rec.bytes_out);
	cell_u64(r, q->confidence);
	put_wait(r, s, &q->dominant);
	put_wait(r, s, &q->root);
	cell_task(r, s, &q->waker);
	cell_task(r, s, &q->holder);
	cell_str(r, s, q->verdict);
	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++)
		cell_u64(r, q->class_ns[c]);
	end_row(r);
}

int csv_requests_write(const struct snapshot *s, FILE *out)
{
	struct row r = { .out = out };

	fputs("request,state,peer,local_port,task,start_ns,end_ns,start_unix_ns,latency_ns,"
	      "path_sum_ns,unexplained_ns,ambiguous_ns,bytes_in,bytes_out,confidence,first_class,"
	      "first_ns,first_site,first_resource,root_class,root_ns,root_site,root_resource,waker,"
	      "holder,verdict",
	      out);
	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++)
		fprintf(out, ",in_%s_ns", wait_class_json(c));
	fputs("\r\n", out);
	for (uint32_t i = 0; i < s->request_cnt; i++)
		put_request(&r, s, &s->requests[i]);
	return ferror(out) ? -EIO : 0;
}
