/* SPDX-License-Identifier: Apache-2.0 */
#include "go_layout_find.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>

#define DIES_MAX (16u << 20)     /* looked at */
#define SECTION_MAX (512u << 20) /* bytes, unpacked */
#define NEST_MAX 3               /* of structs within structs */

/* Whether all sections of debug information are of a size that can be unpacked. */
static bool is_bounded(Elf *elf)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
		GElf_Shdr sh;
		GElf_Chdr ch;

		if (!gelf_getshdr(scn, &sh))
			return false;
		const char *name = elf_strptr(elf, names, sh.sh_name);

		if (!name || (strncmp(name, ".debug_", 7) && strncmp(name, ".zdebug_", 8)))
			continue;
		if (sh.sh_flags & SHF_COMPRESSED && !gelf_getchdr(scn, &ch))
			return false;
		if (sh.sh_size > SECTION_MAX ||
		    (sh.sh_flags & SHF_COMPRESSED && ch.ch_size > SECTION_MAX))
			return false;
	}
	return true;
}

static bool member_at(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word at;

	if (!dwarf_attr(die, DW_AT_data_member_location, &attr) || dwarf_formudata(&attr, &at))
		return false;
	*ret = at;
	return true;
}

static void set_field(struct go_layout *l, int field, uint64_t at)
{
	uint32_t v = at < UINT32_MAX ? (uint32_t)at : UINT32_MAX;

	memcpy((char *)l + field, &v, sizeof(v));
}

/* From Go 1.26 a pointer that the collector must not follow is a pair, in a struct or one within
 * it, and "vu" is the word that counts. Returns how far from the beginning it stands. */
static uint64_t word_that_counts(Dwarf_Die *member, unsigned int nest)
{
	Dwarf_Attribute attr;
	Dwarf_Die type, die;
	uint64_t at, in;

	if (nest == NEST_MAX || !dwarf_attr(member, DW_AT_type, &attr) ||
	    !dwarf_formref_die(&attr, &type) || dwarf_peel_type(&type, &type) ||
	    dwarf_tag(&type) != DW_TAG_structure_type || dwarf_child(&type, &die))
		return 0;
	do {
		const char *name = dwarf_diename(&die);

		if (dwarf_tag(&die) != DW_TAG_member || !name || !member_at(&die, &at))
			continue;
		if (!strcmp(name, "vu"))
			return at;
		in = word_that_counts(&die, nest + 1);
		if (in)
			return at + in;
	} while (!dwarf_siblingof(&die, &die));
	return 0;
}

/* Notes the members of a struct; @prefix is "g" or "g.sched", its place @base. */
static void take_members(Dwarf_Die *type, const char *prefix, uint64_t base, unsigned int nest,
			 struct go_layout *ret)
{
	Dwarf_Die die;

	if (dwarf_child(type, &die))
		return;
	do {
		const char *name = dwarf_diename(&die);
		char path[64];
		uint64_t at;
		Dwarf_Die inner;
		Dwarf_Attribute attr;

		if (dwarf_tag(&die) != DW_TAG_member || !name || !member_at(&die, &at) ||
		    snprintf(path, sizeof(path), "%s.%s", prefix, name) >= (int)sizeof(path))
			continue;
		int field = go_layout_field(path);

		if (field >= 0)
			set_field(ret, field, base + at + word_that_counts(&die, 0));
		else if (nest < NEST_MAX && !strcmp(path, "g.sched") &&
			 dwarf_attr(&die, DW_AT_type, &attr) && dwarf_formref_die(&attr, &inner) &&
			 !dwarf_peel_type(&inner, &inner))
			take_members(&inner, path, base + at, nest + 1, ret);
	} while (!dwarf_siblingof(&die, &die));
}

/* Takes the type if it is one of ours. Returns true if it was. */
static bool take_type(Dwarf_Die *die, struct go_layout *ret)
{
	static const char *const types[] = { "g", "m", "sudog", "hchan", "pollDesc" };
	const char *name;

	if (dwarf_tag(die) != DW_TAG_structure_type)
		return false;
	name = dwarf_diename(die);
	if (!name || strncmp(name, "runtime.", 8))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (!strcmp(name + 8, types[i])) {
			take_members(die, types[i], 0, 0, ret);
			return true;
		}
	}
	return false;
}

static void take_units(Dwarf *dw, struct go_layout *ret)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die top, die;
	unsigned int found = 0, dies = 0;

	while (!dwarf_get_units(dw, cu, &cu, NULL, NULL, &top, NULL)) {
		if (dwarf_child(&top, &die))
			continue;
		do {
			found += take_type(&die, ret);
			if (++dies == DIES_MAX || found == 5)
				return;
		} while (!dwarf_siblingof(&die, &die));
	}
}

int go_layout_dwarf(int fd, struct go_layout *ret)
{
	Elf *elf;
	Dwarf *dw;

	go_layout_clear(ret);
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOENT;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return -ENOENT;
	dw = elf_kind(elf) == ELF_K_ELF && is_bounded(elf)
		     ? dwarf_begin_elf(elf, DWARF_C_READ, NULL)
		     : NULL;
	if (dw) {
		take_units(dw, ret);
		dwarf_end(dw);
	}
	elf_end(elf);
	return go_layout_whole(ret) ? 0 : -ENOENT;
}
