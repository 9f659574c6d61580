// SPDX-License-Identifier: GPL-2.0-only
/* layout: a process asks where there is room for a mapping. If it has another amount of code by now
 * than when its layout was read, that layout is void for good: what comes next may make the amounts
 * equal again (dlclose() of one library, dlopen() of another). Optional: without it such a swap is
 * noticed when its mappings are read the next time. */
#include "layout.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/vm_unmapped_area")
int vm_unmapped_area(void *ctx)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct mm_struct *mm = cur->mm;
	__u32 tgid = cur->tgid;
	struct cc_layout *l = bpf_map_lookup_elem(&layouts, &tgid);

	if (l && mm && mm->exec_vm != l->code_pages)
		bpf_map_delete_elem(&layouts, &tgid);
	return 0;
}
