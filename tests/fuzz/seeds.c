/* SPDX-License-Identifier: Apache-2.0 */
/* seeds DIR RECORDING: what the targets of binary input start from, made of a recording: slices of
 * it as bare records (engine), coded (codec) and as files (trace, and source with gzip around it);
 * this program's own .eh_frame; a small library (the vDSO); a Go program. Small ones: libFuzzer
 * mutates them one change at a time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "codec.h"
#include "elf_file.h"
#include "go_tiny.h"
#include "trace.h"

enum { SLICES = 16, SLICE_BYTES = 6 << 10, EH_BYTES = 16 << 10, VDSO_BYTES = 8 << 10 };

struct slice {
	struct codec codec;
	uint8_t raw[SLICE_BYTES], enc[CODEC_MAX(SLICE_BYTES) * 2 + SLICE_BYTES], plain[SLICE_BYTES];
	size_t raw_len, enc_len;
	uint8_t *plain_end; /* NULL: none */
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
	s->enc_len +=
		codec_put(&s->codec, rec, s->enc + s->enc_len, s->plain_end ? &s->plain_end : NULL);
	return trace_writer_put(s->writer, rec, len);
}

/* The file at @path as it is and inside gzip. */
static int save_source(const char *dir, int i, const char *path)
{
	static uint8_t bytes[4 * SLICE_BYTES];
	char to[4096];
	FILE *f = fopen(path, "re");
	size_t len = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
	int code = f ? save(dir, "source", 2 * i, bytes, len) : -errno;

	if (f)
		fclose(f);
	if (code)
		return code;
	snprintf(to, sizeof(to), "%s/source-seeds/made-%d", dir, 2 * i + 1);
	gzFile gz = gzopen(to, "wb");

	if (!gz)
		return -ENOMEM;
	size_t n = gzwrite(gz, bytes, (unsigned int)len) > 0 ? len : 0;

	return gzclose(gz) != Z_OK || n != len ? -EIO : 0;
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

	s.raw_len = 0;
	s.enc_len = 2; /* how many lie apart: fuzz_codec.c */
	s.plain_end = i % 2 ? NULL : s.plain;
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
		code = save_source(dir, i, path);
	if (!code)
		code = save(dir, "engine", i, s.raw, s.raw_len);
	uint16_t plain = (uint16_t)(s.plain_end ? s.plain_end - s.plain : 0);

	memcpy(s.enc, &plain, sizeof(plain));
	memcpy(s.enc + s.enc_len, s.plain, plain);
	return code ? code : save(dir, "codec", i, s.enc, s.enc_len + plain);
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

static int make_elf(const char *dir)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct go_tiny t;
	int code;

	go_tiny_make(&t);
	code = save(dir, "go_bin", 0, t.b, t.len);
	if (!code)
		code = save(dir, "elf", 0, t.b, t.len);
	if (!code)
		code = save(dir, "unwind", 0, t.b, t.len);
	if (!code && vdso)
		code = save(dir, "elf", 1, vdso, VDSO_BYTES);
	return code || !vdso ? code : save(dir, "unwind", 1, vdso, VDSO_BYTES);
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
		code = make_elf(argv[1]);
	if (code)
		fprintf(stderr, "seeds: %s %s\n", strerror(-code), err.msg);
	return code ? 1 : 0;
}
