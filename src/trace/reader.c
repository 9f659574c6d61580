/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec.h"
#include "format.h"
#include "input.h"
#include "lasting.h"
#include "trace.h"

struct trace_reader {
	int fd;
	uint64_t file_len;
	uint64_t off;         /* of the next chunk */
	unsigned int version; /* of the file */
	uint32_t head_len;    /* of its chunks' heads */
	struct trace_info info;
	struct trace_index_entry *index;
	struct trace_key *keys;
	uint32_t key_cnt;
	uint32_t next_chunk;   /* number of the chunk at off */
	uint32_t keys_left;    /* key chunks that are read: after a seek */
	uint32_t lasting_only; /* of chunks before this one only what lasts is given */
	bool rough;            /* and not even that of all of them: see go_to() */
	bool filter;           /* the chunk in enc[] is one of these */
	char damage[160];      /* "" so far none */
	bool ended;
	struct libdeflate_decompressor *zip;
	struct codec codec;
	struct trace_chunk_head chunk; /* the one in enc[] */
	struct codec_in from;          /* what is left of it */
	uint32_t left;                 /* records left of it */
	uint64_t rec[(UINT16_MAX + 1) / 8];
	uint8_t *in, *enc; /* a chunk as it is in the file, and inflated */
	uint32_t in_cap, enc_cap;
};

/* Most chunks are far smaller than they may be: a buffer is as large as was needed. */
static int room_for(uint8_t **buf, uint32_t *cap, uint32_t len)
{
	if (len <= *cap && *buf)
		return 0;
	uint8_t *more = realloc(*buf, len + 1);

	if (!more)
		return -ENOMEM;
	*buf = more;
	*cap = len;
	return 0;
}

/* Bytes read, fewer only at the end of the file; or -errno. */
static ssize_t read_at(int fd, void *dst, size_t len, uint64_t off)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (uint8_t *)dst + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static bool read_exact(const struct trace_reader *r, void *dst, size_t len, uint64_t off)
{
	return off <= r->file_len && len <= r->file_len - off &&
	       read_at(r->fd, dst, len, off) == (ssize_t)len;
}

static int end_here(struct trace_reader *r, const char *what)
{
	r->ended = true;
	if (what)
		snprintf(r->damage, sizeof(r->damage),
			 "%s at byte %llu of %llu; all before it is shown", what,
			 (unsigned long long)r->off, (unsigned long long)r->file_len);
	return 0;
}

static bool chunk_head_ok(const struct trace_chunk_head *h)
{
	return (h->magic == TRACE_CHUNK_MAGIC || h->magic == TRACE_KEY_MAGIC) &&
	       h->zip_len <= TRACE_ZIP_MAX && h->enc_len <= TRACE_ENC_MAX &&
	       h->plain_len <= TRACE_PLAIN_MAX && h->raw_len <= TRACE_RAW_MAX &&
	       h->rec_cnt <= h->raw_len / sizeof(struct cc_rec);
}

/* ---- the index ---- */

static int index_grow(struct trace_reader *r, uint32_t cap)
{
	void *more = realloc(r->index, cap * sizeof(*r->index));

	if (!more)
		return -ENOMEM;
	r->index = more;
	return 0;
}

static int keys_grow(struct trace_reader *r, uint32_t cap)
{
	void *more = realloc(r->keys, cap * sizeof(*r->keys));

	if (!more)
		return -ENOMEM;
	r->keys = more;
	return 0;
}

/* The index at the end of a closed file: found by its tail and believed only if its CRC fits. */
static bool index_read(struct trace_reader *r)
{
	struct trace_tail tail;
	struct trace_index_head h;

	if (r->file_len < sizeof(tail) ||
	    !read_exact(r, &tail, sizeof(tail), r->file_len - sizeof(tail)) ||
	    tail.magic != TRACE_TAIL_MAGIC || !read_exact(r, &h, sizeof(h), tail.index_off) ||
	    h.magic != TRACE_INDEX_MAGIC || h.entry_cnt > TRACE_INDEX_MAX ||
	    h.entry_cnt > r->file_len / sizeof(*r->index) || h.key_cnt > h.entry_cnt)
		return false;
	size_t len = h.entry_cnt * sizeof(*r->index), keys = h.key_cnt * sizeof(*r->keys);
	uint64_t off = tail.index_off + sizeof(h);
	uint32_t crc = libdeflate_crc32(0, (const uint8_t *)&h + 8, sizeof(h) - 8);

	if (index_grow(r, h.entry_cnt + 1) || keys_grow(r, h.key_cnt + 1) ||
	    !read_exact(r, r->index, len, off) || !read_exact(r, r->keys, keys, off + len))
		return false;
	crc = libdeflate_crc32(crc, r->index, len);
	if (libdeflate_crc32(crc, r->keys, keys) != h.crc)
		return false;
	r->info.chunk_cnt = h.entry_cnt;
	r->key_cnt = h.key_cnt;
	return true;
}

static int scan_chunk(struct trace_reader *r, uint64_t off, const struct trace_chunk_head *h,
		      uint32_t *cap)
{
	if (r->info.chunk_cnt == *cap) {
		*cap = *cap ? 2 * *cap : 64;
		if (*cap > TRACE_INDEX_MAX || index_grow(r, *cap))
			return -ENOMEM;
	}
	r->index[r->info.chunk_cnt++] = (struct trace_index_entry){
		.off = off,
		.first_ns = h->first_ns,
		.last_ns = h->last_ns,
		.rec_cnt = h->rec_cnt,
		.raw_len = h->raw_len,
	};
	return 0;
}

static int scan_key(struct trace_reader *r, uint64_t off, uint32_t *cap)
{
	struct trace_key *last = r->key_cnt ? &r->keys[r->key_cnt - 1] : NULL;

	if (last && last->chunk == r->info.chunk_cnt) {
		last->cnt++;
		return 0;
	}
	if (r->key_cnt == *cap) {
		*cap = *cap ? 2 * *cap : 16;
		if (*cap > TRACE_INDEX_MAX || keys_grow(r, *cap))
			return -ENOMEM;
	}
	r->keys[r->key_cnt++] = (struct trace_key){ off, r->info.chunk_cnt, 1 };
	return 0;
}

/* A file without an index: from chunk head to chunk head. Contents are checked when read. */
static int index_scan(struct trace_reader *r)
{
	struct trace_chunk_head h = { 0 };
	uint32_t cap = 0, key_cap = 0, head = r->head_len;
	int err = 0;

	r->info.chunk_cnt = r->key_cnt = 0;
	for (uint64_t off = r->off; !err && read_exact(r, &h, head, off) && chunk_head_ok(&h) &&
				    trace_body_len(&h) <= r->file_len - off - head;
	     off += head + trace_body_len(&h))
		err = h.magic == TRACE_KEY_MAGIC ? scan_key(r, off, &key_cap)
						 : scan_chunk(r, off, &h, &cap);
	return err;
}

static void index_sum(struct trace_reader *r)
{
	struct trace_info *info = &r->info;

	for (uint32_t i = 0; i < info->chunk_cnt; i++) {
		const struct trace_index_entry *x = &r->index[i];

		info->rec_cnt += x->rec_cnt;
		info->raw_bytes += x->raw_len;
		info->first_ns = i ? CC_MIN(info->first_ns, x->first_ns) : x->first_ns;
		info->last_ns = CC_MAX(info->last_ns, x->last_ns);
	}
}

/* ---- open ---- */

static const char *head_wrong(const struct trace_head *h)
{
	if (memcmp(h->magic, TRACE_MAGIC, sizeof(h->magic)) != 0)
		return "not a .criticast recording";
	if (h->endian != TRACE_LITTLE)
		return "recorded on a big-endian machine, which is not supported";
	if (h->version > TRACE_VERSION)
		return "made by a newer version of criticast, whose file format this one does not "
		       "know";
	if (h->version < TRACE_VERSION_LEAST)
		return "its file format is of no version that there was";
	if (h->head_len < sizeof(*h) || h->head_len > TRACE_HEAD_MAX || h->abi == 0)
		return "its head is damaged";
	return NULL;
}

static int read_head(struct trace_reader *r, const char *path, struct cc_err *err)
{
	struct stat st;
	struct trace_head h = { .pad = 0 };

	if (fstat(r->fd, &st) < 0)
		return input_fail(err, -errno, path, strerror(errno));
	r->file_len = r->info.file_bytes = (uint64_t)st.st_size;
	ssize_t n = read_at(r->fd, &h, sizeof(h), 0);

	if (n < 0)
		return input_fail(err, (int)n, path, strerror((int)-n));
	const char *wrong =
		(size_t)n < sizeof(h) ? "too short for a criticast recording" : head_wrong(&h);

	if (wrong)
		return input_fail(err, -EBADMSG, path, wrong);
	r->off = h.head_len;
	r->version = h.version;
	r->head_len = trace_chunk_head_len(h.version);
	r->info.abi = h.abi;
	return 0;
}

int trace_reader_open_fd(int fd, const char *path, struct cc_err *err, struct trace_reader **ret)
{
	struct trace_reader *r = calloc(1, sizeof(*r));

	if (!r) {
		close(fd);
		return input_fail(err, -ENOMEM, path, strerror(ENOMEM));
	}
	r->fd = fd;
	int code = read_head(r, path, err);

	r->zip = libdeflate_alloc_decompressor();
	if (!code && !r->zip)
		code = input_fail(err, -ENOMEM, path, strerror(ENOMEM));
	if (!code) {
		r->info.complete = index_read(r);
		if (!r->info.complete && index_scan(r))
			code = input_fail(err, -ENOMEM, path, strerror(ENOMEM));
	}
	if (code) {
		trace_reader_free(r);
		return code;
	}
	index_sum(r);
	*ret = r;
	return 0;
}

int trace_reader_open(const char *path, struct cc_err *err, struct trace_reader **ret)
{
	int fd, code = input_open(path, err, &fd);

	return code ? code : trace_reader_open_fd(fd, path, err, ret);
}

void trace_reader_free(struct trace_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	libdeflate_free_decompressor(r->zip);
	free(r->index);
	free(r->keys);
	free(r->in);
	free(r->enc);
	free(r);
}

const struct trace_info *trace_reader_info(const struct trace_reader *r) { return &r->info; }

const char *trace_reader_damage(const struct trace_reader *r)
{
	return r->damage[0] ? r->damage : NULL;
}

/* ---- records ---- */

static bool inflate_chunk(struct trace_reader *r)
{
	/* exactly enc_len bytes, or it fails */
	return libdeflate_zlib_decompress(r->zip, r->in, r->chunk.zip_len, r->enc, r->chunk.enc_len,
					  NULL) == LIBDEFLATE_SUCCESS;
}

/* Makes the next chunk the current one. Returns 1; 2 when it was skipped; 0 at the end, -errno. */
static int load_chunk(struct trace_reader *r)
{
	struct trace_chunk_head *h = &r->chunk;
	ssize_t n;

	*h = (struct trace_chunk_head){ 0 };
	n = read_at(r->fd, h, r->head_len, r->off);
	if (n < 0)
		return (int)n;
	if (n == 0)
		return end_here(r, "not closed (the recording was cut off)");
	if (n >= (ssize_t)sizeof(h->magic) && h->magic == TRACE_INDEX_MAGIC)
		return end_here(r, r->info.complete ? NULL : "its index is damaged");
	if (n < (ssize_t)r->head_len)
		return end_here(r, "cut off");
	if (!chunk_head_ok(h))
		return end_here(r, "damaged");
	uint32_t body = (uint32_t)trace_body_len(h);

	if (h->magic == TRACE_KEY_MAGIC && !r->keys_left) { /* it repeats what was read */
		if (body > r->file_len || r->off + r->head_len > r->file_len - body)
			return end_here(r, "cut off");
		r->off += r->head_len + body;
		return 2;
	}
	if (room_for(&r->in, &r->in_cap, body))
		return -ENOMEM;
	n = read_at(r->fd, r->in, body, r->off + r->head_len);
	if (n < 0)
		return (int)n;
	if (n < (ssize_t)body)
		return end_here(r, "cut off");
	uint32_t crc = libdeflate_crc32(0, (const uint8_t *)h + 8, r->head_len - 8);

	if (libdeflate_crc32(crc, r->in, body) != h->crc)
		return end_here(r, "damaged");
	if (room_for(&r->enc, &r->enc_cap, h->enc_len))
		return -ENOMEM;
	if (!inflate_chunk(r))
		return end_here(r, "damaged");
	codec_reset(&r->codec);
	r->from = (struct codec_in){ .p = r->enc, .end = r->enc + h->enc_len };
	if (r->version > 3) {
		r->from.plain = r->in + h->zip_len;
		r->from.plain_end = r->in + body;
	}
	r->left = h->rec_cnt;
	r->off += r->head_len + body;
	if (h->magic == TRACE_KEY_MAGIC) {
		r->filter = false;
		r->keys_left--;
	} else {
		r->keys_left = 0;
		r->filter = r->next_chunk++ < r->lasting_only;
	}
	if (r->rough && !r->keys_left && r->next_chunk < r->lasting_only) {
		r->next_chunk = r->lasting_only;
		r->off = r->index[r->lasting_only].off;
	}
	return 1;
}

static int next_record(struct trace_reader *r, const struct cc_rec **ret)
{
	while (!r->left) {
		if (r->ended)
			return 0;
		int n = load_chunk(r);

		if (n <= 0)
			return n;
	}
	int size = codec_get(&r->codec, &r->from, r->rec, sizeof(r->rec), ret);

	if (size < 0) { /* the CRC fits: written so, by someone else */
		r->left = 0;
		return end_here(r, "malformed before");
	}
	r->left--;
	return size;
}

int trace_reader_next(struct trace_reader *r, const struct cc_rec **ret, size_t *len)
{
	int size;

	do
		size = next_record(r, ret);
	while (size > 0 && r->filter && !rec_is_lasting((*ret)->kind));
	if (size <= 0)
		return size;
	*len = (size_t)size;
	return 1;
}

/* The chunk that holds @to, or the last one. */
static uint32_t chunk_at(const struct trace_reader *r, cc_ns to)
{
	uint32_t i = 0;

	while (i + 1 < r->info.chunk_cnt && r->index[i].last_ns < to)
		i++;
	return i;
}

/* How many records lie in [from, to). */
static uint64_t records_between(const struct trace_reader *r, uint32_t from, uint32_t to)
{
	uint64_t sum = 0;

	for (uint32_t i = from; i < to; i++)
		sum += r->index[i].rec_cnt;
	return sum;
}

/* With @rough what was told between the key chunks and @start is left out, or, where there are
 * none, between the first chunk, which tells what there was at the beginning, and @start. */
static void go_to(struct trace_reader *r, uint32_t start, bool rough)
{
	const struct trace_key *key = NULL;

	for (uint32_t i = 0; i < r->key_cnt && r->keys[i].chunk <= start; i++)
		key = &r->keys[i];
	r->left = 0;
	r->ended = false;
	r->damage[0] = '\0';
	r->lasting_only = start;
	r->rough = rough;
	r->keys_left = key ? key->cnt : 0;
	r->next_chunk = key ? key->chunk : 0;
	r->off = key ? key->off : r->index[0].off;
}

struct seek_plan {
	bool stay; /* and read on */
	uint32_t start;
	uint64_t ahead; /* records from there to the chunk that is wanted */
};

static struct seek_plan plan_seek(const struct trace_reader *r, cc_ns to, uint64_t max_records,
				  bool onward)
{
	uint32_t target = chunk_at(r, to), here = CC_MIN(r->next_chunk, target);
	struct seek_plan p = { .start = target, .ahead = records_between(r, here, target) };

	p.stay = onward && p.ahead <= max_records;
	if (p.stay)
		return p;
	p.ahead = 0;
	for (; p.start > 0; p.start--) {
		uint64_t more = p.ahead + r->index[p.start - 1].rec_cnt;

		if (more > max_records)
			break;
		p.ahead = more;
	}
	return p;
}

int trace_reader_seek(struct trace_reader *r, cc_ns to, uint64_t max_records, bool onward)
{
	if (!r->info.chunk_cnt)
		return -ENOENT;
	struct seek_plan p = plan_seek(r, to, max_records, onward);

	if (!p.stay)
		go_to(r, p.start, false);
	return p.stay;
}

int trace_reader_seek_rough(struct trace_reader *r, cc_ns to, uint64_t max_records)
{
	if (!r->info.chunk_cnt)
		return -ENOENT;
	go_to(r, plan_seek(r, to, max_records, false).start, true);
	return 0;
}

uint64_t trace_reader_ahead(const struct trace_reader *r, cc_ns to, uint64_t max_records,
			    bool onward)
{
	return r->info.chunk_cnt ? plan_seek(r, to, max_records, onward).ahead : 0;
}

int trace_reader_again(const struct trace_reader *r, struct trace_reader **ret)
{
	struct cc_err err;
	int fd = fcntl(r->fd, F_DUPFD_CLOEXEC, 0); /* all reads say where: nothing is shared */

	return fd < 0 ? -errno : trace_reader_open_fd(fd, "", &err, ret);
}
