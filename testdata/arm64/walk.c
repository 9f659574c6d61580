/* SPDX-License-Identifier: Apache-2.0 */
/* walk: an arm64 program that writes down its own registers and stack at places whose callers it
 * knows: a record for each, as struct record below, to stdout. Made and run by testdata/arm64/make;
 * tests/unit/test_symbol_arm64.c unwinds what it wrote. No library, so that it is small. */
typedef unsigned long u64;

#define KNOWN 32
#define STACK 8192

struct record {
	u64 magic, known;
	u64 ip[KNOWN]; /* of the functions that it stands in, innermost first */
	u64 regs[12];  /* x19 .. x28, x29, x30 */
	u64 sp, bytes;
	unsigned char stack[STACK];
};

/* What snap_here() and the signal handler fill. */
struct regs {
	u64 regs[12], sp, pc;
};

static u64 callers[KNOWN], depth, top;
static struct record record;

static u64 call(u64 nr, u64 a, u64 b, u64 c, u64 d)
{
	register u64 x8 __asm__("x8") = nr;
	register u64 x0 __asm__("x0") = a;
	register u64 x1 __asm__("x1") = b;
	register u64 x2 __asm__("x2") = c;
	register u64 x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}

/* The registers as they are where it begins: a function without a frame. */
void snap_here(struct regs *r);
__asm__(".text\n.globl snap_here\n.type snap_here, %function\nsnap_here:\n.cfi_startproc\n"
	"stp x19, x20, [x0]\nstp x21, x22, [x0, 16]\nstp x23, x24, [x0, 32]\n"
	"stp x25, x26, [x0, 48]\nstp x27, x28, [x0, 64]\nstp x29, x30, [x0, 80]\n"
	"mov x1, sp\nstr x1, [x0, 96]\nadr x1, snap_here\nstr x1, [x0, 104]\nret\n"
	".cfi_endproc\n.size snap_here, .-snap_here\n");

/* A handler returns to this; the kernel has its own in the vdso. */
void restorer(void);
__asm__(".text\n.globl restorer\n.type restorer, %function\nnop\nrestorer:\nmov x8, 139\nsvc 0\n"
	".size restorer, .-restorer\n");

#define ENTER() (callers[depth++] = (u64)__builtin_extract_return_addr(__builtin_return_address(0)))
#define LEAVE() (depth--)

/* @more: frames inside those that ENTER() knows. */
static void write_down(const struct regs *r, const u64 *more, u64 more_cnt)
{
	u64 n = 0;

	record.magic = 0x34366d7261;
	record.ip[n++] = r->pc;
	for (u64 i = 0; i < more_cnt; i++)
		record.ip[n++] = more[i];
	for (u64 i = depth; i; i--)
		record.ip[n++] = callers[i - 1];
	record.known = n;
	for (u64 i = 0; i < 12; i++)
		record.regs[i] = r->regs[i];
	record.sp = r->sp;
	record.bytes = top - r->sp < STACK ? top - r->sp : STACK;
	for (u64 i = 0; i < record.bytes; i++)
		record.stack[i] = ((const volatile unsigned char *)r->sp)[i];
	call(64, 1, (u64)&record, sizeof(record), 0);
}

/* Called by all: where it returns to is the last thing known. */
static __attribute__((noinline, noclone)) void here(void)
{
	struct regs r;

	ENTER();
	snap_here(&r);
	u64 in_here = r.regs[11] & 0xffffffffffff;
	write_down(&r, &in_here, 1);
	LEAVE();
}

/* ---- kinds of frames --------------------------------------------------------------------------
 */

__attribute__((noinline, noclone)) int large(int a)
{
	volatile char room[1500];

	ENTER();
	room[a] = 1;
	here();
	LEAVE();
	return room[a];
}

__attribute__((noinline, noclone)) int grown(int a)
{
	ENTER();
	volatile char *room = __builtin_alloca((unsigned)a * 16);

	room[0] = 1;
	here();
	a += large(a & 7);
	LEAVE();
	return a + room[0];
}

__attribute__((noinline, noclone)) int many(int a, int b, int c, int d)
{
	int e = a * b, f = b * c, g = c * d, h = d * a, i = a + d;

	ENTER();
	here();
	a = grown(5 + (i & 1));
	LEAVE();
	return a + b + c + d + e + f + g + h + i;
}

__attribute__((noinline, noclone)) int again(int n)
{
	ENTER();
	int r = n ? again(n - 1) + 1 : many(1, 2, 3, 4);
	LEAVE();
	return r;
}

/* No frame: the return address is in x30 when it is interrupted. */
__attribute__((noinline, noclone)) void trap_leaf(void)
{
	callers[depth] = (u64)__builtin_extract_return_addr(__builtin_return_address(0));
	__asm__ volatile("udf #0" ::: "memory");
}

__attribute__((noinline, noclone)) int traps(int a)
{
	volatile int keep[20];

	ENTER();
	keep[a] = a;
	trap_leaf();
	here();
	LEAVE();
	return keep[a];
}

/* ---- in a handler -----------------------------------------------------------------------------
 */

static void handler(int sig, void *info, void *context)
{
	u64 *c = (u64 *)((char *)context + 176), more[3];
	struct regs r;

	(void)sig;
	(void)info;
	depth++; /* trap_leaf's */
	for (int i = 0; i < 12; i++)
		r.regs[i] = c[1 + 19 + i];
	r.sp = c[32];
	r.pc = c[33];
	write_down(&r, more, 0); /* as if it was caught there */
	snap_here(&r);
	more[0] = r.regs[11] & 0xffffffffffff;
	more[1] = (u64)restorer;
	more[2] = c[33];
	write_down(&r, more, 3);
	depth--;
	c[33] += 4;
}

void start_c(u64 sp)
{
	struct {
		void (*handler)(int, void *, void *);
		u64 flags;
		void (*restorer)(void);
		u64 mask;
	} act = { handler, 4 | 0x04000000, restorer, 0 };

	top = sp;
	ENTER();
	call(134, 4, (u64)&act, 0, 8); /* SIGILL */
	again(3);
	traps(3);
	call(94, 0, 0, 0, 0);
}

__asm__(".text\n.globl _start\n.type _start, %function\n_start:\n.cfi_startproc\n"
	".cfi_undefined x30\nmov x0, sp\nbl start_c\nnop\n.cfi_endproc\n.size _start, .-_start\n");
