/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_class.h"

#include <errno.h>
#include <string.h>

struct class_row {
	const char *name, *help;
	char letter;
	bool unexplained;
};

static const struct class_row classes[WAIT_CLASS_CNT] = {
#define X(id, letter_, name_, unexplained_, help_) \
	[WAIT_##id] = { name_, help_, letter_, unexplained_ },
	WAIT_CLASSES(X)
#undef X
};

#define JSON_NAME_MAX 16

/* The same names with '_' for ' ': made by the compiler would need a second column by hand. */
static const char json_names[WAIT_CLASS_CNT][JSON_NAME_MAX] = {
	[WAIT_LOCK_HANDOFF] = "lock_handoff", [WAIT_NET_RECV] = "net_recv",
	[WAIT_NET_SEND] = "net_send",         [WAIT_DISK_READ] = "disk_read",
	[WAIT_DISK_WRITE] = "disk_write",     [WAIT_FSYNC] = "disk_fsync",
	[WAIT_JOURNAL] = "disk_journal",
};

static const struct class_row *row(unsigned int c)
{
	return &classes[c < WAIT_CLASS_CNT ? c : WAIT_UNKNOWN];
}

const char *wait_class_name(unsigned int c) { return row(c)->name; }

const char *wait_class_json(unsigned int c)
{
	return c < WAIT_CLASS_CNT && json_names[c][0] ? json_names[c] : row(c)->name;
}

const char *wait_class_help(unsigned int c) { return row(c)->help; }

char wait_class_letter(unsigned int c) { return c < WAIT_CLASS_CNT ? row(c)->letter : '?'; }

bool wait_class_unexplained(unsigned int c) { return row(c)->unexplained; }

int wait_class_parse(const char *s)
{
	for (int c = 0; c < WAIT_CLASS_CNT; c++)
		if (!strcmp(s, wait_class_name((unsigned int)c)) ||
		    !strcmp(s, wait_class_json((unsigned int)c)))
			return c;
	return -EINVAL;
}

const char *wait_group_name(char letter)
{
	static const char *const names[] = {
		"cpu", "runq", "lock", "net", "disk", "sleep", "memory", "queue", "other",
	};
	const char *at = letter ? strchr(WAIT_GROUPS, letter) : NULL;

	return at ? names[at - WAIT_GROUPS] : "other";
}
