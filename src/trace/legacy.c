/* SPDX-License-Identifier: Apache-2.0 */
#include "legacy.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "input.h"
#include "map.h"
#include "note.h"

#define LINE_MAX_BYTES (64u << 20)   /* a stacks section is one line */
#define EXACT_MAX 9007199254740992.0 /* 2^53: cJSON's numbers are doubles */

enum { OLD_BLOCK_END = 1 };                              /* Type */
enum { OLD_DISK = 5, OLD_RUNQ = 6, OLD_CLASS_CNT = 14 }; /* WaitClass */
enum { ARCH_X86_64 = 62 }; /* EM_X86_64: whose syscall numbers stand for the classes */

struct old_event {
	uint64_t ts, blocked;
	uint64_t stack, waker_stack; /* 0: none */
	uint32_t task, waker;
	uint32_t cls, line;
};

struct legacy {
	struct mem mem;
	VEC(uint8_t) bytes; /* records, one after another */
	size_t at;
	VEC(struct old_event) events;
	struct map seq; /* task -> episodes so far */
	uint32_t tgid, version;
	uint64_t ktime_base, wall_base; /* ns; 0: not told */
	uint64_t other, bad;            /* events that are not used, or make no sense */
	char damage[96];
};

bool legacy_is(const void *bytes, size_t len)
{
	const char *p = bytes;

	while (len && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
		p++, len--;
	return len && *p == '{';
}

void legacy_free(struct legacy *l)
{
	if (!l)
		return;
	vec_done(&l->mem, &l->bytes);
	vec_done(&l->mem, &l->events);
	map_done(&l->mem, &l->seq);
	free(l);
}

const char *legacy_damage(const struct legacy *l) { return l->damage[0] ? l->damage : NULL; }

const struct cc_rec *legacy_next(struct legacy *l)
{
	if (l->at >= l->bytes.cnt)
		return NULL;
	const struct cc_rec *r = (const struct cc_rec *)(l->bytes.p + l->at);

	l->at += r->size;
	return r;
}

/* ---- JSON ---- */

/* A whole number, 0 when the key is not there; *bad is set for anything else. */
static uint64_t get_u64(const cJSON *o, const char *key, uint64_t max, bool *bad)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

	if (!v || cJSON_IsNull(v))
		return 0;
	if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= EXACT_MAX) ||
	    (double)(uint64_t)v->valuedouble != v->valuedouble || (uint64_t)v->valuedouble > max) {
		*bad = true;
		return 0;
	}
	return (uint64_t)v->valuedouble;
}

/* "2024-05-01T12:00:00.123456789Z" as ns; 0 when it is not one. */
static uint64_t get_utc(const cJSON *o, const char *key)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
	struct tm tm = { 0 };
	const char *rest = s ? strptime(s, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	time_t sec = rest ? timegm(&tm) : -1;
	uint64_t unit = CC_S(1), fraction = 0;

	if (sec < 0)
		return 0;
	for (rest += *rest == '.'; *rest >= '0' && *rest <= '9' && unit > 1; rest++) {
		unit /= 10;
		fraction += unit * (uint64_t)(*rest - '0');
	}
	return CC_S(sec) + fraction;
}

static int read_header(struct legacy *l, const cJSON *o)
{
	bool bad = false;

	l->version = (uint32_t)get_u64(o, "version", 2, &bad);
	l->tgid = (uint32_t)get_u64(o, "tgid", UINT32_MAX, &bad);
	l->ktime_base = get_u64(o, "ktime_base_ns", UINT64_MAX, &bad);
	l->wall_base = get_utc(o, "wall_base_utc");
	return bad || !l->version ? -EBADMSG : 0;
}

static int read_event(struct legacy *l, const cJSON *o, uint32_t line)
{
	bool bad = false;
	uint64_t type = get_u64(o, "Type", UINT32_MAX, &bad);
	uint64_t goid = get_u64(o, "TaskID", UINT32_MAX, &bad);
	uint64_t waker_goid = get_u64(o, "WakerTaskID", UINT32_MAX, &bad);
	struct old_event e = {
		.ts = get_u64(o, "TsNs", UINT64_MAX, &bad),
		.blocked = get_u64(o, "BlockedNs", UINT64_MAX, &bad),
		.stack = get_u64(o, "StackID", UINT64_MAX, &(bool){ false }), /* < 0: none */
		.waker_stack = get_u64(o, "WakerStackID", UINT64_MAX, &(bool){ false }),
		.task = (uint32_t)get_u64(o, "Tid", UINT32_MAX, &bad),
		.waker = (uint32_t)get_u64(o, "WakerTid", UINT32_MAX, &bad),
		.cls = (uint32_t)get_u64(o, "WaitClass", UINT32_MAX, &bad),
		.line = line,
	};

	if (goid)
		e.task = (uint32_t)goid;
	if (waker_goid)
		e.waker = (uint32_t)waker_goid;
	if (type != OLD_BLOCK_END && !bad) {
		l->other++;
		return 0;
	}
	if (bad || !e.task || !e.ts || e.blocked > e.ts) {
		l->bad++;
		return 0;
	}
	if (vec_reserve(&l->mem, &l->events, l->events.cnt + 1))
		return -ENOMEM;
	l->events.p[l->events.cnt++] = e;
	return 0;
}

/* ---- records ---- */

static int put(struct legacy *l, const void *rec, size_t size)
{
	if (vec_reserve(&l->mem, &l->bytes, l->bytes.cnt + size))
		return -ENOMEM;
	memcpy(l->bytes.p + l->bytes.cnt, rec, size);
	l->bytes.cnt += (uint32_t)size;
	return 0;
}

static struct cc_rec head(unsigned int kind, unsigned int aux, size_t size, uint64_t ts)
{
	return (struct cc_rec){ .size = (uint16_t)size,
				.kind = (uint8_t)kind,
				.aux = (uint16_t)aux,
				.cpu = UINT16_MAX,
				.ts = ts };
}

static int put_option(struct legacy *l, unsigned int option, uint64_t value)
{
	struct cc_rec_counter r = { .h = head(CC_REC_OPTION, option, sizeof(r), 0),
				    .value = value };

	return put(l, &r, sizeof(r));
}

static int put_note(struct legacy *l, const char *text)
{
	union note note;
	const struct cc_rec *rec = note_make(&note, text, 0);

	return put(l, rec, rec->size);
}

/* Stack ids of the file are small numbers: keys must not be 0 nor clash with other streams'. */
static uint64_t stack_key(uint64_t id) { return id ? map_mix(id) | 1 : 0; }

static int put_stacks(struct legacy *l, const cJSON *stacks)
{
	const cJSON *s, *pc;
	int err;

	cJSON_ArrayForEach(s, stacks)
	{
		struct cc_rec_stack r = { .tgid = l->tgid };
		uint64_t ip[CC_STACK_MAX];
		size_t cnt = 0;

		cJSON_ArrayForEach(pc, s)
		{
			if (cnt < CC_STACK_MAX && cJSON_IsNumber(pc) && pc->valuedouble > 0 &&
			    pc->valuedouble < 18446744073709551616.0)
				ip[cnt++] = (uint64_t)pc->valuedouble;
		}
		r.key = stack_key(s->string ? strtoull(s->string, NULL, 10) : 0);
		r.h = head(CC_REC_STACK, (unsigned int)cnt, sizeof(r) + 8 * cnt, 0);
		if (!r.key || !cnt)
			continue;
		err = put(l, &r, sizeof(r));
		if (!err)
			err = put(l, ip, 8 * cnt);
		if (err)
			return err;
	}
	return 0;
}

static int put_event(struct legacy *l, const struct old_event *e)
{
	/* futex, epoll_wait, io_uring_enter, recvfrom, (disk), (run queue), nanosleep; -2: not
	 * known */
	static const int16_t syscalls[OLD_CLASS_CNT] = { -2, 202, 232, 426, 45, -2, -1,
							 35, -2,  -2,  -2,  -2, -2, -2 };
	unsigned int nr = (uint16_t)(e->cls < OLD_CLASS_CNT ? syscalls[e->cls] : -2);
	uint32_t seq = map_get(&l->seq, e->task) + 1;
	struct cc_rec_episode r = { .h = head(CC_REC_EPISODE, nr, sizeof(r), e->ts),
				    .tid = e->task,
				    .seq = seq,
				    .out = e->ts - e->blocked,
				    .wake = e->waker ? e->ts : 0,
				    .state = e->cls == OLD_DISK ? 2 : 1,
				    .waker_tid = e->waker,
				    .waker_tgid = e->waker ? l->tgid : 0 };
	struct cc_rec_extra x = { .h = head(CC_REC_EXTRA, nr, sizeof(x), e->ts),
				  .tid = e->task,
				  .seq = seq,
				  .ustack = stack_key(e->stack),
				  .waker_ustack = stack_key(e->waker_stack),
				  .fd = -1 };

	if (e->cls == OLD_RUNQ) {
		r.h.flags = CC_EP_PREEMPT;
		r.state = 0;
		r.wake = r.waker_tid = r.waker_tgid = 0;
	}
	if (map_put(&l->mem, &l->seq, e->task, seq))
		return -ENOMEM;
	int err = put(l, &r, sizeof(r));

	return err || !(x.ustack || x.waker_ustack) ? err : put(l, &x, sizeof(x));
}

static int by_time(const void *pa, const void *pb)
{
	const struct old_event *a = pa, *b = pb;

	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

static int put_all(struct legacy *l, const cJSON *stacks)
{
	struct cc_rec_target t = { .h = head(CC_REC_TARGET, 0, sizeof(t), 0), .tgid = l->tgid };
	char note[160];
	int err = put_option(l, CC_OPT_IMPORTED, 1);

	snprintf(
		note, sizeof(note),
		"read from a version %u file: %u waits; %llu other events not used, %llu malformed",
		l->version, l->events.cnt, (unsigned long long)l->other,
		(unsigned long long)l->bad);
	if (!err)
		err = put_option(l, CC_OPT_ARCH, ARCH_X86_64);
	if (!err && l->tgid)
		err = put(l, &t, sizeof(t));
	if (!err)
		err = put_note(l, note);
	if (!err && l->damage[0])
		err = put_note(l, l->damage);
	if (!err)
		err = put_stacks(l, stacks);
	if (l->events.cnt)
		qsort(l->events.p, l->events.cnt, sizeof(*l->events.p), by_time);
	for (uint32_t i = 0; i < l->events.cnt && !err; i++)
		err = put_event(l, &l->events.p[i]);
	if (err || !l->events.cnt)
		return err;
	uint64_t last = l->events.p[l->events.cnt - 1].ts;
	struct cc_rec_tick tick = { .h = head(CC_REC_TICK, 0, sizeof(tick), last),
				    .drained_to = last };

	tick.h.flags = 1;
	if (l->wall_base)
		tick.realtime_ns = l->wall_base + (last - l->ktime_base);
	return put(l, &tick, sizeof(tick));
}

/* ---- the file ---- */

/* One line without its end into *buf. Returns its length; -1 at the end, -EMSGSIZE, -ENOMEM. */
static ssize_t read_line(FILE *f, char **buf, size_t *cap)
{
	size_t len = 0;
	int c;

	while ((c = getc_unlocked(f)) != EOF && c != '\n') {
		if (len + 1 >= *cap) {
			size_t more = *cap ? 2 * *cap : 4096;
			char *q = more <= LINE_MAX_BYTES ? realloc(*buf, more) : NULL;

			if (!q)
				return more <= LINE_MAX_BYTES ? -ENOMEM : -EMSGSIZE;
			*buf = q;
			*cap = more;
		}
		(*buf)[len++] = (char)c;
	}
	return c == EOF && !len ? -1 : (ssize_t)len;
}

static int take_line(struct legacy *l, const cJSON *o, uint32_t line, cJSON **stacks)
{
	if (line == 1)
		return read_header(l, o);
	if (!cJSON_GetObjectItemCaseSensitive(o, "_section"))
		return read_event(l, o, line);
	cJSON *s = cJSON_DetachItemFromObjectCaseSensitive((cJSON *)o, "stacks");

	if (s) {
		cJSON_Delete(*stacks);
		*stacks = s;
	}
	return 0;
}

static int read_lines(struct legacy *l, FILE *f, cJSON **stacks)
{
	char *buf = NULL;
	size_t cap = 0;
	ssize_t n;
	int err = 0;

	for (uint32_t line = 1; !err && (n = read_line(f, &buf, &cap)) != -1; line++) {
		cJSON *o = n > 0 ? cJSON_ParseWithLength(buf, (size_t)n) : NULL;

		if (n == 0 && line > 1)
			continue;
		if (n == -ENOMEM)
			err = -ENOMEM;
		else if (!o && line == 1)
			err = -EBADMSG;
		else if (!o)
			snprintf(l->damage, sizeof(l->damage),
				 "line %u cannot be read (cut off?); all before it is shown", line);
		else
			err = take_line(l, o, line, stacks);
		cJSON_Delete(o);
		if (l->damage[0])
			break;
	}
	free(buf);
	return err;
}

int legacy_open_fd(int fd, const char *path, struct cc_err *err, struct legacy **ret)
{
	struct legacy *l = calloc(1, sizeof(*l));
	FILE *f = fdopen(fd, "r");
	cJSON *stacks = NULL;
	int code;

	if (!f)
		close(fd);
	if (!l || !f)
		code = -ENOMEM;
	else
		code = fseek(f, 0, SEEK_SET) ? -errno : read_lines(l, f, &stacks);
	if (!code)
		code = put_all(l, stacks);
	cJSON_Delete(stacks);
	if (f)
		fclose(f);
	if (code) {
		legacy_free(l);
		return input_fail(err, code, path,
				  code == -EBADMSG ? "not a .criticast recording, of any version"
						   : strerror(-code));
	}
	*ret = l;
	return 0;
}

int legacy_open(const char *path, struct cc_err *err, struct legacy **ret)
{
	int fd, code = input_open(path, err, &fd);

	return code ? code : legacy_open_fd(fd, path, err, ret);
}
