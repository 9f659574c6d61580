/* SPDX-License-Identifier: Apache-2.0 */
#include "teller_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PROBE_GAP 2 /* frames without a known name between those of probes */

/* The build-id of the running kernel, from its notes (include/linux/elfnote.h). */
static void kernel_build_id(struct cc_rec_module *m)
{
	uint32_t note[256];
	FILE *f = fopen("/sys/kernel/notes", "re");
	size_t n = f ? fread(note, 1, sizeof(note), f) / 4 : 0;

	if (f)
		fclose(f);
	for (size_t i = 0; i + 3 < n;) {
		size_t name = ((size_t)note[i] + 3) / 4, desc = ((size_t)note[i + 1] + 3) / 4;

		if (name > n || desc > n || i + 3 + name + desc > n)
			return;
		if (note[i + 2] == 3 && note[i] == 4 && !memcmp(&note[i + 3], "GNU", 4) &&
		    note[i + 1] <= sizeof(m->build_id)) {
			m->build_id_len = note[i + 1];
			memcpy(m->build_id, &note[i + 3 + name], note[i + 1]);
			return;
		}
		i += 3 + name + desc;
	}
}

static int tell_kernel(struct teller *t)
{
	static const char note[] = "kernel function names are hidden: give CAP_SYSLOG, or set "
				   "kernel.kptr_restrict to 0 or 1";
	struct cc_rec_module m = { .start = 1ull << 63, .end = UINT64_MAX };
	int err;

	t->kernel_told = true;
	kernel_build_id(&m);
	err = tell_module(t, &m, "[kernel]", 0);
	if (!err && !t->kernel)
		err = tell_name(t, CC_NAME_NOTE, 0, 0, 0, note, sizeof(note) - 1, "", 0);
	return err;
}

size_t probe_frames(const struct teller *t, const __u64 *ip, size_t cnt)
{
	static const char *const ours[] = { "bpf_prog_", "bpf_trace_run", "__traceiter_",
					    "bpf_get_stack", "__bpf_get_stack" };
	size_t skip = 0;

	for (size_t i = 0; t->kernel && i < cnt && i <= skip + PROBE_GAP; i++) {
		const char *name, *module;
		uint64_t off;

		if (kallsyms_find(t->kernel, ip[i] - (i > 0), &name, &module, &off))
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(ours); j++) {
			if (!strncmp(name, ours[j], strlen(ours[j])))
				skip = i + 1;
		}
	}
	return skip < cnt ? skip : 0;
}

int tell_kernel_frames(struct teller *t, const __u64 *ip, size_t cnt)
{
	int err = cnt && !t->kernel_told ? tell_kernel(t) : 0;

	for (size_t i = 0; i < cnt && !err && t->kernel; i++) {
		unsigned int back = i > 0;
		const char *name, *module;
		char text[NAME_MAX_ + 32], place[NAME_MAX_];
		uint64_t off;
		int first = tell_first_time(t, TOLD_FRAME, 0, ip[i]), len, place_len;

		if (first <= 0 || kallsyms_find(t->kernel, ip[i] - back, &name, &module, &off)) {
			err = first < 0 ? first : 0;
			continue;
		}
		len = snprintf(text, sizeof(text), "%.*s+0x%" PRIx64, NAME_MAX_, name, off + back);
		place_len = snprintf(place, sizeof(place), "[%.64s]", *module ? module : "k");
		err = tell_name(t, CC_NAME_FRAME, ip[i], 0, 0, text, (size_t)len, place,
				(size_t)place_len);
	}
	return err;
}
