/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of tests/go/waits, linked in several ways. */
#ifndef CC_TEST_GO_FIXTURE_H
#define CC_TEST_GO_FIXTURE_H

#include "go_bin.h"

#define GO_KINDS 5
extern const char *const go_kinds[GO_KINDS];

/* Skips the test, aloud, where there is no go; fails it if the program is missing all the same. */
void go_needed(void);

/* Opened for reading. */
int go_fd(const char *kind);

/* Asserts that it can be used. */
struct go_bin *go_open(const char *kind);

struct go_proc {
	pid_t pid;
	int in; /* a byte into it lets a reader go on */
};

/* Starts it and waits until its goroutines stand where they should. */
struct go_proc go_start(const char *kind);
void go_stop(struct go_proc *p);

/* Stops all its threads, which stay so until go_stop(); writes thread ids and the words at thread
 * pointer + @tls_off. Returns how many. */
size_t go_sample(const struct go_proc *p, int64_t tls_off, struct go_sample *ret, size_t max);

#endif
