/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of our own unwinder: libunwind's remote unwinding, over the same mappings and files. */
#include "symbol_util.h"

#include <elf.h>
#include <errno.h>
#include <libunwind-x86_64.h>
#include <stdlib.h>
#include <string.h>

/* libunwind has this for remote unwinders, but in no header. It looks up @ip in the table @di,
 * reads FDE and CIE through the accessors and fills @pi. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di,
				       unw_proc_info_t *pi, int need_unwind_info, void *arg);

/* We look up the FDE ourselves and show libunwind a table of one row at an address that no process
 * can have. */
#define TABLE_ADDR 0xfff0000000000000ull
struct table_row {
	int32_t start; /* both relative to segbase */
	int32_t fde;
};
_Static_assert(sizeof(struct table_row) == sizeof(unw_word_t), "one word");

#define READS_MAX 20000 /* words per unwind: hostile unwind programs can loop */
#define CACHE_LOG2 9    /* rules kept per process */

struct lu {
	struct unwinder base;
	struct file_cache *files;
	unw_addr_space_t as;
	/* of the unwind that is running */
	struct maps *maps;
	const struct unwind_in *in;
	struct table_row row;
	unsigned int reads;
	bool in_info;    /* reading unwind information, not memory of the process */
	bool no_info;    /* there was none for this frame */
	bool beyond;     /* asked for stack that was not taken */
	uint64_t no_map; /* an address without code */
};

static bool read_stack(const struct lu *u, uint64_t addr, unw_word_t *ret)
{
	uint64_t at = addr - u->in->sp;

	if (addr < u->in->sp || u->in->stack_len < sizeof(*ret) ||
	    at > u->in->stack_len - sizeof(*ret))
		return false;
	memcpy(ret, u->in->stack + at, sizeof(*ret));
	return true;
}

/* Code, constants and unwind information: what no program writes to, so the file has it too. */
static bool read_mapped(struct lu *u, uint64_t addr, unw_word_t *ret)
{
	struct mapping *p = maps_find(u->maps, addr);
	struct elf_file *f =
		p && (!p->write || u->in_info) ? maps_file(u->maps, p, u->files) : NULL;

	*ret = 0;
	return f && elf_file_read(f, addr - p->start + p->off, ret,
				  CC_MIN(sizeof(*ret), p->end - addr)) > 0;
}

static int access_mem(unw_addr_space_t as CC_UNUSED, unw_word_t addr, unw_word_t *val, int write,
		      void *arg)
{
	struct lu *u = arg;

	if (write || u->reads++ >= READS_MAX)
		return -UNW_EINVAL;
	if (addr == TABLE_ADDR && u->in_info) {
		memcpy(val, &u->row, sizeof(*val));
		return 0;
	}
	if (read_stack(u, addr, val) || read_mapped(u, addr, val))
		return 0;
	/* a personality routine's address or the like, which does not matter */
	if (u->in_info) {
		*val = 0;
		return 0;
	}
	u->beyond |= addr >= u->in->sp;
	return -UNW_EINVAL;
}

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need_info,
			  void *arg)
{
	struct lu *u = arg;
	struct mapping *p = maps_find(u->maps, ip);
	struct elf_file *f = p && p->exec ? maps_file(u->maps, p, u->files) : NULL;
	const struct fde *fde;
	uint64_t vaddr;
	int err;

	u->no_info = true;
	if (!f || f->machine != EM_X86_64 || maps_vaddr(p, f, ip, &vaddr))
		return -UNW_ENOINFO;
	fde = ehframe_find(f->fdes, f->fde_cnt, vaddr);
	if (!fde)
		return -UNW_ENOINFO;

	uint64_t bias = ip - vaddr, start = bias + fde->start,
		 fde_addr = bias + f->eh_addr + fde->off;
	int64_t distance = (int64_t)(fde_addr - start);

	if (distance != (int32_t)distance)
		return -UNW_ENOINFO;
	u->row = (struct table_row){ 0, (int32_t)distance };
	unw_dyn_info_t di = {
		.start_ip = start,
		.end_ip = start + fde->len,
		.format = UNW_INFO_FORMAT_REMOTE_TABLE,
		.u.rti = { .segbase = start, .table_len = 1, .table_data = TABLE_ADDR },
	};
	u->in_info = true;
	err = UNW_OBJ(dwarf_search_unwind_table)(as, ip, &di, pi, need_info, arg);
	u->in_info = false;
	u->no_info = err < 0;
	return err;
}

static void put_unwind_info(unw_addr_space_t as CC_UNUSED, unw_proc_info_t *pi CC_UNUSED,
			    void *arg CC_UNUSED)
{
}

static int get_dyn_info_list(unw_addr_space_t as CC_UNUSED, unw_word_t *addr CC_UNUSED,
			     void *arg CC_UNUSED)
{
	return -UNW_ENOINFO;
}

static int access_reg(unw_addr_space_t as CC_UNUSED, unw_regnum_t reg, unw_word_t *val, int write,
		      void *arg)
{
	const struct lu *u = arg;

	if (write)
		return -UNW_EREADONLYREG;
	if (reg < 0 || reg > UNW_X86_64_RIP)
		return -UNW_EBADREG;
	*val = reg == UNW_X86_64_RIP ? u->in->ip : u->in->regs[reg];
	return 0;
}

static int access_fpreg(unw_addr_space_t as CC_UNUSED, unw_regnum_t reg CC_UNUSED,
			unw_fpreg_t *val CC_UNUSED, int write CC_UNUSED, void *arg CC_UNUSED)
{
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t as CC_UNUSED, unw_cursor_t *c CC_UNUSED, void *arg CC_UNUSED)
{
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t as CC_UNUSED, unw_word_t addr CC_UNUSED,
			 char *buf CC_UNUSED, size_t len CC_UNUSED, unw_word_t *off CC_UNUSED,
			 void *arg CC_UNUSED)
{
	return -UNW_ENOINFO;
}

/* One step outwards. Returns true if there is a next frame, else sets out->end. */
static bool step(struct lu *u, unw_cursor_t *cursor, struct unwind_out *out)
{
	unw_word_t before = 0, after = 0;
	int ret;

	u->no_info = false;
	u->beyond = false;
	unw_get_reg(cursor, UNW_REG_SP, &before);
	ret = unw_step(cursor);
	if (u->no_info)
		out->guessed = true;
	if (ret > 0) {
		unw_get_reg(cursor, UNW_REG_SP, &after);
		if (after > before || u->no_info)
			return true;
		out->end = UNWIND_BAD; /* a stack grows down: this would go round in circles */
		return false;
	}
	if (u->beyond)
		out->end = UNWIND_CUT;
	else if (u->no_info)
		out->end = UNWIND_NO_CFI;
	else
		out->end = ret == 0 ? UNWIND_START : UNWIND_BAD;
	return false;
}

static void lu_unwind(struct unwinder *base, struct maps *m, const struct unwind_in *in,
		      struct unwind_out *out)
{
	struct lu *u = (struct lu *)base;
	unw_cursor_t cursor;
	unw_word_t ip = in->ip;

	u->maps = m;
	u->in = in;
	u->reads = 0;
	out->cnt = 0;
	out->guessed = false;
	out->miss = 0;
	out->end = UNWIND_BAD;
	if (unw_init_remote(&cursor, u->as, u))
		return;
	do {
		struct mapping *p = maps_find(m, out->cnt ? ip - 1 : ip);

		if (!p || !p->exec) {
			out->end = UNWIND_NO_MAP;
			out->miss = ip;
			return;
		}
		if (out->cnt == CC_STACK_MAX) {
			out->end = UNWIND_DEEP;
			return;
		}
		out->ip[out->cnt++] = ip;
	} while (step(u, &cursor, out) && !unw_get_reg(&cursor, UNW_REG_IP, &ip));
}

static void lu_free(struct unwinder *base)
{
	struct lu *u = (struct lu *)base;

	if (u->as)
		unw_destroy_addr_space(u->as);
	free(u);
}

static const struct unwinder_ops lu_ops = {
	.name = "libunwind",
	.unwind = lu_unwind,
	.free = lu_free,
};

int unwind_libunwind_new(struct file_cache *c, struct unwinder **ret)
{
	static unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = get_dyn_info_list,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
		.get_proc_name = get_proc_name,
	};
	struct lu *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->base.ops = &lu_ops;
	u->files = c;
	u->as = unw_create_addr_space(&accessors, 0);
	if (!u->as) {
		lu_free(&u->base);
		return -ENOMEM;
	}
	/* not PER_THREAD: that cache is shared by all address spaces of a thread */
	unw_set_caching_policy(u->as, UNW_CACHE_GLOBAL);
	unw_set_cache_size(u->as, 1 << CACHE_LOG2, 0);
	*ret = &u->base;
	return 0;
}
