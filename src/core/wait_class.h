/* SPDX-License-Identifier: Apache-2.0 */
/* wait_class: what a piece of time was spent on. One table gives ids, letters, names and help. */
#ifndef CC_WAIT_CLASS_H
#define CC_WAIT_CLASS_H

#include "base.h"

/* id, group letter, name (lower case; JSON writes '_' for ' '), unexplained, help.
 * ABI of JSON and of GO_EPISODE.wait_class: append only. The order within a group is that of the
 * screen; WAIT_GROUPS below has the order of the groups. */
#define WAIT_CLASSES(X)                                                                            \
	X(UNKNOWN, '?', "unknown", 1, "no data for this time")                                     \
	X(CPU, 'C', "cpu", 0, "running")                                                           \
	X(STOLEN, 'C', "stolen", 0, "on the CPU by the scheduler's book, not running: steal, irq") \
	X(RUNQ, 'R', "runq", 0, "runnable, waiting for a CPU")                                     \
	X(THROTTLE, 'R', "throttle", 0, "runnable, held back by a cgroup CPU quota")               \
	X(LOCK_HANDOFF, 'R', "lock handoff", 0, "the lock was given to a waiter not running yet")  \
	X(LOCK, 'L', "lock", 0, "user-space lock (futex)")                                         \
	X(KLOCK, 'L', "klock", 0, "kernel lock: mmap_lock, inode, rwsem")                          \
	X(MUTEX, 'L', "mutex", 0, "Go mutex")                                                      \
	X(SEMA, 'L', "sema", 0, "semaphore")                                                       \
	X(COND, 'L', "cond", 0, "condition variable")                                              \
	X(CHAN, 'L', "chan", 0, "Go channel")                                                      \
	X(SELECT, 'L', "select", 0, "Go select")                                                   \
	X(NET_RECV, 'N', "net recv", 0, "waiting for data from a peer")                            \
	X(NET_SEND, 'N', "net send", 0, "the peer takes our data too slowly")                      \
	X(UPSTREAM, 'N', "upstream", 0, "waiting for a server that this one called")               \
	X(UNIX, 'N', "unix", 0, "unix socket")                                                     \
	X(PIPE, 'N', "pipe", 0, "pipe")                                                            \
	X(DISK, 'D', "disk", 0, "block I/O")                                                       \
	X(DISK_READ, 'D', "disk read", 0, "reading from a file")                                   \
	X(DISK_WRITE, 'D', "disk write", 0, "writing to a file")                                   \
	X(FSYNC, 'D', "disk fsync", 0, "waiting until data is on the disk")                        \
	X(JOURNAL, 'D', "disk journal", 0, "waiting for the file system's journal")                \
	X(PAGEFAULT, 'D', "pagefault", 0, "reading a mapped page")                                 \
	X(FLOCK, 'D', "flock", 0, "file lock")                                                     \
	X(SLEEP, 'S', "sleep", 0, "asked to sleep")                                                \
	X(CHILD, 'S', "child", 0, "waiting for a child process")                                   \
	X(RECLAIM, 'M', "reclaim", 0, "waiting for memory")                                        \
	X(GC, 'M', "gc", 0, "garbage collector")                                                   \
	X(QUEUED, 'Q', "queued", 0, "all workers were busy with other requests")                   \
	X(HOL, 'Q', "hol", 0, "head of line: its thread served another request")                   \
	X(SOCKQ, 'Q', "sockq", 0, "data lay in the socket, nobody read it")                        \
	X(ACCEPTQ, 'Q', "acceptq", 0, "connection not accepted yet")                               \
	X(EPOLL, '?', "epoll", 0, "event loop, waiting for any event")                             \
	X(POLL, '?', "poll", 0, "poll or select, waiting for any event")                           \
	X(IO_URING, '?', "io_uring", 0, "waiting for io_uring completions")                        \
	X(IPC, '?', "ipc", 0, "System V or POSIX message queue or semaphore")                      \
	X(SIGNAL, '?', "signal", 0, "waiting for a signal")                                        \
	X(STOPPED, '?', "stopped", 0, "stopped or traced")                                         \
	X(ENTROPY, '?', "entropy", 0, "waiting for random numbers at boot")                        \
	X(IRQ, '?', "irq", 0, "interrupt")                                                         \
	X(TRANSIT, '?', "transit", 0, "the message or the wake was on its way")                    \
	X(FORK, '?', "fork", 0, "created, not started yet")                                        \
	X(ASYNC, '?', "async", 1, "the thread was free, what it waited for is not known")          \
	X(AMBIGUOUS, '?', "ambiguous", 1, "could belong to several requests")                      \
	X(CYCLE, '?', "cycle", 1, "tasks waiting for each other: a bad edge")                      \
	X(BLOCKED, '?', "blocked", 1, "blocked, kind not known")                                   \
	X(IDLE, 'S', "idle", 0, "a thread of Go's scheduler that has no goroutine to run")

#define X(id, letter, name, unexplained, help) WAIT_##id,
enum wait_class { WAIT_CLASSES(X) WAIT_CLASS_CNT };
#undef X

/* Order of group letters in bars and legends. */
#define WAIT_GROUPS "CRLNDSMQ?"

/* The group's word in headers and legends ("lock", "net", ...), for a letter of WAIT_GROUPS. */
const char *wait_group_name(char letter);

/* All take any number: "unknown" and '?' beyond the table, so that outside data cannot hurt. */
const char *wait_class_name(unsigned int c); /* with spaces, for people */
const char *wait_class_json(unsigned int c); /* with underscores */
const char *wait_class_help(unsigned int c);
char wait_class_letter(unsigned int c);
bool wait_class_unexplained(unsigned int c); /* counts as unexplained time */

/* Reads a name in either spelling. Returns the class, or -EINVAL. */
int wait_class_parse(const char *s);

#endif
