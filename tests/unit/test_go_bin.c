/* SPDX-License-Identifier: Apache-2.0 */
/* A Go program's file: version, layout, places to probe, wait reasons, however it was linked. */
#include "elf_file.h"
#include "go_fixture.h"
#include "go_layout_find.h"
#include "go_sites.h"
#include "go_tab.h"
#include "wait_class.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(go_bin, .timeout = 60);

/* What `go version` says built the programs. */
static void built_by(char *ret, size_t cap)
{
	FILE *f = popen("cd " CC_SRC_DIR "/tests/go/waits && go env GOVERSION", "r");

	cr_assert(f && fgets(ret, (int)cap, f));
	pclose(f);
	ret[strcspn(ret, "\n")] = '\0';
}

Test(go_bin, version_and_layout)
{
	char want[64];
	unsigned int with_dwarf = 0;

	go_needed();
	built_by(want, sizeof(want));
	for (int i = 0; i < GO_KINDS; i++) {
		struct go_bin *b = go_open(go_kinds[i]);

		cr_expect_str_eq(b->t.version, want, "%s", go_kinds[i]);
		cr_expect_eq(b->t.version_by, GO_FOUND_BUILDINFO);
		cr_expect_eq(b->t.layout_by, i ? GO_FOUND_TABLE : GO_FOUND_DWARF, "%s",
			     go_kinds[i]);
		with_dwarf += b->t.layout_by == GO_FOUND_DWARF;
		cr_expect(go_layout_whole(&b->t.layout));
		/* the C library of a static program has thread-local data of its own */
		cr_expect(b->t.has_tls && (i == 4 ? b->t.tls_off < -8 : b->t.tls_off == -8),
			  "%s: %ld", go_kinds[i], (long)b->t.tls_off);
		go_bin_free(b);
	}
	cr_expect_eq(with_dwarf, 1);
}

/* Two ways to the same answer: the table must be what this compiler says itself. */
Test(go_bin, table_is_what_dwarf_says)
{
	struct go_layout l;
	enum go_found by;
	struct cc_err err;

	go_needed();
	struct go_bin *b = go_open("dwarf");

	cr_assert_eq(go_layout_table(NULL, b->t.minor, &l, &by, &err), 0, "%s", err.msg);
	cr_expect_eq(by, GO_FOUND_TABLE);
	cr_expect_arr_eq(&l, &b->t.layout, sizeof(l));
	go_bin_free(b);
}

/* A version string that is not told in the usual place is found by how the program reads it. */
Test(go_bin, version_without_buildinfo)
{
	struct elf_file *f;
	char want[64], path[] = "/tmp/go-bin-XXXXXX";
	struct cc_err err;
	struct go_bin *b;
	int fd, from;
	char zeros[16] = { 0 };
	char *buf = malloc(8 << 20);
	ssize_t n;

	go_needed();
	built_by(want, sizeof(want));
	from = go_fd("strip");
	n = read(from, buf, 8 << 20);
	fd = mkstemp(path);
	unlink(path);
	cr_assert(fd >= 0 && n > 0 && write(fd, buf, (size_t)n) == n);
	cr_assert_eq(elf_file_new(from, &f), 0);
	cr_assert_gt(f->go_info_at.len, 0);
	cr_assert_eq(pwrite(fd, zeros, sizeof(zeros), (off_t)f->go_info_at.off), sizeof(zeros));
	elf_file_put(f);
	cr_assert_eq(go_bin_open(fd, NULL, &b, &err), 0, "%s", err.msg);
	cr_expect_eq(b->t.version_by, GO_FOUND_SCAN);
	cr_expect_str_eq(b->t.version, want);
	go_bin_free(b);
	free(buf);
}

/* Where channels copy into their buffers and out of them, and where who was made is queued: calls,
 * each another one, or the nop that stands before. */
Test(go_bin, calls_are_found)
{
	go_needed();
	for (int i = 0; i < GO_KINDS; i++) {
		struct go_bin *b = go_open(go_kinds[i]);

		for (unsigned int k = GO_FN_CNT; k < GO_SITE_CNT; k++) {
			const struct go_site *s = &b->t.sites[k];
			uint64_t of = b->t.sites[k == GO_FN_CALL_MADE ? GO_FN_RUNQPUT
								      : GO_FN_TYPEDMEMMOVE]
					      .entry;
			uint8_t code[5], at;
			int32_t far;

			cr_assert(s->off, "%s: %s", go_kinds[i], go_func_name(k));
			cr_expect(s->insn == GO_INSN_CALL || s->insn == GO_INSN_NOP5);
			at = s->insn == GO_INSN_NOP5 ? 5 : 0;
			cr_assert_eq(pread(b->file->fd, code, sizeof(code), (off_t)s->off + at),
				     sizeof(code));
			memcpy(&far, code + 1, sizeof(far));
			cr_expect(code[0] == 0xe8 &&
				  s->entry + s->delta + at + 5 + (uint64_t)(int64_t)far == of);
			for (unsigned int j = GO_FN_CNT; j < k; j++)
				cr_expect_neq(b->t.sites[j].off, s->off);
		}
		go_bin_free(b);
	}
}

/* Where a probe costs a quarter; what is not sure is not used. */
Test(go_bin, nops_before_calls)
{
	static const uint8_t nop[5] = { 0x0f, 0x1f, 0x44, 0, 0 };

	go_needed();
	for (int i = 0; i < GO_KINDS; i++) {
		struct go_bin *b = go_open(go_kinds[i]);
		const struct go_ready *r = &b->t.ready;
		const struct go_site *send = &b->t.sites[GO_FN_SEND];
		uint32_t nops = 0, by_sudog = 0, sent = 0;
		uint8_t code[5];

		cr_expect_eq(b->t.sites[GO_FN_CALL_MADE].insn, GO_INSN_NOP5, "%s", go_kinds[i]);
		for (uint32_t k = 0; k < r->cnt; k++) {
			const struct go_ready_at *at = &r->at[k];

			cr_assert_eq(pread(b->file->fd, code, sizeof(code), (off_t)at->off),
				     sizeof(code));
			cr_expect_eq(at->nop, !memcmp(code, nop, sizeof(nop)));
			cr_expect(at->nop || code[0] == 0xe8);
			/* whose calls are probed; else that would be told twice */
			cr_expect(at->off < send->off - send->delta ||
					  at->off >= send->off - send->delta + send->size,
				  "%s: in send()", go_kinds[i]);
			nops += at->nop;
			by_sudog += at->nop && at->arg == GO_READY_SUDOG;
			sent += at->nop && at->arg == GO_READY_SEND;
		}
		cr_expect_eq(r->nops, nops);
		/* goready() is a function until 1.20, and its calls need no nop, but those of who
		 * calls it do: chansend(), of a channel's receiver; from then on it is in its
		 * callers, so there are several */
		if (b->t.minor <= 20)
			cr_expect(sent == 1 && r->cnt > nops, "%s: %u of %u", go_kinds[i], sent,
				  r->cnt);
		else
			cr_expect(nops >= 5 && !by_sudog && !sent, "%s: %u of %u", go_kinds[i],
				  nops, r->cnt);
		go_bin_free(b);
	}
}

Test(go_bin, a_call_by_its_target)
{
	/* nop; call +0; call -10 */
	static const uint8_t code[] = {
		0x90, 0xe8, 0, 0, 0, 0, 0xe8, 0xf6, 0xff, 0xff, 0xff, 0xe8
	};

	cr_expect_eq(go_site_call_x86(code, sizeof(code), 0x1000, 0x1006, 0), 1);
	cr_expect_eq(go_site_call_x86(code, sizeof(code), 0x1000, 0x1001, 0), 6);
	cr_expect_eq(go_site_call_x86(code, sizeof(code), 0x1000, 0x1006, 1), sizeof(code),
		     "one only");
	cr_expect_eq(go_site_call_x86(code, sizeof(code), 0x1000, 0x2000, 0), sizeof(code));
	cr_expect_eq(go_site_call_x86(code, 5, 0x1000, 0x1006, 0), 5, "cut off");
	cr_expect_eq(go_site_call_x86(code, 0, 0x1000, 0x1006, 0), 0);
}

Test(go_bin, sites_are_emulated)
{
	/* found in every version, and asked for at every wait */
	static const unsigned int must[] = { GO_FN_GOPARK,      GO_FN_READY,    GO_FN_EXECUTE,
					     GO_FN_CASGSTATUS,  GO_FN_NEWPROC1, GO_FN_CHANSEND,
					     GO_FN_CHANRECV,    GO_FN_SEND,     GO_FN_RECV,
					     GO_FN_SEMACQUIRE1, GO_FN_GOEXIT0,  GO_FN_RUNQPUT };

	go_needed();
	for (int i = 0; i < GO_KINDS; i++) {
		struct go_bin *b = go_open(go_kinds[i]);

		for (size_t k = 0; k < ARRAY_SIZE(must); k++) {
			const struct go_site *s = &b->t.sites[must[k]];
			uint8_t code[2] = { 0 };

			cr_assert(s->off && s->args, "%s: %s", go_kinds[i], go_func_name(must[k]));
			cr_assert_eq(elf_file_read(b->file, s->off, code, sizeof(code)), 2);
			/* judged by the bytes alone: push %rbp, jbe, nop, call */
			cr_expect(s->insn == GO_INSN_PUSH  ? code[0] == 0x55
				  : s->insn == GO_INSN_JCC ? code[0] == 0x76 || code[1] == 0x86
				  : s->insn == GO_INSN_NOP
					  ? code[0] == 0x90
					  : s->insn == GO_INSN_CALL && code[0] == 0xe8,
				  "%s: %s is %s: %02x %02x", go_kinds[i], go_func_name(must[k]),
				  go_insn_name(s->insn), code[0], code[1]);
			cr_expect_eq(s->repeats, s->insn == GO_INSN_JCC && !s->framed);
		}
		go_bin_free(b);
	}
}

Test(go_bin, wait_reasons)
{
	static const struct {
		const char *name;
		uint8_t cls;
	} want[] = { { "IO wait", WAIT_POLL },        { "select", WAIT_SELECT },
		     { "chan receive", WAIT_CHAN },   { "chan send", WAIT_CHAN },
		     { "sleep", WAIT_SLEEP },         { "semacquire", WAIT_SEMA },
		     { "sync.Cond.Wait", WAIT_COND }, { "GC assist wait", WAIT_GC } };

	go_needed();
	for (int i = 0; i < GO_KINDS; i++) {
		struct go_bin *b = go_open(go_kinds[i]);
		const struct go_reasons *r = &b->t.reasons;

		cr_expect_geq(r->cnt, 27, "%s", go_kinds[i]);
		for (size_t k = 0; k < ARRAY_SIZE(want); k++) {
			uint32_t at = 0;

			while (at < r->cnt && strcmp(r->name[at], want[k].name))
				at++;
			cr_expect(at < r->cnt && r->cls[at] == want[k].cls, "%s: %s", go_kinds[i],
				  want[k].name);
		}
		go_bin_free(b);
	}
}

static int refused(const char *path, const struct go_bin_opts *o, struct cc_err *err)
{
	struct go_bin *b = NULL;
	int res = go_bin_open(open(path, O_RDONLY), o, &b, err);

	cr_expect_lt(res, 0);
	cr_expect_gt(strlen(err->msg), 0);
	cr_expect_null(strchr(err->msg, '\n'));
	return res;
}

Test(go_bin, what_is_none_is_refused_in_a_line)
{
	struct cc_err err;

	cr_expect_eq(refused("/proc/self/exe", NULL, &err), -ENOEXEC);
	cr_expect_eq(refused("/etc/passwd", NULL, &err), -ENOEXEC);
}

Test(go_bin, offsets_file)
{
	char path[] = "/tmp/go-offsets-XXXXXX", exe[512];
	struct go_bin_opts o = { .offsets = path };
	struct go_layout l;
	enum go_found by;
	struct cc_err err;
	int fd = mkstemp(path);

	go_needed();
	snprintf(exe, sizeof(exe), CC_GO_DIR "/waits-strip");
	cr_assert_gt(write(fd, "{\"go1.19\": {\"g.m\": 48}}", 23), 0);
	cr_expect_eq(refused(exe, &o, &err), -EINVAL);
	cr_expect_neq(strstr(err.msg, path), NULL, "%s", err.msg);
	cr_assert_eq(ftruncate(fd, 5), 0);
	cr_expect_eq(refused(exe, &o, &err), -EINVAL);
	unlink(path);
	cr_expect_lt(refused(exe, &o, &err), 0);
	close(fd);
	/* newer than all that is known */
	cr_expect_eq(go_layout_table(NULL, 99, &l, &by, &err), 0);
	cr_expect_eq(by, GO_FOUND_NEWEST);
	cr_expect_eq(go_layout_table(NULL, 17, &l, &by, &err), -ENOENT);
}
