/* SPDX-License-Identifier: Apache-2.0 */
/* places: file and line of code, what was inlined there, and names that only separate debug files,
 * .gnu_debugdata or debuginfod have: by libdwfl, in a thread of its own, because a file with much
 * debug information takes seconds. Who asks goes on at once with what the symbol table says, and
 * tells the better answer when it comes. */
#ifndef CC_PLACES_H
#define CC_PLACES_H

#include "elf_file.h"

#define PLACE_TEXT_MAX 1024

struct place {
	uint32_t tgid, since; /* as asked */
	uint64_t ip;
	unsigned int back;
	bool named;
	/* A line per frame, innermost (inlined) first; without a '\n' at the end, but named ones
	 * are without the last line, the function itself. */
	char text[PLACE_TEXT_MAX]; /* "cart_add\nserve+0x41" */
	char file[PLACE_TEXT_MAX]; /* "cart.c:88\nserve.c:12"; a line may be empty */
};

struct places;

/* Starts the thread. Returns 0, -ENOMEM or another -errno. */
CC_NODISCARD int places_new(struct places **ret);
void places_free(struct places *p); /* ends the thread after the answer it is at; NULL: no-op */

/* Asks for @ip of process @tgid since generation @since, which is @vaddr in @f as linked; @back: 1
 * if that is a return address, which belongs to the call before it; @named: its function is known
 * already. When too many questions wait it is not answered (counted). */
void places_ask(struct places *p, const struct elf_file *f, uint32_t tgid, uint32_t since,
		uint64_t ip, uint64_t vaddr, unsigned int back, bool named);

/* Waits until all questions are answered, at most @ms. */
void places_wait(struct places *p, int ms);

bool places_take(struct places *p, struct place *ret); /* an answer; false: none now */

struct places_health {
	uint64_t asked, answered, dropped; /* not all have an answer */
};
void places_health(struct places *p, struct places_health *ret);

#endif
