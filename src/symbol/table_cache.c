/* SPDX-License-Identifier: Apache-2.0 */
#include "table_cache.h"
#include "rule.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define CACHE_MAX (64u << 20)  /* bytes, of all entries */
#define ENTRY_MAX (32u << 20)  /* of one; */
#define ENTRY_MIN (128u << 10) /* a smaller one is made faster than found */
#define LOOP_MAJOR 7           /* what is in an image is as whoever made that wanted it */
#define SETTLED 2              /* s: a change within one tick of the clock has the same time */
#define USED_AGAIN 3600        /* s: which entries are in use is noted so often */
#define NAME_BYTES 80

static const char magic[8] = "CRTCtab"; /* and the version of all that follows: */
#define VERSION 1

struct key { /* no holes */
	uint64_t dev, ino, bytes;
	int64_t mtime, mtime_ns, ctime, ctime_ns;
	uint16_t machine;
	uint8_t is64, build_id_len;
	uint32_t sizes; /* of what the tables are made of */
	uint8_t build_id[ELF_BUILD_ID_MAX];
};

struct head {
	char magic[8];
	uint32_t version, crc; /* of all behind it */
	struct key key;
	uint64_t str_off, str_len, eh_addr, eh_off, eh_len, debug_off, debug_len;
	uint64_t funcs, objects, fdes; /* how many of each follow */
};
#define CRC_FROM offsetof(struct head, key)

struct table_cache {
	int dir;
	uint64_t max;
};

/* ---- the directory --------------------------------------------------------------------------- */

/* A directory of ours that others cannot write to; with @private not even read. Takes @fd. */
static int ours(int fd, bool private)
{
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
			st.st_mode & (private ? 077 : 022))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_dir(int at, const char *path, int flags)
{
	return openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
}

/* @name in @parent, which is closed. */
static int sub_dir(int parent, const char *name, bool private)
{
	int fd = -1;

	if (parent < 0)
		return -1;
	if (!mkdirat(parent, name, 0700) || errno == EEXIST)
		fd = ours(open_dir(parent, name, O_NOFOLLOW), private);
	close(parent);
	return fd;
}

/* Whose environment it is does not matter, the directories do: sudo may leave a user's. */
static int find_dir(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const struct passwd *pw;
	int fd = -1;

	if (cache && *cache == '/' && (!mkdir(cache, 0700) || errno == EEXIST))
		fd = ours(open_dir(AT_FDCWD, cache, 0), false);
	if (fd < 0 && home && *home == '/')
		fd = sub_dir(ours(open_dir(AT_FDCWD, home, 0), false), ".cache", false);
	if (fd < 0) {
		pw = getpwuid(geteuid());
		if (pw)
			fd = sub_dir(ours(open_dir(AT_FDCWD, pw->pw_dir, 0), false), ".cache",
				     false);
	}
	return sub_dir(fd, "criticast", true);
}

int table_cache_at(int dir, uint64_t max, struct table_cache **ret)
{
	*ret = NULL;
	if (dir < 0)
		return 0;
	*ret = malloc(sizeof(**ret));
	if (!*ret) {
		close(dir);
		return -ENOMEM;
	}
	**ret = (struct table_cache){ dir, max };
	return 0;
}

int table_cache_new(struct table_cache **ret) { return table_cache_at(find_dir(), CACHE_MAX, ret); }

void table_cache_free(struct table_cache *c)
{
	if (!c)
		return;
	close(c->dir);
	free(c);
}

/* ---- an entry -------------------------------------------------------------------------------- */

/* False: @f is none to be kept. */
static bool key_of(const struct elf_file *f, struct key *ret)
{
	struct timespec now;
	struct stat st;

	if (!f->build_id_len || fstat(f->fd, &st) || (st.st_uid && st.st_uid != geteuid()) ||
	    major(st.st_dev) == LOOP_MAJOR || (uint64_t)st.st_size != f->bytes)
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec - st.st_ctim.tv_sec < SETTLED)
		return false;
	*ret = (struct key){ .dev = st.st_dev,
			     .ino = st.st_ino,
			     .bytes = f->bytes,
			     .mtime = st.st_mtim.tv_sec,
			     .mtime_ns = st.st_mtim.tv_nsec,
			     .ctime = st.st_ctim.tv_sec,
			     .ctime_ns = st.st_ctim.tv_nsec,
			     .machine = f->machine,
			     .is64 = f->is64,
			     .build_id_len = (uint8_t)f->build_id_len,
			     .sizes = sizeof(struct elf_sym) << 8 | sizeof(struct fde) };
	memcpy(ret->build_id, f->build_id, sizeof(ret->build_id));
	return true;
}

/* The build-id, and a number by which equal ones differ. */
static void name_of(const struct key *k, char ret[NAME_BYTES])
{
	uint64_t words[sizeof(*k) / 8], hash = 0;
	size_t len = 0;

	memcpy(words, k, sizeof(words));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		hash = hash_add(hash, words[i]);
	for (size_t i = 0; i < k->build_id_len; i++)
		len += (size_t)snprintf(ret + len, NAME_BYTES - len, "%02x", k->build_id[i]);
	snprintf(ret + len, NAME_BYTES - len, "-%016llx", (unsigned long long)hash);
}

static bool within(uint64_t off, uint64_t len, uint64_t all)
{
	return len <= all && off <= all - len;
}

static bool good_symbols(const struct elf_sym *v, uint64_t cnt, uint64_t str_len)
{
	for (uint64_t i = 0; i < cnt; i++) {
		if (v[i].name >= str_len || (i && v[i].addr <= v[i - 1].addr))
			return false;
	}
	return true;
}

static bool good_fdes(const struct head *h, const struct fde *v)
{
	for (uint64_t i = 0; i < h->fdes; i++) {
		uint64_t len = v[i].off & FDE_DEBUG ? h->debug_len : h->eh_len;

		if (!v[i].len || v[i].start + v[i].len < v[i].start ||
		    (v[i].off & ~FDE_DEBUG) >= len || (i && v[i].start < v[i - 1].start))
			return false;
	}
	return true;
}

static bool good_head(const struct head *h, const struct elf_file *f, size_t len)
{
	struct key key;
	uint64_t room;

	if (len < sizeof(*h) || memcmp(h->magic, magic, sizeof(magic)) || h->version != VERSION ||
	    !key_of(f, &key) || memcmp(&h->key, &key, sizeof(key)))
		return false;
	room = (len - sizeof(*h)) / sizeof(struct fde);
	return h->funcs <= room && h->objects <= room && h->fdes <= room &&
	       sizeof(*h) + (h->funcs + h->objects) * sizeof(struct elf_sym) +
			       h->fdes * sizeof(struct fde) ==
		       len &&
	       within(h->str_off, h->str_len, f->bytes) && within(h->eh_off, h->eh_len, f->bytes) &&
	       within(h->debug_off, h->debug_len, f->bytes) &&
	       libdeflate_crc32(0, (const uint8_t *)h + CRC_FROM, len - CRC_FROM) == h->crc;
}

bool table_cache_take(struct elf_file *f, void *bytes, size_t len)
{
	const struct head *h = bytes;
	struct elf_sym *funcs, *objects;
	struct fde *fdes;

	if (!good_head(h, f, len))
		return false;
	funcs = (struct elf_sym *)((uint8_t *)bytes + sizeof(*h));
	objects = funcs + h->funcs;
	fdes = (struct fde *)(objects + h->objects);
	if (!good_symbols(funcs, h->funcs, h->str_len) ||
	    !good_symbols(objects, h->objects, h->str_len) || !good_fdes(h, fdes))
		return false;
	f->mapped = bytes;
	f->mapped_len = len;
	f->funcs = (struct elf_symtab){ funcs, h->funcs };
	f->objects = (struct elf_symtab){ objects, h->objects };
	f->fdes = fdes;
	f->fde_cnt = h->fdes;
	f->str_off = h->str_off;
	f->str_len = h->str_len;
	f->eh_addr = h->eh_addr;
	f->eh_off = h->eh_off;
	f->eh_len = h->eh_len;
	f->debug_frame = (struct elf_range){ 0, h->debug_off, h->debug_len };
	return true;
}

void *table_cache_make(const struct elf_file *f, size_t *ret_len)
{
	size_t funcs = f->funcs.cnt * sizeof(*f->funcs.v);
	size_t objects = f->objects.cnt * sizeof(*f->objects.v);
	size_t fdes = f->fde_cnt * sizeof(*f->fdes);
	struct head h = { .version = VERSION,
			  .str_off = f->str_off,
			  .str_len = f->str_len,
			  .eh_addr = f->eh_addr,
			  .eh_off = f->eh_off,
			  .eh_len = f->eh_len,
			  .debug_off = f->debug_frame.off,
			  .debug_len = f->debug_frame.len,
			  .funcs = f->funcs.cnt,
			  .objects = f->objects.cnt,
			  .fdes = f->fde_cnt };
	uint8_t *p;

	if (!key_of(f, &h.key))
		return NULL;
	*ret_len = sizeof(h) + funcs + objects + fdes;
	p = malloc(*ret_len);
	if (!p)
		return NULL;
	memcpy(h.magic, magic, sizeof(magic));
	memcpy(p, &h, sizeof(h));
	if (funcs)
		memcpy(p + sizeof(h), f->funcs.v, funcs);
	if (objects)
		memcpy(p + sizeof(h) + funcs, f->objects.v, objects);
	if (fdes)
		memcpy(p + sizeof(h) + funcs + objects, f->fdes, fdes);
	h.crc = libdeflate_crc32(0, p + CRC_FROM, *ret_len - CRC_FROM);
	memcpy(p + offsetof(struct head, crc), &h.crc, sizeof(h.crc));
	return p;
}

/* ---- entries as files ------------------------------------------------------------------------ */

/* What is used least is removed first. */
static void note_use(int fd, const struct stat *st)
{
	if (time(NULL) - st->st_mtim.tv_sec > USED_AGAIN)
		(void)!futimens(fd, NULL);
}

bool table_cache_get(struct table_cache *c, struct elf_file *f)
{
	char name[NAME_BYTES];
	struct stat st;
	struct key key;
	void *p = MAP_FAILED;
	bool good;
	int fd;

	if (!c || !key_of(f, &key))
		return false;
	name_of(&key, name);
	fd = openat(c->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	/* it never shrinks while it is mapped: entries are written once, under another name, and
	 * nobody else can get at them */
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_size > 0 &&
	    st.st_size <= ENTRY_MAX)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	good = p != MAP_FAILED && table_cache_take(f, p, (size_t)st.st_size);
	if (good)
		note_use(fd, &st);
	else if (p != MAP_FAILED)
		munmap(p, (size_t)st.st_size);
	close(fd);
	return good;
}

/* Removes the one that was not used for the longest time. Returns the bytes of all that there
 * were, 0: none could be removed. */
static uint64_t remove_oldest(const struct table_cache *c, uint64_t max)
{
	int fd = open_dir(c->dir, ".", 0);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	char oldest[NAME_BYTES] = "";
	time_t when = 0;
	uint64_t sum = 0;

	if (!d && fd >= 0)
		close(fd);
	for (const struct dirent *e; d && (e = readdir(d));) {
		struct stat st;

		if (strlen(e->d_name) >= NAME_BYTES ||
		    fstatat(c->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		sum += (uint64_t)st.st_size;
		if (!*oldest || st.st_mtim.tv_sec < when) {
			when = st.st_mtim.tv_sec;
			strcpy(oldest, e->d_name);
		}
	}
	if (d)
		closedir(d);
	return sum > max && *oldest && !unlinkat(c->dir, oldest, 0) ? sum : 0;
}

void table_cache_put(struct table_cache *c, const struct elf_file *f)
{
	size_t len = 0, entries = f->funcs.cnt + f->objects.cnt + f->fde_cnt;
	char name[NAME_BYTES], tmp[NAME_BYTES];
	void *bytes;
	int fd;

	if (!c || entries * sizeof(struct fde) < ENTRY_MIN)
		return;
	bytes = table_cache_make(f, &len);
	if (!bytes || len > CC_MIN(ENTRY_MAX, c->max)) {
		free(bytes);
		return;
	}
	name_of(&((const struct head *)bytes)->key, name);
	snprintf(tmp, sizeof(tmp), "tmp-%d", getpid()); /* one thread of us writes at a time */
	unlinkat(c->dir, tmp, 0);
	fd = openat(c->dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		bool whole = write(fd, bytes, len) == (ssize_t)len;

		if (close(fd) || !whole || renameat(c->dir, tmp, c->dir, name))
			unlinkat(c->dir, tmp, 0);
	}
	free(bytes);
	while (remove_oldest(c, c->max))
		;
}
