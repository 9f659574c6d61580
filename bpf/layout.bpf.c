// SPDX-License-Identifier: GPL-2.0-only
/* layout: a process asks where there is room for a mapping. If it has another amount of code by now
 * than when it was looked at last, that is counted: what comes next may make the amounts equal
 * again (dlclose() of one library, dlopen() of another). Optional: without it such a swap is
 * noticed when its mappings are read the next time. */
#include "layout.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/vm_unmapped_area")
int vm_unmapped_area(void *ctx)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct mm_struct *mm = cur->mm;
	__u32 tgid = cur->tgid;
	struct code_seen *c = bpf_map_lookup_elem(&code_seen, &tgid);

	if (c && mm)
		code_change(c, mm->exec_vm);
	return 0;
}
