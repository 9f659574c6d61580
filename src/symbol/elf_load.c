/* SPDX-License-Identifier: Apache-2.0 */
#include "elf_load.h"
#include "radix.h"
#include "rank.h"
#include "table_cache.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define SYM_MAX (1u << 20)
#define SECTION_MAX (64u << 20) /* bytes: a table beyond this is not read */
#define SEG_MAX 64
#define TLS_MAX (1u << 20)

struct loader { /* for the time of one load */
	struct elf_file *f;
	Elf *elf;
	const char *str; /* the string table that goes with the symbols */
	size_t str_len;
};

static int load_segments(struct loader *l)
{
	struct elf_file *f = l->f;
	size_t cnt = 0;

	if (elf_getphdrnum(l->elf, &cnt) || !cnt)
		return 0;
	f->segs = calloc(CC_MIN(cnt, SEG_MAX), sizeof(*f->segs));
	if (!f->segs)
		return -ENOMEM;
	for (size_t i = 0; i < cnt && f->seg_cnt < SEG_MAX; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(l->elf, (int)i, &p))
			break;
		if (p.p_type == PT_NOTE && !f->note_len) {
			f->note_vaddr = p.p_vaddr;
			f->note_off = p.p_offset;
			f->note_len = p.p_filesz;
		}
		if (p.p_type == PT_GNU_EH_FRAME)
			f->eh_hdr = (struct elf_range){ p.p_vaddr, p.p_offset, p.p_filesz };
		if (p.p_type == PT_DYNAMIC)
			f->dynamic = (struct elf_range){ p.p_vaddr, p.p_offset, p.p_filesz };
		if (p.p_type == PT_TLS && p.p_memsz && p.p_memsz < TLS_MAX && p.p_align < TLS_MAX)
			f->tls_size = (p.p_memsz + CC_MAX(p.p_align, 1) - 1) /
				      CC_MAX(p.p_align, 1) * CC_MAX(p.p_align, 1);
		if (p.p_type == PT_LOAD && p.p_vaddr + p.p_memsz >= p.p_vaddr &&
		    p.p_offset + p.p_filesz >= p.p_offset)
			f->segs[f->seg_cnt++] = (struct elf_seg){
				.vaddr = p.p_vaddr,
				.memsz = p.p_memsz,
				.off = p.p_offset,
				.filesz = p.p_filesz,
				.exec = p.p_flags & PF_X,
			};
	}
	return 0;
}

static uint32_t rank_of(const struct loader *l, const struct elf_sym *s)
{
	return name_rank(l->str + s->name, l->str_len - s->name);
}

/* Of two at one address. */
static bool is_better(const struct loader *l, const struct elf_sym *x, const struct elf_sym *y)
{
	uint32_t rank_x, rank_y;

	if (!x->size != !y->size)
		return x->size;
	rank_x = rank_of(l, x);
	rank_y = rank_of(l, y);
	return rank_x != rank_y ? rank_x < rank_y : x->name < y->name;
}

/* Makes a table of @v, which has symbols as they came; takes it, also on failure. */
static int finish_table(const struct loader *l, struct elf_sym *v, size_t cnt,
			struct elf_symtab *ret)
{
	size_t out = 0;

	if (!cnt || radix_sort(v, cnt, sizeof(*v))) {
		free(v);
		return cnt ? -ENOMEM : 0;
	}
	for (size_t i = 0; i < cnt; out++) {
		struct elf_sym best = v[i];

		while (++i < cnt && v[i].addr == best.addr) {
			if (is_better(l, &v[i], &best))
				best = v[i];
		}
		v[out] = best;
	}
	ret->v = realloc(v, out * sizeof(*v));
	ret->v = ret->v ? ret->v : v;
	ret->cnt = out;
	return 0;
}

static bool in_exec_section(Elf *elf, size_t ndx)
{
	GElf_Shdr sh;
	Elf_Scn *scn = elf_getscn(elf, ndx);

	return scn && gelf_getshdr(scn, &sh) && sh.sh_flags & SHF_EXECINSTR;
}

/* Sets *ret_object. Returns false for a symbol that names no place. */
static bool usable(const struct loader *l, const GElf_Sym *sym, bool *ret_object)
{
	int type = GELF_ST_TYPE(sym->st_info);
	const char *name = l->str + sym->st_name;

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || sym->st_name >= l->str_len ||
	    !*name)
		return false;
	*ret_object = type == STT_OBJECT;
	if (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT)
		return true;
	/* labels of hand-written code; $x and .L are marks of the assembler */
	return type == STT_NOTYPE && *name != '$' && *name != '.' &&
	       in_exec_section(l->elf, sym->st_shndx);
}

static int read_symbols(struct loader *l, Elf_Data *data, size_t cnt)
{
	struct elf_sym *funcs = reallocarray(NULL, cnt, sizeof(*funcs));
	struct elf_sym *objects = reallocarray(NULL, cnt, sizeof(*objects));
	size_t func_cnt = 0, object_cnt = 0;
	int err, err2;

	if (!funcs || !objects) {
		free(funcs);
		free(objects);
		return -ENOMEM;
	}
	for (size_t i = 0; i < cnt; i++) {
		GElf_Sym sym;
		bool object;

		if (!gelf_getsym(data, (int)i, &sym))
			break;
		if (!usable(l, &sym, &object))
			continue;
		*(object ? &objects[object_cnt++] : &funcs[func_cnt++]) =
			(struct elf_sym){ sym.st_value, (uint32_t)CC_MIN(sym.st_size, UINT32_MAX),
					  sym.st_name };
	}
	err = finish_table(l, funcs, func_cnt, &l->f->funcs);
	err2 = finish_table(l, objects, object_cnt, &l->f->objects);
	return err ? err : err2;
}

/* The content of a section of at most SECTION_MAX bytes, or NULL. Freed with l->elf. */
static Elf_Data *section_data(struct loader *l, Elf_Scn *scn, const GElf_Shdr *sh)
{
	if (sh->sh_type == SHT_NOBITS || sh->sh_flags & SHF_COMPRESSED || !sh->sh_size ||
	    sh->sh_size > SECTION_MAX || sh->sh_offset > l->f->bytes ||
	    sh->sh_size > l->f->bytes - sh->sh_offset)
		return NULL;
	Elf_Data *d = elf_getdata(scn, NULL);

	return d && d->d_buf && d->d_size ? d : NULL;
}

static int load_symbols(struct loader *l, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Scn *str_scn = elf_getscn(l->elf, sh->sh_link);
	Elf_Data *syms = section_data(l, scn, sh), *strs = NULL;
	GElf_Shdr str_sh;
	size_t size = gelf_fsize(l->elf, ELF_T_SYM, 1, EV_CURRENT);

	if (str_scn && gelf_getshdr(str_scn, &str_sh) && str_sh.sh_type == SHT_STRTAB)
		strs = section_data(l, str_scn, &str_sh);
	if (!syms || !strs || !size || sh->sh_size / size > SYM_MAX)
		return 0;
	l->str = strs->d_buf;
	l->str_len = strs->d_size;
	if (l->str[l->str_len - 1])
		return 0; /* its last name has no end */
	l->f->str_off = str_sh.sh_offset;
	l->f->str_len = str_sh.sh_size;
	return read_symbols(l, syms, sh->sh_size / size);
}

static int load_fdes(struct loader *l, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *d = section_data(l, scn, sh);

	if (!d)
		return 0;
	l->f->eh_addr = sh->sh_addr;
	l->f->eh_off = sh->sh_offset;
	l->f->eh_len = d->d_size;
	return ehframe_read(d->d_buf, d->d_size, sh->sh_addr, &l->f->fdes, &l->f->fde_cnt);
}

static int load_debug_fdes(struct loader *l, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *d = section_data(l, scn, sh);

	if (!d)
		return 0;
	l->f->debug_frame = (struct elf_range){ 0, sh->sh_offset, d->d_size };
	return ehframe_add_debug(d->d_buf, d->d_size, &l->f->fdes, &l->f->fde_cnt);
}

/* "stripped" takes no section away that is loaded. */
static void note_go_section(struct elf_file *f, const char *name, const GElf_Shdr *sh)
{
	const struct elf_range r = { sh->sh_addr, sh->sh_offset, sh->sh_size };

	if (!strcmp(name, ".note.go.buildid"))
		f->maybe_go = true;
	if (sh->sh_type != SHT_PROGBITS)
		return;
	if (!strcmp(name, ".gopclntab") || !strcmp(name, ".data.rel.ro.gopclntab"))
		f->go_tab_at = r;
	else if (!strcmp(name, ".go.buildinfo"))
		f->go_info_at = r;
	f->maybe_go |= f->go_tab_at.len || f->go_info_at.len;
}

struct table_at {     /* a section that tables are made of */
	Elf_Scn *scn; /* NULL: there is none */
	GElf_Shdr sh;
};

static int load_tables(struct loader *l, const struct table_at *eh, const struct table_at *debug,
		       const struct table_at *symtab, const struct table_at *dynsym)
{
	int err = eh->scn ? load_fdes(l, eh->scn, &eh->sh) : 0;

	if (!err && debug->scn)
		err = load_debug_fdes(l, debug->scn, &debug->sh);
	if (!err && symtab->scn)
		err = load_symbols(l, symtab->scn, &symtab->sh);
	if (!err && dynsym->scn && !l->f->funcs.cnt)
		err = load_symbols(l, dynsym->scn, &dynsym->sh);
	return err;
}

static int load_sections(struct loader *l)
{
	struct table_at symtab = { NULL }, dynsym = { NULL }, eh = { NULL }, debug = { NULL };
	GElf_Shdr sh;
	size_t names;
	int err;

	l->f->maybe_go = !elf_nextscn(l->elf, NULL);
	if (elf_getshdrstrndx(l->elf, &names))
		return 0;
	for (Elf_Scn *scn = elf_nextscn(l->elf, NULL); scn; scn = elf_nextscn(l->elf, scn)) {
		if (!gelf_getshdr(scn, &sh))
			continue;
		const char *name = elf_strptr(l->elf, names, sh.sh_name);

		if (sh.sh_type == SHT_SYMTAB)
			symtab = (struct table_at){ scn, sh };
		else if (sh.sh_type == SHT_DYNSYM)
			dynsym = (struct table_at){ scn, sh };
		else if (name && !strcmp(name, ".eh_frame") && !eh.scn)
			eh = (struct table_at){ scn, sh };
		else if (name && !strcmp(name, ".debug_frame"))
			debug = (struct table_at){ scn, sh };
		else if (name)
			note_go_section(l->f, name, &sh);
	}
	if (table_cache_get(l->f->tables, l->f))
		return 0;
	err = load_tables(l, &eh, &debug, &symtab, &dynsym);
	if (!err)
		table_cache_put(l->f->tables, l->f);
	return err;
}

static void load_build_id(struct loader *l)
{
	const void *id;
	ssize_t len = dwelf_elf_gnu_build_id(l->elf, &id);

	if (len > 0 && len <= ELF_BUILD_ID_MAX) {
		memcpy(l->f->build_id, id, (size_t)len);
		l->f->build_id_len = (uint32_t)len;
	}
}

int elf_load(struct elf_file *f)
{
	struct loader l = { .f = f };
	GElf_Ehdr eh;
	int err;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	l.elf = elf_begin(f->fd, ELF_C_READ, NULL); /* not _MMAP: it may shrink under us */
	if (!l.elf)
		return -ENOEXEC;
	err = -ENOEXEC;
	if (elf_kind(l.elf) == ELF_K_ELF && gelf_getehdr(l.elf, &eh)) {
		f->machine = eh.e_machine;
		f->is64 = gelf_getclass(l.elf) == ELFCLASS64;
		load_build_id(&l);
		err = load_segments(&l);
		if (!err)
			err = load_sections(&l);
		if (!err && !elf_nextscn(l.elf, NULL))
			err = elf_bare_frames(f);
	}
	elf_end(l.elf);
	return err;
}
