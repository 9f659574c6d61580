/* SPDX-License-Identifier: Apache-2.0 */
#include "go_sites.h"
#include "elf_file.h"
#include "go_insn.h"
#include "go_tab.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define CODE_MAX 96 /* bytes of a function that are looked at */

static bool code_is_push(const uint8_t *code, size_t at, size_t len)
{
	return at < len && go_insn_x86(code + at, len - at).probe == GO_INSN_PUSH;
}

/* Go's way to begin (cmd/internal/obj/x86): [lea -n(%rsp),%r12;] cmp 0x10(%r14),%rsp; jbe grow;
 * then, from 1.21, push %rbp; mov %rsp,%rbp; sub $n,%rsp, and before that sub $n,%rsp; mov
 * %rbp,n-8(%rsp); lea n-8(%rsp),%rbp. Functions that need little stack have no check. All up to the
 * first branch is passed once, at every call. */
void go_site_x86(const uint8_t *code, size_t len, struct go_site *ret)
{
	bool framed = false, checked = false;
	size_t at = 0;

	*ret = (struct go_site){ .insn = GO_INSN_STEP, .args = true };
	while (at < len) {
		struct go_op op = go_insn_x86(code + at, len - at);

		if (!op.len || !op.keeps_args)
			return;
		/* behind the check there may be a push, which is not met twice */
		bool grows = op.probe == GO_INSN_JCC && checked && !framed;

		if (op.probe != GO_INSN_STEP && !(grows && code_is_push(code, at + op.len, len))) {
			ret->delta = (uint16_t)at;
			ret->insn = op.probe;
			ret->framed = framed;
			ret->repeats = grows;
			return;
		}
		framed |= op.stack_moves;
		checked |= op.checks_stack;
		at += op.len;
	}
}

/* ldr 16(x28),x16; [sub $n,sp,x17;] cmp sp,x16; b.ls grow. */
void go_site_arm64(const uint8_t *code, size_t len, struct go_site *ret)
{
	*ret = (struct go_site){ .insn = GO_INSN_STEP, .args = true };
	for (size_t at = 0; at + 4 <= CC_MIN(len, 24); at += 4) {
		uint32_t op;

		memcpy(&op, code + at, sizeof(op));
		if ((op & 0xff00001f) == 0x54000009) { /* b.ls */
			ret->delta = (uint16_t)at;
			ret->insn = GO_INSN_JCC;
			ret->repeats = true;
			return;
		}
		if (!at && op != 0xf9400b90) /* ldr 16(x28),x16 */
			return;
	}
}

static bool site_of(struct elf_file *f, const struct go_func *fn, struct go_site *ret)
{
	uint8_t code[CODE_MAX];
	const struct elf_seg *s = elf_file_seg(f, fn->entry);
	size_t want = CC_MIN(fn->end - fn->entry, sizeof(code));

	if (!s || !s->exec || fn->entry - s->vaddr >= s->filesz ||
	    elf_file_read_at(f, fn->entry, code, want) != (ssize_t)want)
		return false;
	if (f->machine == EM_X86_64)
		go_site_x86(code, want, ret);
	else
		go_site_arm64(code, want, ret);
	ret->entry = fn->entry;
	ret->size = (uint32_t)CC_MIN(fn->end - fn->entry, UINT32_MAX);
	ret->off = s->off + (fn->entry - s->vaddr) + ret->delta;
	return true;
}

int go_sites_find(struct elf_file *f, struct go_tab *tab, struct go_site *ret)
{
	const char *names[GO_FN_CNT];
	struct go_func fns[GO_FN_CNT];
	int err;

	for (unsigned int i = 0; i < GO_FN_CNT; i++)
		names[i] = go_func_name(i);
	err = go_tab_by_name(tab, names, GO_FN_CNT, fns);
	for (unsigned int i = 0; i < GO_FN_CNT && !err; i++) {
		if (!fns[i].entry || !site_of(f, &fns[i], &ret[i]))
			ret[i] = (struct go_site){ 0 };
	}
	return err;
}
