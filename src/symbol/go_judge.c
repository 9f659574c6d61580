/* SPDX-License-Identifier: Apache-2.0 */
#include "elf_file.h"
#include "go_bin.h"
#include "go_tab.h"
#include "maps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* How far the code of @f was moved in process @pid. */
static int find_bias(const struct elf_file *f, pid_t pid, uint64_t *ret)
{
	struct maps m;
	bool changed;
	int err;

	maps_init(&m, (uint32_t)pid);
	err = maps_refresh(&m, &changed);
	for (size_t i = 0; i < m.cnt && !err; i++) {
		uint64_t vaddr;

		if (!m.v[i].exec || m.v[i].ino != f->ino ||
		    maps_vaddr(&m.v[i], f, m.v[i].start, &vaddr))
			continue;
		*ret = m.v[i].start - vaddr;
		maps_done(&m);
		return 0;
	}
	maps_done(&m);
	return err ? err : -ESRCH;
}

static int derive(struct go_bin *b, const struct go_live *p, const struct go_sample *s, size_t cnt,
		  struct go_verdict *ret_v)
{
	struct go_layout l;
	int err = go_live_derive(p, s, cnt, &l, ret_v->why, sizeof(ret_v->why));

	if (!err)
		err = go_live_check(p, &l, s, cnt, ret_v);
	if (!err) {
		b->t.layout = l;
		b->t.layout_by = GO_FOUND_LIVE;
	}
	return err;
}

int go_bin_judge(struct go_bin *b, pid_t pid, const struct go_sample *s, size_t cnt,
		 struct go_verdict *ret_v)
{
	struct go_live p = { .read = go_live_read_process, .ctx = &pid, .t = &b->t };
	int err = elf_file_go(b->file, true, &p.tab), more;

	*ret_v = (struct go_verdict){ 0 };
	if (!err)
		err = find_bias(b->file, pid, &p.bias);
	if (err) {
		snprintf(ret_v->why, sizeof(ret_v->why), "process %d: %s", pid, strerror(-err));
		return err;
	}
	b->t.allgs = b->allgs ? b->allgs + p.bias : 0; /* of this process */
	if (b->t.layout_by == GO_FOUND_NONE) {
		err = derive(b, &p, s, cnt, ret_v);
		return err == -ENOENT ? -EAGAIN : err;
	}
	err = go_live_check(&p, &b->t.layout, s, cnt, ret_v);
	if (err != -EINVAL)
		return err;
	more = derive(b, &p, s, cnt, &(struct go_verdict){ 0 });
	return more ? (more == -ENOMEM ? more : err)
		    : go_live_check(&p, &b->t.layout, s, cnt, ret_v);
}
