/* SPDX-License-Identifier: Apache-2.0 */
#include "go_reasons.h"
#include "go_image.h"
#include "wait_class.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name; /* of a row with '*' only the beginning */
	uint8_t cls;
} classes[] = {
	/* what a goroutine of the program waits for; IO wait becomes net or pipe by its fd */
	{ "IO wait", WAIT_POLL },
	{ "select*", WAIT_SELECT },
	{ "chan receive*", WAIT_CHAN },
	{ "chan send*", WAIT_CHAN },
	{ "semacquire", WAIT_SEMA },
	{ "sleep", WAIT_SLEEP },
	{ "sync.Cond.Wait", WAIT_COND },
	{ "sync.Mutex.Lock", WAIT_MUTEX },
	{ "sync.RWMutex.*", WAIT_MUTEX },
	{ "sync.WaitGroup.Wait*", WAIT_SEMA },
	{ "synctest.*", WAIT_COND },
	/* what the collector makes it wait for, and its own workers */
	{ "GC *", WAIT_GC },
	{ "garbage collection*", WAIT_GC },
	{ "wait for GC cycle", WAIT_GC },
	{ "force gc (idle)", WAIT_GC },
	{ "stopping the world", WAIT_GC },
	{ "finalizer wait", WAIT_GC },
	{ "cleanup wait", WAIT_GC },
	{ "dumping heap", WAIT_GC },
	/* others of the runtime */
	{ "timer goroutine (idle)", WAIT_SLEEP },
	{ "GOMAXPROCS updater (idle)", WAIT_SLEEP },
	{ "preempted", WAIT_RUNQ },
	{ "coroutine", WAIT_COND },
};

uint8_t go_reason_class(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
		const char *row = classes[i].name;
		size_t len = strlen(row);

		if (row[len - 1] == '*' ? !strncmp(name, row, len - 1) : !strcmp(name, row))
			return classes[i].cls;
	}
	return WAIT_BLOCKED;
}

struct hunt {
	const struct go_image *img;
	uint64_t at; /* of the table: (pointer, length) of each name; the first one is empty */
};

static bool is_text(const struct go_image *img, const uint64_t *w, const char *want)
{
	char buf[GO_REASON_LEN];
	size_t len = strlen(want);

	return w[1] == len && go_image_read(img, w[0], buf, len) == (ssize_t)len &&
	       !memcmp(buf, want, len);
}

static bool hunt_word(void *ctx, uint64_t vaddr, const uint64_t *w)
{
	struct hunt *h = ctx;

	if (!is_text(h->img, w, "GC assist marking") || !is_text(h->img, w + 2, "IO wait"))
		return false;
	h->at = vaddr - 16;
	return true;
}

int go_reasons_find(const struct go_image *img, struct go_reasons *ret)
{
	struct hunt h = { .img = img };
	int found = go_image_scan(img, hunt_word, &h);

	ret->cnt = 0;
	if (found <= 0)
		return found;
	for (uint32_t i = 0; i < GO_REASONS_MAX; i++) {
		uint64_t w[2];
		char *name = ret->name[i];

		if (go_image_read(img, h.at + i * sizeof(w), w, sizeof(w)) != sizeof(w) ||
		    w[1] >= GO_REASON_LEN || (i && !w[1]) || (i && !w[0]))
			break; /* behind the table */
		if (go_image_read(img, w[0], name, w[1]) != (ssize_t)w[1] && w[1])
			break;
		name[w[1]] = '\0';
		for (uint64_t j = 0; j < w[1]; j++) {
			if (name[j] < ' ' || name[j] > '~')
				return 0;
		}
		ret->cls[i] = go_reason_class(name);
		ret->cnt = i + 1;
	}
	return 0;
}
