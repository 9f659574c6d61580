/* SPDX-License-Identifier: Apache-2.0 */
/* Where themes are found: the user's directory, the data directories, built in. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "theme.h"

#define THEME_MAX_BYTES 65536
#define THEME_DIR_MAX 16

/* i-th directory to search into @buf; false: no more. Sources: XDG Base Directory Specification. */
static bool theme_dir(int i, char *buf, size_t cap)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	const char *dirs = getenv("XDG_DATA_DIRS");
	if (i == 0) {
		if (config && *config)
			snprintf(buf, cap, "%s/criticast/themes", config);
		else
			snprintf(buf, cap, "%s/.config/criticast/themes", home ? home : "");
		return true;
	}
	if (!dirs || !*dirs)
		dirs = "/usr/local/share:/usr/share";
	for (; i > 1 && *dirs; i--) {
		dirs += strcspn(dirs, ":");
		dirs += *dirs == ':';
	}
	if (!*dirs || i >= THEME_DIR_MAX)
		return false;
	snprintf(buf, cap, "%.*s/criticast/themes", (int)strcspn(dirs, ":"), dirs);
	return true;
}

static int parse_file(const char *path, struct theme *t, struct cc_err *err)
{
	FILE *f = fopen(path, "re");
	char *text;
	if (!f)
		return -errno;
	text = malloc(THEME_MAX_BYTES + 1);
	if (!text) {
		fclose(f);
		return -ENOMEM;
	}
	size_t n = fread(text, 1, THEME_MAX_BYTES + 1, f);
	int ret = ferror(f) ? -EIO : n > THEME_MAX_BYTES || memchr(text, 0, n) ? -EBADMSG : 0;
	fclose(f);
	if (ret == 0) {
		text[n] = '\0';
		ret = theme_parse(text, t, err);
	} else {
		snprintf(err->msg, sizeof(err->msg), "%.150s: not a theme file", path);
	}
	free(text);
	return ret;
}

static struct theme blank(const char *name)
{
	struct theme t = { .main_bg = COLOUR_NONE, .selected = { COLOUR_NONE, COLOUR_NONE, 0 } };
	for (int i = 0; i < ROLE_CNT; i++)
		t.role[i] = (struct look){ COLOUR_NONE, COLOUR_NONE, 0 };
	const char *base = strrchr(name, '/');
	snprintf(t.name, sizeof(t.name), "%.31s", base ? base + 1 : name);
	char *dot = strstr(t.name, ".theme");
	if (dot)
		*dot = '\0';
	return t;
}

/* @path NULL: from @text. What it leaves out is as in the default. */
static int load_from(const char *path, const char *text, const char *name, struct theme *ret,
		     struct cc_err *err)
{
	struct theme t = blank(name);
	int e = theme_parse(theme_default_text, &t, err);
	if (e)
		return e;
	/* the default marks the selected row by reverse video; a file that gives it colours does
	 * not want both, and attributes are not otherwise inherited */
	uint8_t reverse = t.selected.attr;
	for (int i = 0; i < ROLE_CNT; i++)
		t.role[i].attr = 0;
	t.selected.attr = 0;
	e = path ? parse_file(path, &t, err) : theme_parse(text, &t, err);
	if (e)
		return e;
	if (t.selected.bg == COLOUR_NONE)
		t.selected.attr |= reverse;
	*ret = t;
	return 0;
}

int theme_load(const char *name, struct theme *ret, struct cc_err *err)
{
	char dir[512], path[1024];
	*err = (struct cc_err){ .pos = -1 };
	if (strchr(name, '/') || strstr(name, ".theme"))
		return load_from(name, NULL, name, ret, err);
	for (int i = 0; theme_dir(i, dir, sizeof(dir)); i++) {
		snprintf(path, sizeof(path), "%s/%s.theme", dir, name);
		int e = load_from(path, NULL, name, ret, err);
		if (e != -ENOENT && e != -ENOTDIR && e != -EACCES)
			return e;
	}
	const char *text = theme_shipped_text(name);
	if (text)
		return load_from(NULL, text, name, ret, err);
	if (strcmp(name, "default") != 0) {
		snprintf(err->msg, sizeof(err->msg), "no theme of this name");
		return -ENOENT;
	}
	struct theme t = blank(name);
	int e = theme_parse(theme_default_text, &t, err);
	if (!e)
		*ret = t;
	return e;
}

const char *theme_first(const char *asked, const char *configured)
{
	const char *no_color = getenv("NO_COLOR");
	if (asked)
		return asked;
	if (*configured)
		return configured;
	return no_color && *no_color ? "mono" : "default";
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds @name, @len bytes long, unless it is there. 0 or -ENOMEM. */
static int add_name(char ***names, size_t *cnt, const char *name, size_t len)
{
	for (size_t i = 0; i < *cnt; i++)
		if (strlen((*names)[i]) == len && !strncmp((*names)[i], name, len))
			return 0;
	char **more = realloc(*names, (*cnt + 2) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	*names = more;
	more[*cnt] = strndup(name, len);
	if (!more[*cnt])
		return -ENOMEM;
	more[++*cnt] = NULL;
	return 0;
}

char **theme_names(size_t *ret_cnt)
{
	char **names = NULL, dir[512];
	size_t cnt = 0;
	int err = add_name(&names, &cnt, "default", 7);
	for (size_t i = 0; !err && theme_shipped_name(i); i++)
		err = add_name(&names, &cnt, theme_shipped_name(i), strlen(theme_shipped_name(i)));
	for (int i = 0; !err && theme_dir(i, dir, sizeof(dir)); i++) {
		DIR *d = opendir(dir);
		struct dirent *e;
		while (d && !err && (e = readdir(d))) {
			const char *dot = strstr(e->d_name, ".theme");
			if (dot && dot != e->d_name && !dot[6] && cnt < 256)
				err = add_name(&names, &cnt, e->d_name, (size_t)(dot - e->d_name));
		}
		if (d)
			closedir(d);
	}
	if (err) {
		theme_names_free(names);
		return NULL;
	}
	qsort(names + 2, cnt - 2, sizeof(*names), by_name);
	*ret_cnt = cnt;
	return names;
}

void theme_names_free(char **names)
{
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}
