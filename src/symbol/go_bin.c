/* SPDX-License-Identifier: Apache-2.0 */
#include "go_bin.h"
#include "elf_file.h"
#include "go_allgs.h"
#include "go_image.h"
#include "go_layout_find.h"
#include "go_reasons.h"
#include "go_sites.h"
#include "go_tab.h"
#include "go_tls.h"
#include "go_version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MINOR_MIN 18

/* Says why it is refused. */
static int refuse(struct cc_err *err, int res, const char *why)
{
	err->pos = -1;
	snprintf(err->msg, sizeof(err->msg), "%s", why);
	return res;
}

static int say(struct cc_err *err, int res)
{
	switch (res) {
	case 0:
	case -ENOMEM:
		return res;
	case -ENOEXEC:
		return refuse(err, res, "not a Go program: it has no table of Go functions");
	case -ENOTSUP:
		return refuse(err, res, "built with Go older than 1.18");
	case -EBADMSG:
		return refuse(err, res, "its table of Go functions is damaged");
	default:
		return *err->msg ? res : refuse(err, res, strerror(-res));
	}
}

static int find_layout(struct go_bin *b, const struct go_bin_opts *o, struct cc_err *err)
{
	const char *path = o ? o->offsets : NULL;
	struct cc_err why = { .pos = -1 };
	int res;

	/* what the user gives goes before all */
	if (!path && !go_layout_dwarf(b->file->fd, &b->t.layout)) {
		b->t.layout_by = GO_FOUND_DWARF;
		return 0;
	}
	res = go_layout_table(path, b->t.minor, &b->t.layout, &b->t.layout_by, &why);
	if (res == -ENOENT && !*why.msg) {
		go_layout_clear(&b->t.layout);
		return 0;
	}
	if (res && res != -ENOMEM)
		snprintf(err->msg, sizeof(err->msg), "offsets%s%.80s: %.80s", path ? " in " : "",
			 path ? path : "", why.msg);
	return res;
}

static int take_version(struct go_bin *b, const char *version, struct cc_err *err)
{
	if (strlen(version) >= sizeof(b->t.version) ||
	    !go_version_parse(version, &b->t.minor, &b->t.patch))
		return refuse(err, -EINVAL, "not a version of Go (like go1.22.0)");
	snprintf(b->t.version, sizeof(b->t.version), "%s", version);
	b->t.version_by = GO_FOUND_USER;
	return 0;
}

static int fill(struct go_bin *b, const struct go_bin_opts *o, struct cc_err *err)
{
	struct go_tab *tab;
	struct go_image img;
	int res = elf_file_go(b->file, true, &tab);

	if (res)
		return say(err, res);
	b->t.machine = b->file->machine;
	res = go_image_init(&img, b->file);
	if (!res)
		res = o && o->version ? take_version(b, o->version, err)
				      : go_version_find(&img, tab, &b->t);
	if (!res)
		res = go_reasons_find(&img, &b->t.reasons);
	if (!res)
		res = go_tls_find(&img, tab, &b->t.has_tls, &b->t.tls_off);
	if (!res)
		res = go_sites_find(b->file, tab, b->t.sites);
	if (!res)
		res = go_sites_ready(b->file, tab, &b->t.sites[GO_FN_READY], &b->t.ready);
	if (!res)
		res = go_sites_handlers(tab, &b->t);
	if (!res)
		res = go_allgs_find(b->file, tab, &b->allgs);
	go_image_done(&img);
	if (res == -ENOENT)
		return refuse(err, -EBADMSG, "a Go program that does not tell its version");
	if (res)
		return say(err, res);
	if (b->t.minor < MINOR_MIN)
		return say(err, -ENOTSUP);
	return find_layout(b, o, err);
}

int go_bin_open(int fd, const struct go_bin_opts *o, struct go_bin **ret, struct cc_err *err)
{
	struct go_bin *b = calloc(1, sizeof(*b));
	int res;

	err->pos = -1;
	err->msg[0] = '\0';
	if (!b) {
		close(fd);
		return -ENOMEM;
	}
	res = elf_file_new(fd, &b->file);
	res = res == -ENOEXEC ? refuse(err, res, "not an ELF program")
	      : res           ? say(err, res)
			      : fill(b, o, err);
	if (res) {
		go_bin_free(b);
		return res;
	}
	*ret = b;
	return 0;
}

void go_bin_free(struct go_bin *b)
{
	if (!b)
		return;
	elf_file_put(b->file);
	free(b);
}
