/* SPDX-License-Identifier: Apache-2.0 */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAPPING_MAX 65536u   /* vm.max_map_count is 65530 */
#define TEXT_MAX (32u << 20) /* bytes of /proc/PID/maps */
#define MAPPING_PAGE ((uint64_t)sysconf(_SC_PAGESIZE))

void maps_init(struct maps *m, uint32_t tgid) { *m = (struct maps){ .tgid = tgid }; }

void maps_done(struct maps *m)
{
	for (size_t i = 0; i < m->cnt; i++)
		elf_file_put(m->v[i].file);
	free(m->v);
	free(m->text);
	maps_init(m, m->tgid);
}

/* Reads a number of base 16 that @stop follows; moves *p behind it. */
static bool take_hex(const char **p, const char *end, char stop, uint64_t *ret)
{
	uint64_t v = 0;
	const char *s = *p;

	for (; s < end && *s != stop; s++) {
		unsigned int d = *s >= '0' && *s <= '9'   ? (unsigned int)(*s - '0')
				 : *s >= 'a' && *s <= 'f' ? (unsigned int)(*s - 'a') + 10
							  : 16;
		if (d > 15 || s - *p >= 16)
			return false;
		v = v << 4 | d;
	}
	if (s == end || s == *p)
		return false;
	*p = s + 1;
	*ret = v;
	return true;
}

/* One line, without its newline: "start-end perms off major:minor inode   path". */
static bool parse_line(const char *p, const char *end, struct mapping *ret, const char **ret_path)
{
	uint64_t major, minor, ino = 0;

	*ret = (struct mapping){ 0 };
	if (!take_hex(&p, end, '-', &ret->start) || !take_hex(&p, end, ' ', &ret->end) ||
	    end - p < 5)
		return false;
	ret->write = p[1] == 'w';
	ret->exec = p[2] == 'x';
	p += 5;
	if (!take_hex(&p, end, ' ', &ret->off) || !take_hex(&p, end, ':', &major) ||
	    !take_hex(&p, end, ' ', &minor))
		return false;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		ino = ino * 10 + (uint64_t)(*p - '0');
	while (p < end && *p == ' ')
		p++;
	ret->ino = ino;
	ret->dev = (uint32_t)(major << 20 | minor);
	*ret_path = p;
	return ret->start < ret->end;
}

static bool same_mapping(const struct mapping *a, const struct mapping *b)
{
	return a->start == b->start && a->end == b->end && a->off == b->off && a->ino == b->ino &&
	       a->dev == b->dev && a->exec == b->exec;
}

/* One file at one place; or memory without a file, whose meaning is its owner's business. */
static bool same_thing(const struct mapping *a, const struct mapping *b)
{
	return a->ino == b->ino && a->dev == b->dev &&
	       (!a->ino || a->start - a->off == b->start - b->off);
}

/* Gives files and marks of @old to equal mappings of @m. Returns true if an old one that somebody
 * looked at has no equal. */
static bool carry_over(const struct maps *old, struct maps *m)
{
	bool changed = false;

	for (size_t i = 0, j = 0; i < old->cnt; i++) {
		const struct mapping *o = &old->v[i];

		while (j < m->cnt && m->v[j].start < o->start)
			j++;
		if (j < m->cnt && same_mapping(o, &m->v[j])) {
			m->v[j].file = o->file ? elf_file_get(o->file) : NULL;
			m->v[j].told = o->told;
			m->v[j].tried = o->tried;
		} else if (o->told || o->tried) {
			changed = true;
		}
	}
	return changed;
}

/* Since when what is in @m is there: since @gen, unless all that was there before was the same
 * thing. Returns true if something is new. */
static bool date(const struct maps *old, struct maps *m, uint32_t gen)
{
	bool fresh = false;

	for (size_t i = 0, j = 0; i < m->cnt; i++) {
		struct mapping *p = &m->v[i];
		bool same = false, other = false;

		while (j < old->cnt && old->v[j].end <= p->start)
			j++;
		for (size_t k = j; k < old->cnt && old->v[k].start < p->end; k++) {
			bool as_before = same_thing(&old->v[k], p);

			same |= as_before;
			other |= !as_before;
			p->since = CC_MAX(p->since, old->v[k].since);
		}
		if (same && !other)
			continue;
		p->since = gen;
		fresh = true;
	}
	return fresh;
}

static int parse_into(struct maps *m, const char *text, size_t len)
{
	size_t lines = 0, text_len = 0;
	uint64_t floor = 0;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	lines = CC_MIN(lines, MAPPING_MAX);
	m->v = calloc(lines + 1, sizeof(*m->v));
	m->text = malloc(len + 1);
	if (!m->v || !m->text)
		return -ENOMEM;
	for (const char *p = text, *end = text + len; p < end && m->cnt < lines;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p)), *path;
		struct mapping *v = &m->v[m->cnt];

		if (!nl)
			break;
		if (parse_line(p, nl, v, &path) && v->start >= floor) {
			v->path = (uint32_t)text_len;
			memcpy(m->text + text_len, path, (size_t)(nl - path));
			text_len += (size_t)(nl - path);
			m->text[text_len++] = '\0';
			floor = v->end;
			m->cnt++;
		}
		p = nl + 1;
	}
	return 0;
}

int maps_renew_by(struct maps *m, const char *text, size_t len, struct maps_news *n)
{
	struct maps new;
	int err;

	maps_init(&n->old, m->tgid);
	maps_init(&new, m->tgid);
	if (len > TEXT_MAX)
		return -EFBIG;
	err = parse_into(&new, text, len);
	if (err) {
		maps_done(&new);
		return err;
	}
	n->changed = carry_over(m, &new);
	n->fresh = date(m, &new, n->gen);
	n->old = *m;
	*m = new;
	return 0;
}

static int forget_old(struct maps_news *n, bool *ret_changed, int err)
{
	maps_done(&n->old);
	if (!err)
		*ret_changed = n->changed;
	return err;
}

int maps_parse(struct maps *m, const char *text, size_t len, bool *ret_changed)
{
	struct maps_news n = { 0 };

	return forget_old(&n, ret_changed, maps_renew_by(m, text, len, &n));
}

static int read_all(int fd, char **ret, size_t *ret_len)
{
	size_t cap = 1 << 16, len = 0;
	char *buf = malloc(cap);

	while (buf) {
		ssize_t n = read(fd, buf + len, cap - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || (n && len + (size_t)n > TEXT_MAX)) {
			int err = n < 0 ? -errno : -EFBIG;

			free(buf);
			return err;
		}
		if (!n) {
			*ret = buf;
			*ret_len = len;
			return 0;
		}
		len += (size_t)n;
		if (len == cap) {
			char *more = realloc(buf, cap * 2);

			if (!more)
				free(buf);
			buf = more;
			cap *= 2;
		}
	}
	return -ENOMEM;
}

int maps_renew(struct maps *m, struct maps_news *n)
{
	char path[32], *text = NULL;
	size_t len = 0;
	int fd, err;

	maps_init(&n->old, m->tgid);
	snprintf(path, sizeof(path), "/proc/%u/maps", m->tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	err = read_all(fd, &text, &len);
	close(fd);
	if (err)
		return err;
	/* a process that is exiting has no mappings left, but those it had were right */
	err = len ? maps_renew_by(m, text, len, n) : -ESRCH;
	free(text);
	return err;
}

int maps_refresh(struct maps *m, bool *ret_changed)
{
	struct maps_news n = { 0 };

	return forget_old(&n, ret_changed, maps_renew(m, &n));
}

void maps_layout(const struct maps *m, struct cc_layout *ret)
{
	uint64_t id = 0, pages = 0;

	for (size_t i = 0; i < m->cnt; i++) {
		const struct mapping *p = &m->v[i];

		if (!p->exec)
			continue;
		id = hash_add(hash_add(hash_add(id, p->start), p->end), p->off);
		id = hash_add(hash_add(id, p->ino), (uint64_t)p->dev << 1 | p->write);
		/* the vsyscall page is shown to all, but is nobody's */
		if (!p->write && strcmp(maps_path(m, p), "[vsyscall]") != 0)
			pages += (p->end - p->start) / MAPPING_PAGE;
	}
	*ret = (struct cc_layout){ .id = id ? id : 1, .code_pages = pages };
}

struct mapping *maps_find(struct maps *m, uint64_t addr)
{
	size_t lo = 0, hi = m->cnt;

	if (m->last < m->cnt && addr >= m->v[m->last].start && addr < m->v[m->last].end)
		return &m->v[m->last];
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->v[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || addr >= m->v[lo - 1].end)
		return NULL;
	m->last = lo - 1;
	return &m->v[m->last];
}

const char *maps_base_name(const struct maps *m, const struct mapping *p, size_t *ret_len)
{
	static const char deleted[] = " (deleted)";
	const char *path = maps_path(m, p), *base = strrchr(path, '/');
	size_t len, cut = sizeof(deleted) - 1;

	base = base ? base + 1 : path;
	len = strlen(base);
	if (len > cut && !memcmp(base + len - cut, deleted, cut))
		len -= cut;
	*ret_len = len;
	return base;
}

int maps_vaddr(const struct mapping *p, const struct elf_file *f, uint64_t addr, uint64_t *ret)
{
	return elf_file_vaddr(f, addr - p->start + p->off, p->exec, ret);
}
