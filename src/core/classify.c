/* SPDX-License-Identifier: Apache-2.0 */
#include "classify.h"

#include <string.h>

/* What a syscall can wait for, before the file it works on is known. */
enum sys_kind {
	SYS_OTHER,
	SYS_FUTEX,
	SYS_EPOLL,
	SYS_POLL,
	SYS_ACCEPT,
	SYS_CONNECT,
	SYS_RECV, /* sockets only */
	SYS_SEND,
	SYS_READ, /* any file */
	SYS_WRITE,
	SYS_COPY, /* sendfile, splice */
	SYS_FSYNC,
	SYS_SLEEP,
	SYS_CHILD,
	SYS_FLOCK,
	SYS_IPC,
	SYS_URING,
	SYS_AIO,
	SYS_SIGNAL,
	SYS_RANDOM,
	SYS_MM,   /* mmap_lock */
	SYS_PATH, /* directories and inodes */
};

#define SYS_NR_CNT 464

/* By syscall number. Source: arch/x86/entry/syscalls/syscall_64.tbl. */
/* clang-format off */
static const uint8_t sys_x86_64[SYS_NR_CNT] = {
	[0] = SYS_READ, [1] = SYS_WRITE, [2] = SYS_PATH, [4] = SYS_PATH, [6] = SYS_PATH,
	[7] = SYS_POLL, [9] = SYS_MM, [10] = SYS_MM, [11] = SYS_MM, [12] = SYS_MM,
	[17] = SYS_READ, [18] = SYS_WRITE, [19] = SYS_READ, [20] = SYS_WRITE, [21] = SYS_PATH,
	[23] = SYS_POLL, [25] = SYS_MM, [26] = SYS_FSYNC, [28] = SYS_MM, [34] = SYS_SIGNAL,
	[35] = SYS_SLEEP, [40] = SYS_COPY, [42] = SYS_CONNECT, [43] = SYS_ACCEPT,
	[44] = SYS_SEND, [45] = SYS_RECV, [46] = SYS_SEND, [47] = SYS_RECV, [56] = SYS_CHILD,
	[58] = SYS_CHILD, [59] = SYS_PATH, [61] = SYS_CHILD, [65] = SYS_IPC, [69] = SYS_IPC,
	[70] = SYS_IPC, [72] = SYS_FLOCK, [73] = SYS_FLOCK, [74] = SYS_FSYNC, [75] = SYS_FSYNC,
	[76] = SYS_PATH, [77] = SYS_PATH, [78] = SYS_PATH, [82] = SYS_PATH, [83] = SYS_PATH,
	[84] = SYS_PATH, [85] = SYS_PATH, [87] = SYS_PATH, [128] = SYS_SIGNAL,
	[130] = SYS_SIGNAL, [162] = SYS_FSYNC, [187] = SYS_READ, [202] = SYS_FUTEX,
	[208] = SYS_AIO, [217] = SYS_PATH, [220] = SYS_IPC, [230] = SYS_SLEEP, [232] = SYS_EPOLL,
	[242] = SYS_IPC, [243] = SYS_IPC, [247] = SYS_CHILD, [257] = SYS_PATH, [258] = SYS_PATH,
	[262] = SYS_PATH, [263] = SYS_PATH, [264] = SYS_PATH, [270] = SYS_POLL, [271] = SYS_POLL,
	[275] = SYS_COPY, [276] = SYS_COPY, [277] = SYS_FSYNC, [278] = SYS_COPY,
	[281] = SYS_EPOLL, [285] = SYS_PATH, [288] = SYS_ACCEPT, [295] = SYS_READ,
	[296] = SYS_WRITE, [299] = SYS_RECV, [306] = SYS_FSYNC, [307] = SYS_SEND,
	[316] = SYS_PATH, [318] = SYS_RANDOM, [326] = SYS_COPY, [327] = SYS_READ,
	[328] = SYS_WRITE, [332] = SYS_PATH, [333] = SYS_AIO, [426] = SYS_URING,
	[435] = SYS_CHILD, [437] = SYS_PATH, [441] = SYS_EPOLL, [449] = SYS_FUTEX,
	[455] = SYS_FUTEX,
};

/* arm64 and newer ports. Source: include/uapi/asm-generic/unistd.h. */
static const uint8_t sys_generic[SYS_NR_CNT] = {
	[4] = SYS_AIO, [22] = SYS_EPOLL, [25] = SYS_FLOCK, [32] = SYS_FLOCK, [34] = SYS_PATH,
	[35] = SYS_PATH, [38] = SYS_PATH, [45] = SYS_PATH, [46] = SYS_PATH, [47] = SYS_PATH,
	[56] = SYS_PATH, [61] = SYS_PATH, [63] = SYS_READ, [64] = SYS_WRITE, [65] = SYS_READ,
	[66] = SYS_WRITE, [67] = SYS_READ, [68] = SYS_WRITE, [69] = SYS_READ, [70] = SYS_WRITE,
	[71] = SYS_COPY, [72] = SYS_POLL, [73] = SYS_POLL, [75] = SYS_COPY, [76] = SYS_COPY,
	[77] = SYS_COPY, [79] = SYS_PATH, [81] = SYS_FSYNC, [82] = SYS_FSYNC, [83] = SYS_FSYNC,
	[84] = SYS_FSYNC, [95] = SYS_CHILD, [98] = SYS_FUTEX, [101] = SYS_SLEEP,
	[115] = SYS_SLEEP, [133] = SYS_SIGNAL, [137] = SYS_SIGNAL, [182] = SYS_IPC,
	[183] = SYS_IPC, [188] = SYS_IPC, [189] = SYS_IPC, [192] = SYS_IPC, [193] = SYS_IPC,
	[202] = SYS_ACCEPT, [203] = SYS_CONNECT, [206] = SYS_SEND, [207] = SYS_RECV,
	[211] = SYS_SEND, [212] = SYS_RECV, [213] = SYS_READ, [214] = SYS_MM, [215] = SYS_MM,
	[216] = SYS_MM, [220] = SYS_CHILD, [221] = SYS_PATH, [222] = SYS_MM, [226] = SYS_MM,
	[227] = SYS_FSYNC, [233] = SYS_MM, [242] = SYS_ACCEPT, [243] = SYS_RECV,
	[260] = SYS_CHILD, [267] = SYS_FSYNC, [269] = SYS_SEND, [276] = SYS_PATH,
	[278] = SYS_RANDOM, [285] = SYS_COPY, [286] = SYS_READ, [287] = SYS_WRITE,
	[291] = SYS_PATH, [292] = SYS_AIO, [426] = SYS_URING, [435] = SYS_CHILD,
	[437] = SYS_PATH, [441] = SYS_EPOLL, [449] = SYS_FUTEX, [455] = SYS_FUTEX,
};
/* clang-format on */

#define MACHINE_X86_64 62

static enum sys_kind sys_kind(uint16_t machine, int16_t nr)
{
	const uint8_t *kinds = !machine || machine == MACHINE_X86_64 ? sys_x86_64 : sys_generic;

	return nr >= 0 && nr < SYS_NR_CNT ? (enum sys_kind)kinds[nr] : SYS_OTHER;
}

static bool has_prefix(const struct engine_frame *f, const char *prefix)
{
	size_t len = strlen(prefix);

	return f->text_len >= len && !memcmp(f->text, prefix, len);
}

bool classify_is_futex(const struct classifier *c, const struct episode *ep)
{
	return sys_kind(c->machine, ep->syscall) == SYS_FUTEX;
}

/* Source: include/uapi/linux/futex.h. */
enum {
	OP_WAIT = 0,
	OP_LOCK_PI = 6,
	OP_WAIT_BITSET = 9,
	OP_WAIT_REQUEUE_PI = 11,
	OP_LOCK_PI2 = 13,
	OP_PRIVATE = 128,
	OP_CMD = 127,
};

static bool is_bitset(const struct side *side)
{
	return side->futex && (side->op & OP_CMD) == OP_WAIT_BITSET;
}

static bool is_plain(const struct side *side)
{
	return side->futex && (side->op & OP_CMD) == OP_WAIT;
}

/* A note of Go's runtime, on which a thread sleeps until another one wakes it. */
static bool is_note(const struct side *side) { return is_plain(side) && !(side->val & UINT32_MAX); }

static bool has_owner(const struct side *side) { return side->flags & CC_EX_OWNER && side->owner; }

bool classify_futex_is_across(const struct side *side)
{
	return side->futex && !(side->op & OP_PRIVATE);
}

#define GO_RWLOCK "sync.(*RWMutex)."
#define SITE_FRAMES 6 /* innermost ones, of the C library or Go's runtime */

/* glibc waits by a bitset for rwlocks, semaphores and condition variables alike, Rust for all it
 * has; without one for a barrier's rounds, as for a mutex, which a function of another thing may
 * well take. */
static const struct {
	enum wait_class cls;
	bool (*waits_so)(const struct side *side);
} sites[FUTEX_SITE_CNT] = {
	[FUTEX_SITE_RWLOCK] = { WAIT_LOCK, is_bitset },
	[FUTEX_SITE_SEM] = { WAIT_SEMA, is_bitset },
	[FUTEX_SITE_COND] = { WAIT_COND, is_bitset },
	[FUTEX_SITE_BARRIER] = { WAIT_COND, is_plain },
	[FUTEX_SITE_GO_IDLE] = { WAIT_IDLE, is_note },
	[FUTEX_SITE_GO_WORLD] = { WAIT_GC, is_note },
};

/* Of a function and what it is inlined into, a line each. */
static enum futex_site site_of_frame(struct engine_frame f, const struct side *side)
{
	static const struct {
		const char *prefix;
		enum futex_site site;
	} calls[] = {
		{ "pthread_rwlock_", FUTEX_SITE_RWLOCK },
		{ "sem_", FUTEX_SITE_SEM },
		{ "new_sem_", FUTEX_SITE_SEM },
		{ "pthread_cond_", FUTEX_SITE_COND },
		{ "pthread_barrier_", FUTEX_SITE_BARRIER },
		{ "runtime.mPark", FUTEX_SITE_GO_IDLE }, /* often within its caller */
		{ "runtime.stopm", FUTEX_SITE_GO_IDLE },
		{ "runtime.stoplockedm", FUTEX_SITE_GO_IDLE },
		{ "runtime.sysmon", FUTEX_SITE_GO_IDLE },
		{ "runtime.templateThread", FUTEX_SITE_GO_IDLE },
		{ "runtime.stopTheWorld", FUTEX_SITE_GO_WORLD },
		{ "runtime.forEachP", FUTEX_SITE_GO_WORLD },
	};

	while (f.text_len) {
		const char *end = memchr(f.text, '\n', f.text_len);
		size_t len = end ? (size_t)(end - f.text) + 1 : f.text_len;
		struct engine_frame line = f;

		while (line.text_len && *line.text == '_') { /* __pthread_cond_wait */
			line.text++;
			line.text_len--;
		}
		for (size_t j = 0; j < ARRAY_SIZE(calls); j++)
			if (has_prefix(&line, calls[j].prefix) &&
			    sites[calls[j].site].waits_so(side))
				return calls[j].site;
		f.text += len;
		f.text_len -= len;
	}
	return FUTEX_SITE_NONE;
}

enum futex_site classify_site(const struct names *n, const struct side *side)
{
	struct engine_stack s;

	if ((!is_plain(side) && !is_bitset(side)) || has_owner(side) ||
	    !names_get_stack(n, side->ustack, &s))
		return FUTEX_SITE_NONE;
	for (uint32_t i = 0; i < CC_MIN(s.cnt, SITE_FRAMES); i++) {
		struct engine_frame f;
		enum futex_site site;

		if (!names_get_frame(n, s.tgid, s.gen, s.ip[i], &f))
			continue;
		site = site_of_frame(f, side);
		if (site)
			return site;
	}
	return FUTEX_SITE_NONE;
}

int classify_go_lock(const struct names *n, uint64_t ustack)
{
	struct engine_stack s;
	struct engine_frame f;
	bool named = false;

	if (!ustack || !names_get_stack(n, ustack, &s))
		return -1;
	for (uint32_t i = 0; i < CC_MIN(s.cnt, SITE_FRAMES); i++) {
		if (!names_get_frame(n, s.tgid, s.gen, s.ip[i], &f))
			continue;
		named = true;
		if (memmem(f.text, f.text_len, GO_RWLOCK, sizeof(GO_RWLOCK) - 1))
			return 1;
	}
	return named ? 0 : -1;
}

enum wait_class classify_futex(const struct side *side)
{
	uint64_t val = side->val & UINT32_MAX;

	if (has_owner(side))
		return WAIT_LOCK;
	if (side->site)
		return sites[side->site].cls;
	if (!side->futex)
		return WAIT_LOCK; /* arguments not told */
	switch (side->op & OP_CMD) {
	case OP_LOCK_PI:
	case OP_LOCK_PI2:
		return WAIT_LOCK;
	case OP_WAIT_REQUEUE_PI:
		return WAIT_COND;
	case OP_WAIT_BITSET:
		/* a glibc mutex with a timeout and an rwlock's writer expect 2, a shared
		 * semaphore 0 */
		if (val == 2)
			return WAIT_LOCK;
		return val == 0 && !(side->op & OP_PRIVATE) ? WAIT_SEMA : WAIT_COND;
	case OP_WAIT:
		/* a contended lock word is never 0; -1 is what parkers expect */
		return val == 0 || val == UINT32_MAX ? WAIT_COND : WAIT_LOCK;
	default:
		return WAIT_LOCK;
	}
}

/* A contended lock's word is 1 or 2, as a rule, or tells its owner: others may as well be a count
 * of what came since, of a condition variable that is not glibc's, or of rounds. */
static bool is_any_word(const struct side *s)
{
	uint64_t val = s->val & UINT32_MAX;

	return s->futex && (s->op & OP_CMD) == OP_WAIT && !s->site && !has_owner(s) && val > 2 &&
	       val != UINT32_MAX;
}

struct futex_kind classify_futex_kind(const struct side *side)
{
	struct futex_kind k = { .cls = (uint8_t)classify_futex(side), .site = side->site };

	k.guessed = is_any_word(side);
	k.shared = k.cls == WAIT_LOCK && is_bitset(side) && !has_owner(side);
	return k;
}

/* What the wait itself tells, else what others on the same futex have told. */
static struct futex_kind of_futex(const struct classifier *c, const struct task *t,
				  const struct episode *ep, const struct side *side)
{
	struct futex_kind own = { .cls = WAIT_LOCK, .guessed = true }, all;
	bool told = side && side->told && side->futex;
	uint32_t res;

	if (told) {
		struct side s = *side;

		if (!side->site && !(ep->kind & EP_INDEXED)) /* a wait that goes on */
			s.site = (uint8_t)classify_site(c->names, side);
		own = classify_futex_kind(&s);
		if (own.site || side->ustack || has_owner(side))
			return own;
	}
	res = resources_find(c->resources, RES_FUTEX, ep->key, 0, t->tgid);
	if (!res)
		return own;
	all = c->resources->v.p[res - 1].futex;
	/* many things are waited for by the same call: the stack of another wait tells for which */
	if (told)
		return all.site && sites[all.site].waits_so(side) ? all : own;
	return all.cls ? all : own;
}

/* Kind of the file: told for this wait, or the one a slow wait on the same descriptor had. */
static unsigned int fd_kind(const struct classifier *c, const struct task *t,
			    const struct episode *ep, const struct side *side)
{
	uint32_t res;

	if (side && side->told)
		return side->fd_kind;
	res = resources_find(c->resources, RES_FD, ep->key, 0, t->tgid);
	return res ? c->resources->v.p[res - 1].learned : CC_FD_NONE;
}

static enum wait_class of_socket(const struct classifier *c, const struct side *side, bool out)
{
	if (side && side->fd_id && map_get(c->upstreams, side->fd_id))
		return WAIT_UPSTREAM;
	return out ? WAIT_NET_SEND : WAIT_NET_RECV;
}

static enum wait_class of_file(const struct classifier *c, const struct side *side,
			       unsigned int kind, bool out)
{
	switch (kind) {
	case CC_FD_FILE:
	case CC_FD_DIR:
	case CC_FD_BLOCK:
		return out ? WAIT_DISK_WRITE : WAIT_DISK_READ;
	case CC_FD_PIPE:
		return WAIT_PIPE;
	case CC_FD_SOCK_UNIX:
		return WAIT_UNIX;
	case CC_FD_SOCK_TCP:
	case CC_FD_SOCK_UDP:
	case CC_FD_SOCK_OTHER:
		return of_socket(c, side, out);
	case CC_FD_TIMERFD:
		return WAIT_SLEEP;
	case CC_FD_SIGNALFD:
		return WAIT_SIGNAL;
	case CC_FD_EPOLL:
	case CC_FD_EVENTFD:
	case CC_FD_INOTIFY:
		return WAIT_POLL;
	case CC_FD_IO_URING:
		return WAIT_IO_URING;
	default:
		return WAIT_BLOCKED;
	}
}

static enum wait_class of_io(const struct classifier *c, enum sys_kind sys, const struct side *side,
			     unsigned int kind, bool disk, bool *guessed)
{
	bool out = sys == SYS_WRITE || sys == SYS_SEND;

	*guessed = kind == CC_FD_NONE;
	if (kind != CC_FD_NONE)
		return of_file(c, side, kind, out || (sys == SYS_COPY && !disk));
	if (sys == SYS_RECV || sys == SYS_SEND)
		return of_socket(c, side, out);
	if (sys == SYS_COPY)
		return disk ? WAIT_DISK_READ : WAIT_NET_SEND;
	if (disk)
		return out ? WAIT_DISK_WRITE : WAIT_DISK_READ;
	return WAIT_BLOCKED;
}

static enum wait_class of_syscall(const struct classifier *c, const struct task *t,
				  const struct episode *ep, const struct side *side,
				  struct wait_kind *k)
{
	bool disk = ep_kind(ep) == EP_DISK;
	enum sys_kind sys = sys_kind(c->machine, ep->syscall);
	struct futex_kind futex;

	switch (sys) {
	case SYS_FUTEX:
		futex = of_futex(c, t, ep, side);
		k->site = (enum futex_site)futex.site;
		k->shared = futex.shared;
		k->guessed = futex.guessed;
		return (enum wait_class)futex.cls;
	case SYS_EPOLL:
		return WAIT_EPOLL;
	case SYS_POLL:
		return WAIT_POLL;
	case SYS_ACCEPT:
		return WAIT_NET_RECV;
	case SYS_CONNECT:
		return side && side->fd_kind == CC_FD_SOCK_UNIX ? WAIT_UNIX : WAIT_UPSTREAM;
	case SYS_RECV:
	case SYS_SEND:
	case SYS_READ:
	case SYS_WRITE:
	case SYS_COPY:
		return of_io(c, sys, side, fd_kind(c, t, ep, side), disk, &k->guessed);
	case SYS_FSYNC:
		return WAIT_FSYNC;
	case SYS_SLEEP:
		return WAIT_SLEEP;
	case SYS_CHILD:
		return WAIT_CHILD;
	case SYS_FLOCK:
		return WAIT_FLOCK;
	case SYS_IPC:
		return WAIT_IPC;
	case SYS_URING:
		return WAIT_IO_URING;
	case SYS_AIO:
		return WAIT_DISK;
	case SYS_SIGNAL:
		return WAIT_SIGNAL;
	case SYS_RANDOM:
		return WAIT_ENTROPY;
	case SYS_MM:
		k->guessed = true;
		return WAIT_KLOCK;
	case SYS_PATH:
		k->guessed = true;
		return disk ? WAIT_DISK : WAIT_BLOCKED;
	case SYS_OTHER:
		break;
	}
	k->guessed = true;
	if (ep->syscall == -1)
		return disk ? WAIT_PAGEFAULT : WAIT_BLOCKED;
	return disk ? WAIT_DISK : WAIT_BLOCKED;
}

/* Kernel functions that say more than the syscall; the first that is on the stack counts.
 * Names as in Linux 5.10 to 6.18. */
static const struct {
	const char *prefix;
	uint8_t cls;
} frames[] = {
	{ "rwsem_", WAIT_KLOCK },
	{ "__mutex_lock", WAIT_KLOCK },
	{ "__down", WAIT_KLOCK },
	{ "do_get_write_access", WAIT_JOURNAL },
	{ "jbd2_", WAIT_JOURNAL },
	{ "wait_transaction_locked", WAIT_JOURNAL },
	{ "start_this_handle", WAIT_JOURNAL },
	{ "try_to_free", WAIT_RECLAIM },
	{ "shrink_", WAIT_RECLAIM },
	{ "compact_zone", WAIT_RECLAIM },
	{ "throttle_direct_reclaim", WAIT_RECLAIM },
	{ "balance_dirty_pages", WAIT_DISK_WRITE },
	{ "filemap_fault", WAIT_PAGEFAULT },
	{ "blkdev_issue_flush", WAIT_FSYNC },
	{ "__filemap_fdatawait_range", WAIT_FSYNC },
	{ "locks_lock_inode_wait", WAIT_FLOCK },
	{ "fcntl_setlk", WAIT_FLOCK },
	{ "do_wait", WAIT_CHILD },
	{ "io_cqring_wait", WAIT_IO_URING },
	{ "wait_for_random_bytes", WAIT_ENTROPY },
};

static enum wait_class of_stack(const struct classifier *c, uint64_t kstack)
{
	struct engine_stack s;

	if (!names_get_stack(c->names, kstack, &s))
		return WAIT_UNKNOWN;
	for (uint32_t i = 0; i < s.cnt; i++) {
		struct engine_frame f;

		if (!names_get_frame(c->names, 0, s.gen, s.ip[i], &f))
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(frames); j++)
			if (has_prefix(&f, frames[j].prefix))
				return (enum wait_class)frames[j].cls;
	}
	return WAIT_UNKNOWN;
}

static bool may_refine(enum wait_class cls)
{
	return wait_class_letter(cls) == 'D' || cls == WAIT_BLOCKED || cls == WAIT_KLOCK;
}

struct wait_kind classify(const struct classifier *c, const struct task *t,
			  const struct episode *ep, const struct side *side)
{
	struct wait_kind k = { 0 };
	enum wait_class refined;

	if (ep_kind(ep) == EP_STOPPED) {
		k.cls = WAIT_STOPPED;
		return k;
	}
	k.cls = of_syscall(c, t, ep, side, &k);
	if (side && side->uaddr && !side->futex && !classify_is_futex(c, ep)) {
		k.cls = WAIT_KLOCK; /* the kernel read the rwsem it waits for */
		k.guessed = false;
	} else if (side && side->kstack && may_refine(k.cls)) {
		refined = of_stack(c, side->kstack);
		if (refined != WAIT_UNKNOWN) {
			k.cls = refined;
			k.guessed = false;
		}
	}
	k.is_lock = k.cls == WAIT_LOCK || k.cls == WAIT_KLOCK || k.cls == WAIT_FLOCK;
	if (k.cls == WAIT_EPOLL || k.cls == WAIT_POLL || k.cls == WAIT_IO_URING ||
	    k.cls == WAIT_IDLE || sys_kind(c->machine, ep->syscall) == SYS_ACCEPT)
		k.idle = IDLE_LOOP;
	else if (k.cls == WAIT_COND || k.cls == WAIT_SEMA || k.cls == WAIT_IPC ||
		 k.cls == WAIT_NET_RECV)
		k.idle = IDLE_WHEN_FREE;
	return k;
}
