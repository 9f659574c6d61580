/* SPDX-License-Identifier: Apache-2.0 */
#include "refused.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOB "CRITICAST_REFUSE"

static _Thread_local char said[64]; /* name of the program that the last warning was about */

static int note_name(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char text[256];

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(text, sizeof(text), fmt, ap);
	sscanf(text, "libbpf: prog '%63[^']'", said);
	return 0;
}

/* As a program of another type it asks for what that has not: the verifier says no. */
static void make_refused(const struct bpf_object *o)
{
	const char *name = getenv(KNOB);
	struct bpf_program *p = name ? bpf_object__find_program_by_name(o, name) : NULL;

	if (!p)
		return;
	bpf_program__set_type(p, BPF_PROG_TYPE_SOCKET_FILTER);
}

int refused_load(struct bpf_object_skeleton *s, const char **ret_name)
{
	const struct bpf_program *p;
	libbpf_print_fn_t before;
	int res;

	said[0] = 0;
	*ret_name = NULL;
	make_refused(*s->obj);
	before = libbpf_set_print(note_name);
	res = bpf_object__load_skeleton(s);
	libbpf_set_print(before);
	p = res && said[0] ? bpf_object__find_program_by_name(*s->obj, said) : NULL;
	if (p)
		*ret_name = bpf_program__name(p);
	return res;
}

struct bpf_link *refused_attach(struct bpf_program *prog)
{
	const char *name = getenv(KNOB);

	if (name && name[0] == '@' && !strcmp(name + 1, bpf_program__name(prog))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return bpf_program__attach(prog);
}
