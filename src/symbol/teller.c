/* SPDX-License-Identifier: Apache-2.0 */
#include "go_lines.h"
#include "teller_int.h"
#include "unwinder.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NAMED_MAX (1u << 18) /* 4 MiB at most */
#define PLACE_MAX (2 * PLACE_TEXT_MAX)

int teller_init(struct teller *t, struct file_cache *files, const char *kallsyms, bool names)
{
	*t = (struct teller){ .files = files, .names = names };
	keyset_init(&t->named, NAMED_MAX);
	if (names && places_new(&t->places))
		t->places = NULL; /* the symbol tables' names do without it */
	t->kernel_err = kallsyms_new(kallsyms, &t->kernel);
	return t->kernel_err == -ENOMEM ? -ENOMEM : 0;
}

void teller_done(struct teller *t)
{
	places_free(t->places);
	kallsyms_free(t->kernel);
	keyset_done(&t->named);
}

int tell_record(struct teller *t, const struct cc_rec *rec, size_t len)
{
	int err = t->out(t->ctx, rec, len);

	return err < 0 ? err : 0;
}

static uint64_t told_key(int what, uint64_t a, uint64_t b)
{
	uint64_t key = hash_add(hash_add((uint64_t)what, a), b);

	return key ? key : 1;
}

int tell_first_time(struct teller *t, int what, uint64_t a, uint64_t b)
{
	return keyset_add(&t->named, told_key(what, a, b));
}

bool tell_was_told(const struct teller *t, int what, uint64_t a, uint64_t b)
{
	return keyset_has(&t->named, told_key(what, a, b));
}

int tell_name(struct teller *t, uint16_t what, uint64_t id, uint64_t id2, uint32_t tgid,
	      const char *text, size_t len, const char *place, size_t place_len)
{
	union {
		char room[sizeof(struct cc_rec_name) + PATH_MAX + GO_LINES_MAX + 8];
		struct cc_rec_name n;
	} r = { { 0 } };
	size_t size;

	len = CC_MIN(len, PATH_MAX);
	place_len = CC_MIN(place_len, GO_LINES_MAX);
	size = (sizeof(r.n) + len + place_len + 7) / 8 * 8;
	r.n.h = (struct cc_rec){
		.size = (uint16_t)size, .kind = CC_REC_NAME, .cpu = 0xffff, .aux = what, .ts = t->ts
	};
	r.n.id = id;
	r.n.id2 = id2;
	r.n.tgid = tgid;
	r.n.len[0] = (uint16_t)len;
	r.n.len[1] = (uint16_t)place_len;
	memcpy(r.n.text, text, len);
	memcpy(r.n.text + len, place, place_len);
	t->name_cnt++;
	return tell_record(t, &r.n.h, size);
}

int tell_module(struct teller *t, const struct cc_rec_module *m, const char *path, uint32_t gen)
{
	union {
		char room[sizeof(struct cc_rec_module) + PATH_MAX + sizeof(__u64)];
		struct cc_rec_module m;
	} r = { { 0 } };
	size_t len = strnlen(path, PATH_MAX - 8), size = (sizeof(r.m) + len + 7) / 8 * 8;
	__u64 since = gen;

	r.m = *m;
	r.m.h = (struct cc_rec){
		.size = (uint16_t)size, .kind = CC_REC_MODULE, .cpu = 0xffff, .ts = t->ts
	};
	r.m.path_len = (uint32_t)len;
	memcpy(r.m.path, path, len);
	if (since) {
		memcpy(r.room + size, &since, sizeof(since));
		r.m.h.size = (uint16_t)(size += sizeof(since));
	}
	t->module_cnt++;
	return tell_record(t, &r.m.h, size);
}

static int tell_mapping(struct teller *t, struct proc *proc, struct maps *maps, struct mapping *p)
{
	struct elf_file *f = maps_file(maps, p, t->files);
	struct cc_rec_module m = {
		.start = p->start,
		.end = p->end,
		.file_off = p->off,
		.tgid = proc->tgid,
		.ino = p->ino,
		.dev = p->dev,
	};

	p->told = true;
	if (f && f->build_id_len) {
		m.build_id_len = f->build_id_len;
		memcpy(m.build_id, f->build_id, f->build_id_len);
	}
	return tell_module(t, &m, maps_path(maps, p), p->since);
}

/* Where @ip of @p is linked; @back: 1 if it is a return address, which belongs to the call before
 * it. NULL: its file cannot be read. */
static struct elf_file *code_file(struct teller *t, struct maps *m, struct mapping *p, uint64_t ip,
				  unsigned int back, uint64_t *ret_vaddr)
{
	struct elf_file *f = maps_file(m, p, t->files);

	return f && !maps_vaddr(p, f, ip - back, ret_vaddr) ? f : NULL;
}

/* @back: 1 if @ip is a return address, which belongs to the call before it. */
static int tell_user_frame(struct teller *t, struct proc *proc, struct maps *m, struct mapping *p,
			   uint64_t ip, unsigned int back)
{
	char name[NAME_MAX_], text[NAME_MAX_ + 32];
	uint64_t vaddr, off;
	struct elf_file *f = code_file(t, m, p, ip, back, &vaddr);
	struct go_lines lines;
	const char *base;
	size_t base_len;
	bool named;
	int len;

	if (!f)
		return 0;
	base = maps_base_name(m, p, &base_len);
	base_len = CC_MIN(base_len, NAME_MAX_ - 1);
	if (go_lines_at(f, vaddr, back, base, base_len, &lines))
		return tell_name(t, CC_NAME_FRAME, ip, p->since, proc->tgid, lines.text, lines.len,
				 lines.place, lines.place_len);
	named = !elf_file_name(f, vaddr, false, name, sizeof(name), &off);
	if (t->places)
		places_ask(t->places, f, proc->tgid, p->since, ip, vaddr + back, back, named);
	if (!named && back && frame_interrupts(m, t->files, ip)) /* as gdb has it */
		len = snprintf(text, sizeof(text), "<signal handler called>");
	else if (named)
		len = snprintf(text, sizeof(text), "%s+0x%" PRIx64, name, off + back);
	else
		len = snprintf(text, sizeof(text), "%.*s+0x%" PRIx64, (int)base_len, base,
			       vaddr + back);
	return tell_name(t, CC_NAME_FRAME, ip, p->since, proc->tgid, text, (size_t)len, base,
			 base_len);
}

/* Code without a file: of a JIT compiler that writes down where it put what. Returns 1 if it is not
 * known yet. */
static int tell_jit_frame(struct teller *t, struct proc *proc, const struct mapping *p, uint64_t ip,
			  unsigned int back)
{
	char text[NAME_MAX_ + 32];
	const char *name;
	uint64_t off;
	int len;

	if (procs_jit(proc, ip - back, &name, &off))
		return 1;
	len = snprintf(text, sizeof(text), "%.*s+0x%" PRIx64, NAME_MAX_, name, off + back);
	return tell_name(t, CC_NAME_FRAME, ip, procs_since(proc, p, ip - back), proc->tgid, text,
			 (size_t)len, "[jit]", 5);
}

/* Names a frame for the first time, or again if it is not known yet. */
static int tell_frame_once(struct teller *t, struct proc *proc, struct maps *m, uint64_t ip,
			   unsigned int back)
{
	struct mapping *p = maps_find(m, ip - back);
	bool jit = p && !p->ino && p->exec && *maps_path(m, p) != '[';
	uint64_t id;
	int err;

	if (!p)
		return 0;
	id = (uint64_t)procs_since(proc, p, ip - back) << 32 | proc->tgid;
	if (tell_was_told(t, TOLD_FRAME, id, ip))
		return 0;
	if (jit && t->names) {
		err = tell_jit_frame(t, proc, p, ip, back);
		if (err)
			return err < 0 ? err : 0;
	}
	err = tell_first_time(t, TOLD_FRAME, id, ip);
	if (err < 0)
		return err;
	err = p->told ? 0 : tell_mapping(t, proc, m, p);
	return err || jit || !t->names ? err : tell_user_frame(t, proc, m, p, ip, back);
}

int tell_user_frames(struct teller *t, struct proc *proc, struct maps *m, const __u64 *ip,
		     size_t cnt)
{
	bool exact = true;
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		err = tell_frame_once(t, proc, m, ip[i], !exact);
		exact = i > 0 && frame_interrupts(m, t->files, ip[i]);
	}
	return err;
}

/* The lines of @a, with the function itself as it was told before if it has a name. */
static int tell_place(struct teller *t, struct maps *m, const struct place *a, struct mapping *p)
{
	char text[PLACE_TEXT_MAX + NAME_MAX_ + 32], place[PLACE_MAX], name[NAME_MAX_];
	const char *line = a->file, *base;
	size_t base_len, len = 0;
	uint64_t vaddr, off;
	struct elf_file *f;

	snprintf(text, sizeof(text), "%s", a->text);
	if (a->named) {
		f = code_file(t, m, p, a->ip, a->back, &vaddr);
		if (!f || elf_file_name(f, vaddr, false, name, sizeof(name), &off))
			return 0;
		snprintf(text, sizeof(text), "%s%s+0x%" PRIx64, a->text, name, off + a->back);
	}
	base = maps_base_name(m, p, &base_len);
	for (;;) { /* "app cart.c:88" for each line */
		size_t n = strcspn(line, "\n");

		len += (size_t)snprintf(place + len, sizeof(place) - len, "%.*s%s%.*s",
					(int)CC_MIN(base_len, 64), base, n ? " " : "", (int)n,
					line);
		line += n;
		if (!*line || len + 128 > sizeof(place))
			break;
		place[len++] = *line++;
	}
	return tell_name(t, CC_NAME_FRAME, a->ip, a->since, a->tgid, text, strlen(text), place,
			 CC_MIN(len, sizeof(place) - 1));
}

int tell_places(struct teller *t, struct procs *procs, int wait_ms)
{
	struct place a;
	int err = 0;

	if (t->places && wait_ms)
		places_wait(t->places, wait_ms);
	while (t->places && !err && places_take(t->places, &a)) {
		struct maps *m;
		struct mapping *p = procs_mapping(procs, a.tgid, a.ip - a.back, a.since, &m);

		err = p ? tell_place(t, m, &a, p) : 0;
	}
	return err;
}
