/* SPDX-License-Identifier: Apache-2.0 */
/* seeds DIR RECORDING: what the targets of binary input start from, made of a recording: slices of
 * it as bare records (engine), coded (codec) and as files (trace); and this program's own
 * .eh_frame; a Go program. Small ones: libFuzzer mutates them one change at a time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec.h"
#include "elf_file.h"
#include "go_tiny.h"
#include "trace.h"

enum { SLICES = 8, SLICE_BYTES = 12 << 10, EH_BYTES = 16 << 10 };

struct slice {
	struct codec codec;
	uint8_t raw[SLICE_BYTES], enc[CODEC_MAX(SLICE_BYTES) * 2];
	size_t raw_len, enc_len;
	struct trace_writer *writer;
};

static int save(const char *dir, const char *target, int i, const void *data, size_t len)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s-seeds", dir, target);
	if (mkdir(path, 0777) && errno != EEXIST)
		return -errno;
	snprintf(path, sizeof(path), "%s/%s-seeds/made-%d", dir, target, i);
	FILE *f = fopen(path, "we");

	if (!f)
		return -errno;
	size_t n = fwrite(data, 1, len, f);

	return fclose(f) || n != len ? -EIO : 0;
}

static int add(struct slice *s, const struct cc_rec *rec, size_t len)
{
	memcpy(s->raw + s->raw_len, rec, len);
	s->raw_len += len;
	s->enc_len += codec_put(&s->codec, rec, s->enc + s->enc_len);
	return trace_writer_put(s->writer, rec, len);
}

/* One slice: the records from @skip on that there is room for. */
static int make_slice(const char *dir, const char *recording, int i, uint64_t skip)
{
	static struct slice s;
	struct trace_reader *r;
	const struct cc_rec *rec;
	struct cc_err err;
	char path[4096];
	size_t len;
	int code;

	s.raw_len = s.enc_len = 0;
	codec_reset(&s.codec);
	code = save(dir, "trace", i, "", 0); /* makes the folder */
	snprintf(path, sizeof(path), "%s/trace-seeds/made-%d", dir, i);
	if (!code)
		code = trace_reader_open(recording, &err, &r);
	if (code)
		return code;
	code = trace_writer_open(path, &err, &s.writer);
	for (uint64_t n = 0; !code && trace_reader_next(r, &rec, &len) == 1; n++) {
		if (n >= skip && s.raw_len + len > sizeof(s.raw))
			break;
		if (n >= skip)
			code = add(&s, rec, len);
	}
	trace_reader_free(r);
	if (!code)
		code = trace_writer_close(s.writer);
	if (!code)
		code = save(dir, "engine", i, s.raw, s.raw_len);
	return code ? code : save(dir, "codec", i, s.enc, s.enc_len);
}

static int make_ehframe(const char *dir)
{
	static uint8_t bytes[EH_BYTES];
	struct elf_file *f;
	int code = elf_file_new(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &f);

	if (code)
		return code;
	size_t len = CC_MIN(f->eh_len, sizeof(bytes));
	ssize_t n = elf_file_read(f, f->eh_off, bytes, len);

	elf_file_put(f);
	return n == (ssize_t)len ? save(dir, "ehframe", 0, bytes, len) : -EIO;
}

static int make_go(const char *dir)
{
	struct go_tiny t;

	go_tiny_make(&t);
	return save(dir, "go_bin", 0, t.b, t.len);
}

int main(int argc, char **argv)
{
	struct trace_reader *r;
	struct cc_err err = { .msg = "" };
	int code = argc == 3 ? trace_reader_open(argv[2], &err, &r) : -EINVAL;

	if (!code) {
		uint64_t cnt = trace_reader_info(r)->rec_cnt;

		trace_reader_free(r);
		for (int i = 0; i < SLICES && !code; i++)
			code = make_slice(argv[1], argv[2], i, cnt / SLICES * (uint64_t)i);
	}
	if (!code)
		code = make_ehframe(argv[1]);
	if (!code)
		code = make_go(argv[1]);
	if (code)
		fprintf(stderr, "seeds: %s %s\n", strerror(-code), err.msg);
	return code ? 1 : 0;
}
