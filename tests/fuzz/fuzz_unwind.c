/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a target's program, and its end as the stack and registers of a thread that runs it:
 * unwinding ends, and the kernel side, which follows the rules that it gave, finds the same. A
 * program of arm64 is run as that. */
#include <string.h>

#include "fuzz.h"
#include "rules_walk.h"

#define STACK_WORDS 64
#define REG_WORDS 18
#define STACK_AT 0x7ff000000000ull
#define CODE_AT 0x400000ull

/* A word that means something: a place in the code, or on the stack. */
static uint64_t meant(uint64_t word, uint64_t code)
{
	return word & 1 ? CODE_AT + (word >> 1) % code
			: STACK_AT + (word >> 1) % (STACK_WORDS * 8) * (word >> 62 ? 1 : 8);
}

static void one_stack(struct unwinder *u, struct maps *m, const uint64_t *words, uint64_t code)
{
	union {
		struct cc_rec_snap s;
		uint64_t room[sizeof(struct cc_rec_snap) / 8 + STACK_WORDS];
	} snap = { .s = { .h.kind = CC_REC_SNAP } };
	struct unwind_in in;
	struct unwind_out out;
	const struct cfi_arch *arch = cfi_arch(m->v[0].file->machine);
	unsigned int no_rule;
	const char *differs;

	arch = arch ? arch : cfi_arch(CFI_MACHINE_HERE);

	snap.s.byte_cnt = STACK_WORDS * 8;
	snap.s.ip = CODE_AT + words[0] % code;
	snap.s.sp = STACK_AT + words[1] % 128;
	snap.s.bp = meant(words[2], code);
	for (unsigned int i = 0; i < 13; i++)
		snap.s.regs[i] = meant(words[3 + i], code);
	for (unsigned int i = 0; i < STACK_WORDS; i++)
		snap.s.data[i] = words[REG_WORDS + i] % 16 ? meant(words[REG_WORDS + i], code) : 0;
	unwind_in_of(arch, &snap.s, &in);
	in.learn = true;
	u->ops->unwind(u, m, &in, &out);
	if (out.cnt > CC_STACK_MAX || out.end >= UNWIND_END_CNT)
		abort();
	if (arch->link)
		return; /* without rules */
	differs = rules_differ(&snap.s, &out, &no_rule);
	if (differs) {
		fprintf(stderr, "by rules: %s\n", differs);
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char text[] = "400000-800000 r-xp 00000000 08:01 7 /fuzz\n";
	uint64_t words[REG_WORDS + STACK_WORDS] = { 0 };
	struct file_cache *files;
	struct unwinder *u;
	struct maps m;
	bool changed;
	char path[32];

	if (file_cache_new(&files) || unwind_rows_new(files, &u))
		abort();
	maps_init(&m, 1);
	if (maps_parse(&m, text, sizeof(text) - 1, &changed))
		abort();
	m.v[0].tried = true;
	if (!elf_file_new(fuzz_file(data, len, path), &m.v[0].file)) {
		uint64_t code = CC_MIN(len, (size_t)0x400000);

		memcpy(words, data + len - CC_MIN(len, sizeof(words)), CC_MIN(len, sizeof(words)));
		for (unsigned int i = 0; i < 8; i++) {
			one_stack(u, &m, words, code);
			words[0] += code / 8 + 1; /* another place in the same code */
		}
	} else {
		m.v[0].file = NULL;
	}
	maps_done(&m);
	unwinder_free(u);
	file_cache_free(files);
	return 0;
}
