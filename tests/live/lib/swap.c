// SPDX-License-Identifier: Apache-2.0
/* Built twice, with another size of stack frame, another system call to wait in and another name:
 * two libraries with the same code, byte for byte but for the frame's size, that is loaded at the
 * same place. */
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef ROOM
#define ROOM 1000
#define NAME swap_a
#define CALL SYS_poll
#endif

void NAME(void);
void run(void);

static const struct timespec nap = { .tv_nsec = 1000000 };
/* poll(NULL, 0, 1) or nanosleep(&nap, NULL) */
static volatile long arg[3] = { CALL, 0, CALL == SYS_poll };

__attribute__((noinline, optimize("omit-frame-pointer"))) void NAME(void)
{
	volatile char room[ROOM];

	for (unsigned int i = 0; i < ROOM; i++)
		room[i] = 0x41; /* no address: whoever reads here for one is found out */
	syscall(arg[0], arg[2] ? NULL : (const void *)&nap, arg[1], arg[2]);
	room[0] = 1;
}

__attribute__((noinline, optimize("omit-frame-pointer"))) void run(void)
{
	NAME();
	__asm__ volatile("" ::: "memory"); /* so that it is no tail call */
}
