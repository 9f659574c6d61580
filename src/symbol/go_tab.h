/* SPDX-License-Identifier: Apache-2.0 */
/* go_tab: the table that a Go program carries to name its own functions (pclntab): by address the
 * function, file and line, what was inlined there, and how much lies on the stack. Never stripped.
 * Forms of Go 1.18 (magic f0), 1.20 (f1) and 1.26 (f1, where the text begins is told elsewhere).
 * The file is hostile.
 * Sources: runtime/symtab.go, cmd/link/internal/ld/pcln.go, internal/abi/symtab.go. */
#ifndef CC_GO_TAB_H
#define CC_GO_TAB_H

#include "base.h"

#define GO_NAME_MAX 256   /* longer names are cut */
#define GO_BY_NAME_MAX 64 /* functions to look for at once */

struct elf_file;
struct go_image;
struct go_tab;

struct go_func {
	uint64_t entry, end; /* as linked; end is where the next one begins */
	uint64_t data;       /* what lies behind its record, in the table */
	uint32_t name;       /* offset of its name */
	uint32_t pcsp, pcfile, pcline, npcdata, cu;
	uint8_t flags; /* GO_FUNC_* */
	uint8_t nfuncdata;
};
enum {
	GO_FUNC_TOP = 1,      /* nothing called it: the first function of a stack */
	GO_FUNC_SP_WRITE = 2, /* it changes stacks: what called it stands on another one */
	/* by go_tab_frame() alone: */
	GO_FUNC_CLONE = 32,    /* makes a thread, which begins in it: on another stack, AX is 0 */
	GO_FUNC_LEFT = 64,     /* the goroutine left the thread here, nothing comes back */
	GO_FUNC_INJECTED = 128 /* it was not called: what stands below was interrupted */
};

/* Where one address is: a call that was inlined, or the function itself. */
struct go_place {
	char name[GO_NAME_MAX];
	char file[GO_NAME_MAX]; /* the end of a longer one; "" unknown */
	int32_t line;           /* 0: unknown */
};

/* Finds the table of @f. Returns 0; -ENOEXEC if it is no Go program; -ENOTSUP if it is one before
 * 1.18; -EBADMSG if it is damaged; -ENOMEM. Reads @f until it is freed, owns no reference. */
CC_NODISCARD int go_tab_new(struct elf_file *f, struct go_tab **ret);
void go_tab_free(struct go_tab *t); /* NULL is a no-op */
size_t go_tab_mem(const struct go_tab *t);

bool go_tab_is_120(const struct go_tab *t);  /* written by Go 1.20 or newer */
uint32_t go_tab_cnt(const struct go_tab *t); /* functions */

/* The function that @pc lies in, and the @i-th. Returns false if there is none. */
bool go_tab_func(struct go_tab *t, uint64_t pc, struct go_func *ret);
bool go_tab_func_at(struct go_tab *t, uint32_t i, struct go_func *ret);
void go_tab_name(struct go_tab *t, uint32_t name, char *buf, size_t cap);

/* Finds functions by name: ret[i] belongs to @names[i], entry 0: there is none of that name. */
CC_NODISCARD int go_tab_by_name(struct go_tab *t, const char *const *names, size_t cnt,
				struct go_func *ret);

/* Finds functions whose name @match says yes to: up to GO_BY_NAME_MAX into @ret, some with entry 0
 * (a name that is only one of inlined code). *ret_cnt: how many names there are. */
CC_NODISCARD int go_tab_by_match(struct go_tab *t, bool (*match)(const char *name, size_t len),
				 struct go_func *ret, size_t *ret_cnt);

/* Writes what stands at @pc, innermost first: what was inlined, then the function. Returns how
 * many, 0: no Go code. */
size_t go_tab_places(struct go_tab *t, uint64_t pc, struct go_place *ret, size_t cap);

/* How to leave the function at @pc. Returns false if it is no Go code, or nothing is known.
 * *ret_size: bytes from the stack pointer up to the return address. *ret_flags: GO_FUNC_*. */
bool go_tab_frame(struct go_tab *t, uint64_t pc, uint32_t *ret_size, uint8_t *ret_flags);

#endif
