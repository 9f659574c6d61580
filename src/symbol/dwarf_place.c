/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf_place.h"
#include "demangle.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES_MAX 256

struct dwarf_place {
	struct place_file_id id;
	Dwfl *dwfl;
	Dwfl_Module *mod;
	GElf_Addr bias; /* libdwfl's addresses less those of the file */
};

static char
	*debuginfo_path; /* NULL: libdwfl's own list; it wants a place for it, and never writes */
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debuginfo_path,
};

int dwarf_place_new(const struct place_file_id *id, int fd, struct dwarf_place **ret)
{
	struct dwarf_place *d = calloc(1, sizeof(*d));
	char link[32], path[4096];
	ssize_t len;

	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	d->id = *id;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[CC_MAX(len, 0)] = '\0';
	d->dwfl = dwfl_begin(&callbacks);
	if (d->dwfl) {
		dwfl_report_begin(d->dwfl);
		d->mod = dwfl_report_offline(d->dwfl, "file", path, fd);
		dwfl_report_end(d->dwfl, NULL, NULL);
	}
	if (!d->mod)
		close(fd);
	if (!d->mod || !dwfl_module_getelf(d->mod, &d->bias)) {
		dwarf_place_free(d);
		return -ENOEXEC;
	}
	*ret = d;
	return 0;
}

void dwarf_place_free(struct dwarf_place *d)
{
	if (d->dwfl)
		dwfl_end(d->dwfl);
	free(d);
}

const struct place_file_id *dwarf_place_id(const struct dwarf_place *d) { return &d->id; }

/* Adds a line; cut when @buf is full. */
static CC_PRINTF(2, 3) void add_line(char buf[PLACE_TEXT_MAX], const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	if (len + 2 >= PLACE_TEXT_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(buf + len, PLACE_TEXT_MAX - len, fmt, ap);
	va_end(ap);
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static void add_file(struct place *ret, const char *path, int line, bool last)
{
	const char *base = base_name(path);

	if (base && line > 0)
		add_line(ret->file, "%s:%d%s", base, line, last ? "" : "\n");
	else
		add_line(ret->file, "%s", last ? "" : "\n");
}

/* Where the call of inlined @die stands. */
static const char *call_site(Dwarf_Die *cu, Dwarf_Die *die, int *ret_line)
{
	Dwarf_Attribute at;
	Dwarf_Word file, line;
	Dwarf_Files *files;

	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &at), &line) ||
	    dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &at), &file) ||
	    dwarf_getsrcfiles(cu, &files, NULL))
		return NULL;
	*ret_line = (int)CC_MIN(line, INT32_MAX);
	return dwarf_filesrc(files, file, NULL, NULL);
}

/* Where @die was declared: what it is an instance of, and a definition of. */
static Dwarf_Die declaration(Dwarf_Die die)
{
	static const unsigned int to[] = { DW_AT_abstract_origin, DW_AT_specification };

	for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
		Dwarf_Attribute at;
		Dwarf_Die die2;

		if (dwarf_formref_die(dwarf_attr(&die, to[i], &at), &die2))
			die = die2;
	}
	return die;
}

static bool has_members(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

/* "<lambda>::operator()": a local function of C++ has no other name to tell it by. */
static void add_scopes(Dwarf_Die die, char buf[NAME_BYTES_MAX])
{
	Dwarf_Die at = declaration(die), *scopes = NULL;
	int cnt = dwarf_getscopes_die(&at, &scopes);

	for (int i = 1; i < cnt && has_members(&scopes[i]); i++) {
		const char *name = dwarf_diename(&scopes[i]);
		size_t len, have = strlen(buf) + 1;

		if (!name) /* no other class without a name has members */
			name = dwarf_tag(&scopes[i]) == DW_TAG_namespace ? "(anonymous namespace)"
									 : "<lambda>";
		len = strlen(name);
		if (len + 2 + have > NAME_BYTES_MAX)
			break;
		memmove(buf + len + 2, buf, have);
		memcpy(buf, name, len);
		memcpy(buf + len, "::", 2);
	}
	free(scopes);
}

/* The name of a function that was inlined. False: it has none. */
static bool name_of(Dwarf_Die *cu, Dwarf_Die *die, char buf[NAME_BYTES_MAX])
{
	Dwarf_Attribute at;
	const char *raw = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &at));
	int lang;

	if (raw) {
		demangle(raw, buf, NAME_BYTES_MAX);
		return true;
	}
	raw = dwarf_diename(die);
	if (!raw)
		return false;
	snprintf(buf, NAME_BYTES_MAX, "%s", raw);
	lang = dwarf_srclang(cu);
	if (lang == DW_LANG_C_plus_plus || lang == DW_LANG_C_plus_plus_11 ||
	    lang == DW_LANG_C_plus_plus_14)
		add_scopes(*die, buf);
	return true;
}

/* The functions inlined at @addr, innermost first, a line each, then the function's own place. */
static void add_inlined(struct dwarf_place *d, GElf_Addr addr, const char *path, int line,
			struct place *ret)
{
	Dwarf_Die *scopes = NULL, *chain = NULL;
	Dwarf_Addr dw_bias;
	Dwarf_Die *cu = dwfl_module_addrdie(d->mod, addr, &dw_bias);
	int cnt = cu ? dwarf_getscopes(cu, addr - dw_bias, &scopes) : 0;
	/* the parents in the tree, not those of the inlined function's source */
	int len = cnt > 0 ? dwarf_getscopes_die(&scopes[0], &chain) : 0;

	for (int i = 0; i < len; i++) {
		char name[NAME_BYTES_MAX];

		if (dwarf_tag(&chain[i]) != DW_TAG_inlined_subroutine ||
		    !name_of(cu, &chain[i], name))
			continue;
		add_line(ret->text, "%s\n", name);
		add_file(ret, path, line, false);
		path = call_site(cu, &chain[i], &line);
	}
	add_file(ret, path, line, true);
	free(scopes);
	free(chain);
}

bool dwarf_place_find(struct dwarf_place *d, uint64_t vaddr, unsigned int back, bool named,
		      struct place *ret)
{
	GElf_Addr addr = vaddr - back + d->bias;
	char name[NAME_BYTES_MAX];
	GElf_Off off = 0;
	GElf_Sym sym;
	const char *raw, *path = NULL;
	Dwfl_Line *at;
	int line = 0;

	ret->text[0] = ret->file[0] = '\0';
	raw = dwfl_module_addrinfo(d->mod, addr, &off, &sym, NULL, NULL, NULL);
	if (!raw || off >= sym.st_size) /* the nearest one, not the one it lies in */
		return false;
	at = dwfl_module_getsrc(d->mod, addr);
	if (at)
		path = dwfl_lineinfo(at, NULL, &line, NULL, NULL, NULL);
	if (!path && named)
		return false;
	add_inlined(d, addr, path, line, ret);
	if (named)
		return true;
	demangle(raw, name, sizeof(name));
	name[strcspn(name, "@")] = '\0'; /* a symbol's version */
	add_line(ret->text, "%s+0x%" PRIx64, name, (uint64_t)off + back);
	return true;
}
