/* SPDX-License-Identifier: Apache-2.0 */
/* pprof and folded stacks: sums equal the path, stacks in order; the bytes read back as a profile.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <zlib.h>

#include "folded.h"
#include "pprof.h"
#include "snap_fixture.h"

Test(folded, one_request)
{
	struct snap_fixture *f = fixture_new();
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	fixture_strings(f);
	cr_assert_eq(folded_write(&f->s, out), 0);
	fclose(out);
	cr_expect_str_eq(text, "nginx/4245;[cpu];[cpu] 8200000\n"
			       "nginx/4245;[net recv];[net recv] 62200000\n"
			       "nginx/4245;cart_add;__lll_lock_wait;[lock: waits for worker/4249];"
			       "[cpu];[cpu] 18000000\n"
			       "nginx/4245;cart_add;__lll_lock_wait;[lock: waits for worker/4249];"
			       "cart_flush;fdatasync;ext4_sync_file;io_schedule;"
			       "[disk fsync] 123000000\n");
	free(text);
	fixture_free(f);
}

Test(folded, a_name_cannot_make_frames)
{
	struct snap_fixture *f = fixture_new();
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	f->frames[1].text = fx(f, "a;b\nc");
	fixture_strings(f);
	cr_assert_eq(folded_write(&f->s, out), 0);
	fclose(out);
	cr_expect_not_null(strstr(text, "nginx/4245;a:b?c;__lll"));
	free(text);
	fixture_free(f);
}

/* ---- just enough of protobuf to read it back ---- */

struct field {
	unsigned int number;
	uint64_t value;
	const uint8_t *data;
	size_t len;
};

static uint64_t varint(const uint8_t **p)
{
	uint64_t v = 0;

	for (unsigned int shift = 0;; shift += 7) {
		uint8_t b = *(*p)++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80)
			return v;
		cr_assert_lt(shift, 63);
	}
}

static bool next_field(const uint8_t **p, const uint8_t *end, struct field *ret)
{
	if (*p >= end)
		return false;
	uint64_t tag = varint(p);

	*ret = (struct field){ .number = (unsigned int)(tag >> 3) };
	ret->value = varint(p);
	if ((tag & 7) == 2) {
		ret->data = *p;
		ret->len = ret->value;
		*p += ret->len;
	} else {
		cr_assert_eq(tag & 7, 0, "only varints and blocks");
	}
	cr_assert_leq((uintptr_t)*p, (uintptr_t)end);
	return true;
}

#define EACH_FIELD(x, bytes, size)                                        \
	for (const uint8_t *at_##x = (bytes), *end_##x = at_##x + (size); \
	     next_field(&at_##x, end_##x, &(x));)

static size_t profile_of(struct snap_fixture *f, uint8_t *out, size_t cap)
{
	char *gz = NULL;
	size_t len;
	FILE *file = open_memstream(&gz, &len);
	z_stream z = { 0 };

	fixture_strings(f);
	cr_assert_eq(pprof_write(&f->s, file), 0);
	fclose(file);
	cr_assert_eq(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_in = (Bytef *)gz;
	z.avail_in = (uInt)len;
	z.next_out = out;
	z.avail_out = (uInt)cap;
	cr_assert_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	size_t ret = z.total_out;

	inflateEnd(&z);
	free(gz);
	return ret;
}

Test(pprof, reads_back)
{
	static uint8_t bytes[65536];
	struct snap_fixture *f = fixture_new();
	size_t len = profile_of(f, bytes, sizeof(bytes));
	char strings[64][64];
	uint64_t names[64] = { 0 }, ns = 0, waits = 0;
	unsigned int string_cnt = 0, samples = 0, locations = 0, functions = 0, types = 0;
	struct field x, y, z;

	EACH_FIELD(x, bytes, len)
	{
		if (x.number == 6) {
			cr_assert_lt(string_cnt, 64);
			snprintf(strings[string_cnt++], 64, "%.*s", (int)x.len,
				 (const char *)x.data);
		}
	}
	cr_expect_str_eq(strings[0], "");
	EACH_FIELD(x, bytes, len)
	{
		if (x.number == 5) {
			uint64_t id = 0, name = 0;

			EACH_FIELD(y, x.data, x.len)
			{
				id = y.number == 1 ? y.value : id;
				name = y.number == 2 ? y.value : name;
			}
			cr_assert(id > 0 && id < 64 && name < string_cnt);
			names[id] = name;
			functions++;
		}
		locations += x.number == 4;
	}
	EACH_FIELD(x, bytes, len)
	{
		if (x.number == 1) {
			EACH_FIELD(y, x.data, x.len)
			{
				static const char *const want[2][2] = {
					{ "waits", "count" }, { "critical_wait", "nanoseconds" }
				};
				cr_expect_str_eq(strings[y.value], want[types][y.number - 1]);
			}
			types++;
		}
		if (x.number != 2)
			continue;
		uint64_t values[2] = { 0 }, first_location = 0, label_cnt = 0;

		EACH_FIELD(y, x.data, x.len)
		{
			const uint8_t *p = y.data;

			if (y.number == 1)
				first_location = varint(&p);
			if (y.number == 2) {
				values[1] = varint(&p);
				values[0] = varint(&p);
			}
			if (y.number == 3) {
				EACH_FIELD(z, y.data, y.len)
				cr_assert_lt(z.value, string_cnt);
				label_cnt++;
			}
		}
		cr_expect_eq(label_cnt, 4);
		if (values[0] == 123000000)
			cr_expect_str_eq(strings[names[first_location]], "io_schedule");
		if (values[0] == 8200000)
			cr_expect_eq(values[1], 2, "both cpu pieces are one stack");
		ns += values[0];
		waits += values[1];
		samples++;
	}
	cr_expect_eq(types, 2);
	cr_expect_eq(samples, 4);
	cr_expect_eq(ns, f->r.latency_ns, "all samples add up to the path");
	cr_expect_eq(waits, 5);
	cr_expect_eq(locations, functions);
	fixture_free(f);
}

Test(pprof, same_snapshot_same_bytes_and_an_empty_one)
{
	static uint8_t a[65536], b[65536];
	struct snap_fixture *f = fixture_new();
	size_t len = profile_of(f, a, sizeof(a));

	cr_expect_eq(profile_of(f, b, sizeof(b)), len);
	cr_expect_eq(memcmp(a, b, len), 0);
	f->s.request_cnt = 0;
	cr_expect_gt(profile_of(f, a, sizeof(a)), 0);
	FILE *full = fopen("/dev/full", "w");

	setvbuf(full, NULL, _IONBF, 0);
	cr_expect_eq(pprof_write(&f->s, full), -EIO);
	fclose(full);
	fixture_free(f);
}
