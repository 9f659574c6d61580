/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "codec.h"
#include "format.h"
#include "input.h"
#include "trace.h"

struct trace_reader {
	int fd;
	uint64_t file_len;
	uint64_t off; /* of the next chunk */
	struct trace_info info;
	struct trace_index_entry *index;
	char damage[160]; /* "" so far none */
	bool ended;
	z_stream zip;
	struct codec codec;
	struct trace_chunk_head chunk; /* the one in enc[] */
	const uint8_t *pos, *end;      /* what is left of it */
	uint32_t left;                 /* records left of it */
	uint64_t rec[(UINT16_MAX + 1) / 8];
	uint8_t enc[TRACE_ENC_MAX];
	uint8_t in[TRACE_ZIP_MAX];
};

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
	return h->magic == TRACE_CHUNK_MAGIC && h->zip_len <= TRACE_ZIP_MAX &&
	       h->enc_len <= TRACE_ENC_MAX && h->raw_len <= TRACE_RAW_MAX &&
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

/* The index at the end of a closed file: found by its tail and believed only if its CRC fits. */
static bool index_read(struct trace_reader *r)
{
	struct trace_tail tail;
	struct trace_index_head h;

	if (r->file_len < sizeof(tail) ||
	    !read_exact(r, &tail, sizeof(tail), r->file_len - sizeof(tail)) ||
	    tail.magic != TRACE_TAIL_MAGIC || !read_exact(r, &h, sizeof(h), tail.index_off) ||
	    h.magic != TRACE_INDEX_MAGIC || h.entry_cnt > TRACE_INDEX_MAX ||
	    h.entry_cnt > r->file_len / sizeof(*r->index))
		return false;
	size_t len = h.entry_cnt * sizeof(*r->index);
	uLong crc = crc32(0, (const Bytef *)&h + 8, sizeof(h) - 8);

	if (index_grow(r, h.entry_cnt + 1) ||
	    !read_exact(r, r->index, len, tail.index_off + sizeof(h)) ||
	    crc32(crc, (const Bytef *)r->index, (uInt)len) != h.crc)
		return false;
	r->info.chunk_cnt = h.entry_cnt;
	return true;
}

/* A file without an index: from chunk head to chunk head. Contents are checked when read. */
static int index_scan(struct trace_reader *r)
{
	struct trace_chunk_head h;
	uint32_t cap = 0;

	r->info.chunk_cnt = 0;
	for (uint64_t off = r->off; read_exact(r, &h, sizeof(h), off) && chunk_head_ok(&h) &&
				    h.zip_len <= r->file_len - off - sizeof(h);
	     off += sizeof(h) + h.zip_len) {
		if (r->info.chunk_cnt == cap) {
			cap = cap ? 2 * cap : 64;
			if (cap > TRACE_INDEX_MAX || index_grow(r, cap))
				return -ENOMEM;
		}
		r->index[r->info.chunk_cnt++] = (struct trace_index_entry){
			.off = off,
			.first_ns = h.first_ns,
			.last_ns = h.last_ns,
			.rec_cnt = h.rec_cnt,
			.raw_len = h.raw_len,
		};
	}
	return 0;
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
	if (h->version != TRACE_VERSION)
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

	if (!code && inflateInit(&r->zip) != Z_OK)
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
	inflateEnd(&r->zip);
	free(r->index);
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
	inflateReset(&r->zip);
	r->zip.next_in = r->in;
	r->zip.avail_in = r->chunk.zip_len;
	r->zip.next_out = r->enc;
	r->zip.avail_out = r->chunk.enc_len;
	return inflate(&r->zip, Z_FINISH) == Z_STREAM_END && r->zip.total_out == r->chunk.enc_len;
}

/* Makes the next chunk the current one. Returns 1; 0 at the end, -errno. */
static int load_chunk(struct trace_reader *r)
{
	struct trace_chunk_head *h = &r->chunk;
	ssize_t n = read_at(r->fd, h, sizeof(*h), r->off);

	if (n < 0)
		return (int)n;
	if (n == 0)
		return end_here(r, "not closed (the recording was cut off)");
	if (n >= (ssize_t)sizeof(h->magic) && h->magic == TRACE_INDEX_MAGIC)
		return end_here(r, r->info.complete ? NULL : "its index is damaged");
	if (n < (ssize_t)sizeof(*h))
		return end_here(r, "cut off");
	if (!chunk_head_ok(h))
		return end_here(r, "damaged");
	n = read_at(r->fd, r->in, h->zip_len, r->off + sizeof(*h));
	if (n < 0)
		return (int)n;
	if (n < (ssize_t)h->zip_len)
		return end_here(r, "cut off");
	uLong crc = crc32(0, (const Bytef *)h + 8, sizeof(*h) - 8);

	if (crc32(crc, r->in, h->zip_len) != h->crc || !inflate_chunk(r))
		return end_here(r, "damaged");
	codec_reset(&r->codec);
	r->pos = r->enc;
	r->end = r->enc + h->enc_len;
	r->left = h->rec_cnt;
	r->off += sizeof(*h) + h->zip_len;
	return 1;
}

int trace_reader_next(struct trace_reader *r, const struct cc_rec **ret, size_t *len)
{
	while (!r->left) {
		if (r->ended)
			return 0;
		int n = load_chunk(r);

		if (n <= 0)
			return n;
	}
	int size = codec_get(&r->codec, &r->pos, r->end, r->rec, sizeof(r->rec));

	if (size < 0) { /* the CRC fits: written so, by someone else */
		r->left = 0;
		return end_here(r, "malformed before");
	}
	r->left--;
	*ret = (const struct cc_rec *)r->rec;
	*len = (size_t)size;
	return 1;
}

int trace_reader_seek(struct trace_reader *r, cc_ns ns)
{
	for (uint32_t i = 0; i < r->info.chunk_cnt; i++) {
		if (r->index[i].last_ns < ns)
			continue;
		r->off = r->index[i].off;
		r->left = 0;
		r->ended = false;
		return 0;
	}
	return -ENOENT;
}
