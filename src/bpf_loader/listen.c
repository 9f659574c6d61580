// SPDX-License-Identifier: Apache-2.0
#include "listen.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader_int.h"

#define TCP_ST_ESTABLISHED 1
#define TCP_ST_LISTEN 10

/* A listening socket of /proc/net/tcp*. */
struct row {
	uint64_t ino;
	uint64_t netns; /* inode of its network namespace */
	uint32_t conns; /* established to its port */
	uint16_t port;
};

struct rows {
	struct row *v;
	size_t cnt, cap;
};

struct servers {
	struct listen_server *v;
	size_t cnt, cap;
	uint32_t hidden; /* processes whose descriptors may not be looked at */
};

static void dir_closep(DIR **d)
{
	if (*d)
		closedir(*d);
}

static void file_closep(FILE **f)
{
	if (*f)
		fclose(*f);
}

static int grow(void **v, size_t cnt, size_t *cap, size_t size)
{
	size_t want = *cap ? *cap * 2 : 64;
	void *p;

	if (cnt < *cap)
		return 0;
	p = reallocarray(*v, want, size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = want;
	return 0;
}

static int row_add(struct rows *r, struct row row)
{
	int err = grow((void **)&r->v, r->cnt, &r->cap, sizeof(*r->v));

	if (!err)
		r->v[r->cnt++] = row;
	return err;
}

static FILE *proc_open(uint32_t pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, file);
	return fopen(path, "re");
}

static void count_conn(struct rows *rows, uint64_t netns, unsigned int port)
{
	for (size_t i = 0; i < rows->cnt; i++)
		rows->v[i].conns += rows->v[i].netns == netns && rows->v[i].port == port;
}

/* Reads net/tcp or net/tcp6 (the listeners stand first in them); a missing one has no rows. */
static int read_table(uint32_t pid, const char *table, uint64_t netns, struct rows *rows)
{
	CC_AUTO(file_closep) FILE *f = proc_open(pid, table);
	unsigned int port, state;
	char line[512];
	uint64_t ino;
	int err = 0;

	while (f && !err && fgets(line, sizeof(line), f)) {
		/* sl local rem st tx:rx tr:when retrnsmt uid timeout inode */
		if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*u %*u %" SCNu64,
			   &port, &state, &ino) != 3 ||
		    port > UINT16_MAX)
			continue;
		if (state == TCP_ST_LISTEN && ino)
			err = row_add(rows, (struct row){ ino, netns, 0, (uint16_t)port });
		else if (state == TCP_ST_ESTABLISHED)
			count_conn(rows, netns, port);
	}
	return err;
}

/* The listeners of the network namespace @pid lives in, unless they were read already. */
static int read_netns(uint32_t pid, struct rows *seen, struct rows *rows)
{
	char path[64], link[64];
	uint64_t netns;
	ssize_t len;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	len = readlink(path, link, sizeof(link) - 1);
	if (len < 0)
		return 0; /* gone, or not ours to see */
	link[len] = '\0';
	if (sscanf(link, "net:[%" SCNu64 "]", &netns) != 1)
		return 0;
	for (size_t i = 0; i < seen->cnt; i++)
		if (seen->v[i].netns == netns)
			return 0;
	err = row_add(seen, (struct row){ .netns = netns });
	if (!err)
		err = read_table(pid, "net/tcp", netns, rows);
	if (!err)
		err = read_table(pid, "net/tcp6", netns, rows);
	return err;
}

static void read_stat(struct listen_server *s)
{
	CC_AUTO(file_closep) FILE *f = proc_open(s->pid, "stat");
	const char *begin, *end;
	char line[512];
	size_t len;

	if (!f || !fgets(line, sizeof(line), f))
		return;
	begin = strchr(line, '(');
	end = strrchr(line, ')'); /* the name may hold anything, also ")" */
	if (!begin || !end || end < begin)
		return;
	len = CC_MIN((size_t)(end - begin - 1), sizeof(s->comm) - 1);
	memcpy(s->comm, begin + 1, len);
	if (sscanf(end + 1, " %*c %u", &s->parent) != 1)
		s->parent = 0;
}

static const struct row *find_listener(const struct rows *rows, uint64_t ino)
{
	for (size_t i = 0; i < rows->cnt; i++)
		if (rows->v[i].ino == ino)
			return &rows->v[i];
	return NULL;
}

static int server_add(struct servers *out, uint32_t pid, const struct row *row)
{
	struct listen_server *s;
	int err;

	for (size_t i = out->cnt; i-- > 0 && out->v[i].pid == pid;)
		if (out->v[i].port == row->port) {
			out->v[i].conns = CC_MAX(out->v[i].conns, row->conns);
			return 0;
		}
	err = grow((void **)&out->v, out->cnt, &out->cap, sizeof(*out->v));
	if (err)
		return err;
	s = &out->v[out->cnt++];
	*s = (struct listen_server){
		.pid = pid, .port = row->port, .conns = row->conns, .netns = row->netns
	};
	read_stat(s);
	return 0;
}

/* Adds @pid for each listening socket among its descriptors. */
static int scan_fds(uint32_t pid, const struct rows *rows, struct servers *out)
{
	char path[64], link[64];
	struct dirent *de;
	uint64_t ino;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	CC_AUTO(dir_closep) DIR *d = opendir(path);
	out->hidden += !d && (errno == EACCES || errno == EPERM);
	while (d && !err && (de = readdir(d))) {
		ssize_t len = readlinkat(dirfd(d), de->d_name, link, sizeof(link) - 1);
		const struct row *row;

		if (len < 0)
			continue;
		link[len] = '\0';
		if (sscanf(link, "socket:[%" SCNu64 "]", &ino) != 1)
			continue;
		row = find_listener(rows, ino);
		if (row)
			err = server_add(out, pid, row);
	}
	return err;
}

static int by_port(const void *a, const void *b)
{
	const struct listen_server *x = a, *y = b;

	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Keeps only such parents as are in the list. */
static void drop_other_parents(struct servers *s)
{
	for (size_t i = 0; i < s->cnt; i++) {
		bool listed = false;

		for (size_t j = 0; j < s->cnt && !listed; j++)
			listed = s->v[j].pid == s->v[i].parent;
		if (!listed)
			s->v[i].parent = 0;
	}
}

/* Calls @fn for each process until it fails. */
static int for_each_pid(int (*fn)(uint32_t pid, void *ctx), void *ctx)
{
	CC_AUTO(dir_closep) DIR *d = opendir("/proc");
	struct dirent *de;
	int err = 0;

	if (!d)
		return -errno;
	while (!err && (de = readdir(d)))
		if (isdigit((unsigned char)de->d_name[0]))
			err = fn((uint32_t)strtoul(de->d_name, NULL, 10), ctx);
	return err;
}

struct scan {
	struct rows seen, rows;
	struct servers out;
};

static int scan_netns(uint32_t pid, void *ctx)
{
	struct scan *s = ctx;

	return read_netns(pid, &s->seen, &s->rows);
}

static int scan_pid(uint32_t pid, void *ctx)
{
	struct scan *s = ctx;

	return scan_fds(pid, &s->rows, &s->out);
}

int listen_list(struct listen_server **ret, size_t *ret_cnt, uint32_t *ret_hidden)
{
	struct scan s = { 0 };
	int err = for_each_pid(scan_netns, &s);

	if (!err)
		err = for_each_pid(scan_pid, &s);
	free(s.seen.v);
	free(s.rows.v);
	if (err) {
		free(s.out.v);
		return err;
	}
	drop_other_parents(&s.out);
	if (s.out.cnt)
		qsort(s.out.v, s.out.cnt, sizeof(*s.out.v), by_port);
	*ret = s.out.v;
	*ret_cnt = s.out.cnt;
	if (ret_hidden)
		*ret_hidden = s.out.hidden;
	return 0;
}

static bool add_pid(uint32_t *pids, size_t *cnt, uint32_t pid)
{
	for (size_t i = 0; i < *cnt; i++)
		if (pids[i] == pid)
			return false;
	pids[(*cnt)++] = pid;
	return true;
}

int sock_find_ports(const uint32_t *ports, uint32_t port_cnt, struct cc_err *err, uint32_t **ret,
		    size_t *ret_cnt)
{
	struct listen_server *list = NULL;
	size_t list_cnt = 0, cnt = 0;
	uint32_t hidden = 0;
	int res = listen_list(&list, &list_cnt, &hidden);

	if (res) {
		loader_err(err, "/proc: %s; mount it", strerror(-res));
		return res;
	}
	uint32_t *pids = calloc(list_cnt + 1, sizeof(*pids));
	if (!pids) {
		free(list);
		return -ENOMEM;
	}
	for (uint32_t p = 0; p < port_cnt && !res; p++) {
		bool found = false;

		for (size_t i = 0; i < list_cnt; i++) {
			if (list[i].port != ports[p])
				continue;
			found = true;
			add_pid(pids, &cnt, list[i].pid);
		}
		if (!found && hidden)
			loader_err(
				err,
				"port %u: no process is seen listening there, but the descriptors "
				"of %u may not be looked at; run as root, add "
				"cap_dac_read_search, or give --pid",
				ports[p], hidden);
		else if (!found)
			loader_err(err,
				   "port %u: no process is seen listening there; start the server "
				   "or give --pid",
				   ports[p]);
		if (!found)
			res = -ESRCH;
	}
	free(list);
	if (res) {
		free(pids);
		return res;
	}
	*ret = pids;
	*ret_cnt = cnt;
	return 0;
}
