/* SPDX-License-Identifier: Apache-2.0 */
#include "perf_map.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (32u << 20) /* the rest of a longer file is not read */
#define NAME_BYTES_MAX 255
#define READ_AGAIN CC_S(1)

struct jit_fn {
	uint64_t start, end;
	uint32_t name;  /* in text */
	uint32_t order; /* a later one replaces what it covers */
	uint32_t since; /* the generation in which it replaced one that had been asked for; or 0 */
	bool told;      /* it was asked for */
};

struct perf_map {
	uint32_t tgid;
	dev_t dev;
	ino_t ino;
	off_t read_to; /* this far the file is known */
	cc_ns next_read, next_renew;
	size_t checked; /* so many had been looked at by find_replaced(); SIZE_MAX: another file */
	char *text;
	size_t text_len, text_cap;
	struct jit_fn *v; /* by start, then order */
	size_t cnt, cap;
	uint64_t longest;
};

int perf_map_new(uint32_t tgid, struct perf_map **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->tgid = tgid;
	return 0;
}

void perf_map_free(struct perf_map *m)
{
	if (!m)
		return;
	free(m->text);
	free(m->v);
	free(m);
}

size_t perf_map_mem(const struct perf_map *m)
{
	return m ? sizeof(*m) + m->text_cap + m->cap * sizeof(*m->v) : 0;
}

static int grow(void **p, size_t *cap, size_t want, size_t size)
{
	size_t to = *cap ? *cap : 256;
	void *q;

	if (want <= *cap)
		return 0;
	while (to < want)
		to *= 2;
	q = realloc(*p, to * size);
	if (!q)
		return -ENOMEM;
	*p = q;
	*cap = to;
	return 0;
}

/* Reads a number in hex, with or without 0x, and the blanks after it. */
static bool take_hex(const char **at, const char *end, uint64_t *ret)
{
	const char *p = *at;
	uint64_t v = 0;
	unsigned int digits = 0;

	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (; p < end && isxdigit((unsigned char)*p); p++, digits++)
		v = v << 4 |
		    (uint64_t)(isdigit((unsigned char)*p) ? *p - '0' : (*p | 0x20) - 'a' + 10);
	if (!digits || digits > 16 || p == end || *p != ' ')
		return false;
	while (p < end && *p == ' ')
		p++;
	*at = p;
	*ret = v;
	return true;
}

static int add_line(struct perf_map *m, const char *at, const char *end)
{
	uint64_t start, size;
	size_t len;
	int err;

	if (!take_hex(&at, end, &start) || !take_hex(&at, end, &size) || at == end || !size ||
	    start + size < start)
		return 0; /* not a line of such a file */
	len = CC_MIN((size_t)(end - at), NAME_BYTES_MAX);
	err = grow((void **)&m->text, &m->text_cap, m->text_len + len + 1, 1);
	if (!err)
		err = grow((void **)&m->v, &m->cap, m->cnt + 1, sizeof(*m->v));
	if (err)
		return err;
	m->v[m->cnt] = (struct jit_fn){ .start = start,
					.end = start + size,
					.name = (uint32_t)m->text_len,
					.order = (uint32_t)m->cnt };
	m->cnt++;
	m->longest = CC_MAX(m->longest, size);
	memcpy(m->text + m->text_len, at, len);
	m->text[m->text_len + len] = '\0';
	m->text_len += len + 1;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct jit_fn *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int perf_map_parse(struct perf_map *m, const char *text, size_t len)
{
	const char *end = text + len;
	int err = 0;

	while (text < end && !err) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		const char *stop = nl ? nl : end;

		err = add_line(m, text, stop);
		text = nl ? nl + 1 : end;
	}
	if (m->cnt)
		qsort(m->v, m->cnt, sizeof(*m->v), by_start);
	return err;
}

/* The map of a process that may live in another mount and pid namespace, where it has another
 * number. Returns a descriptor, or -1. */
static int open_map(uint32_t tgid, struct stat *ret)
{
	char path[96], line[256];
	unsigned int ns_tgid = tgid;
	struct stat proc;
	FILE *f;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/status", tgid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *last = strrchr(line, '\t');

		if (!strncmp(line, "NSpid:", 6) && last)
			ns_tgid = (unsigned int)strtoul(last, NULL, 10);
	}
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%u", tgid);
	if (stat(path, &proc))
		return -1;
	snprintf(path, sizeof(path), "/proc/%u/root/tmp/perf-%u.map", tgid, ns_tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -1;
	if (fstat(fd, ret) || !S_ISREG(ret->st_mode) ||
	    (ret->st_uid != proc.st_uid && ret->st_uid != 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void forget(struct perf_map *m)
{
	m->read_to = 0;
	m->text_len = m->cnt = 0;
	m->longest = 0;
	m->checked = SIZE_MAX;
}

/* Reads what has been added. A line that is not whole yet is left for the next time. */
static void read_more(struct perf_map *m)
{
	struct stat st;
	int fd = open_map(m->tgid, &st);
	char *buf = NULL;
	ssize_t n = 0;

	if (fd < 0)
		return;
	if (m->read_to && (st.st_dev != m->dev || st.st_ino != m->ino || st.st_size < m->read_to))
		forget(m);
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	off_t want = CC_MIN(st.st_size, (off_t)FILE_BYTES_MAX) - m->read_to;

	if (want > 0)
		buf = malloc((size_t)want);
	if (buf)
		n = pread(fd, buf, (size_t)want, m->read_to);
	close(fd);
	while (n > 0 && buf[n - 1] != '\n')
		n--;
	if (n > 0 && !perf_map_parse(m, buf, (size_t)n))
		m->read_to += n;
	free(buf);
}

static struct jit_fn *covering(const struct perf_map *m, uint64_t addr)
{
	struct jit_fn *best = NULL;
	size_t lo = 0, hi = m->cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->v[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = lo; i && addr - m->v[i - 1].start < m->longest && lo - i < 4096; i--) {
		struct jit_fn *f = &m->v[i - 1];

		if (addr < f->end && (!best || f->order > best->order))
			best = f;
	}
	return best;
}

/* Is @old, which was asked for, other code by now? Then that has been so since @gen. */
static bool is_replaced(struct perf_map *m, struct jit_fn *old, uint32_t gen)
{
	const uint64_t at[] = { old->start, old->end - 1 };

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		struct jit_fn *f = covering(m, at[i]);

		if (f && f->order > old->order &&
		    strcmp(m->text + f->name, m->text + old->name) != 0) {
			f->since = gen;
			old->told = false; /* it is no more */
			return true;
		}
	}
	return false;
}

bool perf_map_renew(struct perf_map *m, cc_ns now, uint32_t gen)
{
	bool any = false, other_file;

	if (now < m->next_renew)
		return false;
	m->next_renew = now + READ_AGAIN;
	read_more(m);
	other_file = m->checked == SIZE_MAX;
	if (m->checked == m->cnt)
		return false;
	m->checked = m->cnt;
	for (size_t i = 0; i < m->cnt; i++) {
		struct jit_fn *f = &m->v[i];

		if (other_file)
			f->since = gen;
		else if (f->told && is_replaced(m, f, gen))
			any = true;
	}
	return any || other_file;
}

uint32_t perf_map_since(const struct perf_map *m, uint64_t addr)
{
	const struct jit_fn *f = covering(m, addr);

	return f ? f->since : 0;
}

int perf_map_find(struct perf_map *m, uint64_t addr, cc_ns now, const char **ret_name,
		  uint64_t *ret_off)
{
	struct jit_fn *f = covering(m, addr);

	if (!f && now >= m->next_read) {
		m->next_read = now + READ_AGAIN;
		read_more(m);
		f = covering(m, addr);
	}
	if (!f)
		return -ENOENT;
	f->told = true;
	*ret_name = m->text + f->name;
	*ret_off = addr - f->start;
	return 0;
}
