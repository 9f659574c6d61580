/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences: true to the piece they speak of, and silent about what is not known. */
#include <criterion/criterion.h>

#include "snap_fixture.h"
#include "snap_text.h"
#include "verdict.h"

static char text[VERDICT_LEN];

static const char *verdict(struct snap_fixture *f)
{
	fixture_strings(f);
	size_t len = verdict_request(&f->s, &f->r, text, sizeof(text));

	cr_expect_eq(len, strlen(text));
	return text;
}

/* Makes the request one wait of @cls, without anything beneath. */
static struct snap_piece *only(struct snap_fixture *f, enum wait_class cls)
{
	f->p[0] = fixture_piece(f, 0, 100000, 0, cls, f->p[0].task);
	f->r.piece_cnt = 1;
	f->r.latency_ns = CC_MS(100);
	f->r.dominant = f->r.root = (struct snap_dominant){
		.cls = (uint8_t)cls, .ns = CC_MS(100), .share = 1, .culprit_ns = CC_MS(100)
	};
	return &f->p[0];
}

Test(verdict, lock_held_by_one_in_fsync)
{
	struct snap_fixture *f = fixture_new();

	f->p[3].site = 0;
	cr_expect_str_eq(verdict(f),
			 "lock 141.0 of 211.4 ms (67%): cart_mutex held by worker/4249, "
			 "itself in disk fsync 123.0 ms -> the root cause is disk fsync");
	f->p[3].site = fx(f, "cart_flush+0x9c");
	f->p[3].resource = fx(f, "cart.log");
	cr_expect_str_eq(verdict(f),
			 "lock 141.0 of 211.4 ms (67%): cart_mutex held by worker/4249, "
			 "itself in disk fsync 123.0 ms -> the root cause is disk fsync "
			 "on cart.log in cart_flush+0x9c");
	fixture_free(f);
}

Test(verdict, a_holder_that_is_not_known_is_not_named)
{
	struct snap_fixture *f = fixture_new();

	f->p[1].p.holder_tid = 0;
	f->r.root = f->r.dominant;
	cr_expect_str_eq(verdict(f), "lock 141.0 of 211.4 ms (67%): cart_mutex, holder not known, "
				     "released by worker/4249");
	f->p[1].p.waker_tid = 0;
	f->p[1].resource = f->r.dominant.resource = 0;
	f->p[1].p.flags |= CC_PC_OPEN;
	f->r.state = CC_RQS_IN_FLIGHT;
	cr_expect_str_eq(verdict(f), "still going on: lock 141.0 of 211.4 ms (67%): cart_add+0x41, "
				     "holder not known, not over yet");
	fixture_free(f);
}

Test(verdict, what_comes_through_a_channel_has_no_holder)
{
	struct snap_fixture *f = fixture_new();

	f->p[1].p.holder_tid = 0;
	f->p[1].p.cls = f->r.dominant.cls = WAIT_CHAN;
	f->r.root = f->r.dominant;
	cr_expect_str_eq(verdict(f),
			 "chan 141.0 of 211.4 ms (67%): cart_mutex, ended by worker/4249");
	fixture_free(f);
}

/* Whom a sentence names has done what it says, not all that others did too. */
Test(verdict, the_part_of_whom_it_names)
{
	struct snap_fixture *f = fixture_new();

	f->r.dominant.culprit_ns = CC_MS(90);
	f->r.root.culprit_ns = CC_MS(80);
	f->p[3].site = 0;
	cr_expect_str_eq(verdict(f),
			 "lock 141.0 of 211.4 ms (67%): cart_mutex held by several in turn, "
			 "worker/4249 for 90.0, the longest; those were in disk fsync 123.0 ms -> "
			 "the root cause is disk fsync");
	f->p[3].p.cls = f->r.root.cls = WAIT_QUEUED;
	f->p[3].by_request = fx(f, "7f3a#9");
	cr_expect_str_eq(verdict(f),
			 "lock 141.0 of 211.4 ms (67%): cart_mutex held by several in turn, "
			 "worker/4249 for 90.0, the longest; those were busy with other requests "
			 "123.0 ms, longest with 7f3a#9");
	only(f, WAIT_HOL)->by_request = fx(f, "7f3a#2");
	f->r.dominant.culprit_ns = CC_MS(7);
	cr_expect_str_eq(verdict(f),
			 "hol 100.0 of 100.0 ms (100%): its thread served request 7f3a#2 for 7.0 "
			 "of it meanwhile");
	f->r.dominant.culprit_ns = CC_MS(90); /* a tenth for others is not worth a word */
	cr_expect_str_eq(verdict(f),
			 "hol 100.0 of 100.0 ms (100%): its thread served request 7f3a#2 "
			 "meanwhile");
	fixture_free(f);
}

Test(verdict, not_attributed)
{
	struct snap_fixture *f = fixture_new();

	only(f, WAIT_ASYNC);
	cr_expect_str_eq(verdict(f),
			 "not attributed: async 100.0 of 100.0 ms (100%), the thread was "
			 "free, what it waited for is not known");
	f->r.confidence = 12;
	f->r.lost_inside = true;
	cr_expect_not_null(strstr(verdict(f), "; low confidence (12); events were lost meanwhile"));
	f->r.path_ok = false;
	cr_expect_str_eq(
		verdict(f),
		"not attributed: no path (its events are not kept, or it was not sampled)");
	fixture_free(f);
}

/* Three pieces on a CPU, of which the longest speaks for all; what samples say of them decides. */
Test(verdict, the_function_that_most_of_the_cpu_time_was_in)
{
	struct snap_fixture *f = fixture_new();
	struct snap_piece *p = only(f, WAIT_CPU);
	struct snap_task nginx = p->task;

	p[0] = fixture_piece(f, 0, 45000, 0, WAIT_CPU, nginx);
	p[1] = fixture_piece(f, 45000, 85000, 0, WAIT_CPU, nginx);
	p[2] = fixture_piece(f, 85000, 100000, 0, WAIT_CPU, nginx);
	f->r.piece_cnt = 3;
	p[1].site = fx(f, "ngx_read_file+0x41");
	cr_expect_str_eq(verdict(f), "cpu 100.0 of 100.0 ms (100%): running", "40 of 100 ms");
	p[2].site = fx(f, "ngx_read_file+0x9c");
	cr_expect_str_eq(verdict(f), "cpu 100.0 of 100.0 ms (100%): in ngx_read_file");
	p[2].site = fx(f, "ngx_read_file_2+0x9c");
	cr_expect_str_eq(verdict(f), "cpu 100.0 of 100.0 ms (100%): running");
	p[0].site = fx(f, "deflate+0x1");
	p[2].site = 0;
	cr_expect_str_eq(verdict(f), "cpu 100.0 of 100.0 ms (100%): running",
			 "the longest is not the most");
	p[2].site = fx(f, "deflate+0x2");
	cr_expect_str_eq(verdict(f), "cpu 100.0 of 100.0 ms (100%): in deflate");
	p[2].p.depth = 1; /* what it waited for has a time of its own */
	p[2].p.tid = 7;
	cr_expect_str_eq(verdict(f), "cpu 100.0 of 100.0 ms (100%): in deflate");
	p[0].site = 0;
	cr_expect_str_eq(verdict(f), "cpu 100.0 of 100.0 ms (100%): running");
	fixture_free(f);
}

Test(verdict, each_kind)
{
	struct snap_fixture *f = fixture_new();
	struct snap_piece *p = only(f, WAIT_CPU);

	cr_expect_str_eq(verdict(f), "cpu 100.0 of 100.0 ms (100%): running");
	p = only(f, WAIT_RUNQ);
	cr_expect_str_eq(verdict(f),
			 "runq 100.0 of 100.0 ms (100%): runnable, no CPU was free for it");
	p->p.occupant_tid = 911;
	p->p.occupant_ns = CC_MS(58);
	p->occupant = (struct snap_task){ 911, 911, fx(f, "backup"), 0 };
	cr_expect_str_eq(verdict(f), "runq 100.0 of 100.0 ms (100%): behind backup/911, which had "
				     "that CPU for 58.0 of it");
	p[1] = p[2] =
		p[0]; /* it came in three pieces, the one that is named had two of them in part */
	p[0].p.end = p[1].p.start = f->r.start + CC_MS(40);
	p[1].p.end = p[2].p.start = f->r.start + CC_MS(70);
	p[0].p.occupant_ns = CC_MS(10);
	p[1].p.occupant_tid = 912;
	p[2].p.occupant_ns = CC_MS(9);
	f->r.piece_cnt = 3;
	cr_expect_str_eq(verdict(f), "runq 100.0 of 100.0 ms (100%): behind several in turn, "
				     "backup/911 for 19.0");
	p[2].p.occupant_ns = CC_MS(25);
	cr_expect_str_eq(verdict(f), "runq 100.0 of 100.0 ms (100%): behind backup/911, which had "
				     "that CPU for 35.0 of it");
	p = only(f, WAIT_HOL);
	p->by_request = fx(f, "7f3a#2");
	cr_expect_str_eq(verdict(f),
			 "hol 100.0 of 100.0 ms (100%): its thread served request 7f3a#2 "
			 "meanwhile");
	p = only(f, WAIT_QUEUED);
	cr_expect_str_eq(verdict(f), "queued 100.0 of 100.0 ms (100%): all workers were busy");
	p = only(f, WAIT_SOCKQ);
	p->p.flags = CC_PC_IDLE_SIBLING;
	cr_expect_str_eq(verdict(f),
			 "sockq 100.0 of 100.0 ms (100%): data lay in the socket, nobody "
			 "read it, though another worker was idle");
	p = only(f, WAIT_UPSTREAM);
	p->resource = f->r.dominant.resource = fx(f, "10.0.0.9:5432");
	f->r.confidence = 50;
	cr_expect_str_eq(verdict(f),
			 "probably upstream 100.0 of 100.0 ms (100%): for 10.0.0.9:5432; "
			 "low confidence (50)");
	p = only(f, WAIT_THROTTLE);
	f->r.confidence = 95;
	cr_expect_str_eq(verdict(f), "throttle 100.0 of 100.0 ms (100%): runnable, held back by a "
				     "cgroup CPU quota");
	fixture_free(f);
}

Test(verdict, short_buffer)
{
	struct snap_fixture *f = fixture_new();
	char small[10];

	fixture_strings(f);
	cr_expect_eq(verdict_request(&f->s, &f->r, small, sizeof(small)), 9);
	cr_expect_str_eq(small, "lock 141.");
	fixture_free(f);
}

Test(verdict, window)
{
	struct snap_fixture *f = fixture_new();
	struct verdict_slow d = { .cls = WAIT_LOCK, .root_cls = WAIT_FSYNC };

	d.resource = fx(f, "cart_mutex");
	d.holder = fx(f, "worker/4249");
	f->slow[0] = (struct snap_slow_typical){ WAIT_LOCK, CC_MS(45), CC_MS(4) };
	f->slow[1] = (struct snap_slow_typical){ WAIT_UPSTREAM, CC_US(10500), CC_MS(10) };
	f->slow[2] = (struct snap_slow_typical){ WAIT_CPU, CC_MS(1), CC_MS(1) };
	f->s.slow = f->slow;
	f->s.slow_cnt = 3;
	f->s.p95_ns = CC_US(48200);
	f->s.total_cnt = 100;
	fixture_strings(f);
	verdict_window(&f->s, &d, text, sizeof(text));
	cr_expect_str_eq(text,
			 "slow requests (48.2 ms and over): lock +41.0 ms on cart_mutex, held by "
			 "worker/4249 in disk fsync; upstream as always");
	verdict_window(&f->s, NULL, text, sizeof(text));
	cr_expect_str_eq(text,
			 "slow requests (48.2 ms and over): lock +41.0 ms; upstream as always");
	f->slow[0].cls = WAIT_ASYNC;
	verdict_window(&f->s, &d, text, sizeof(text));
	cr_expect_str_eq(text, "slow requests (48.2 ms and over): async +41.0 ms, not attributed; "
			       "upstream as always");
	f->s.slow = f->slow + 1;
	f->s.slow_cnt = 2;
	verdict_window(&f->s, NULL, text, sizeof(text));
	cr_expect_str_eq(text,
			 "slow requests are like the typical ones: mostly upstream, 10.5 ms each");
	f->s.total_cnt = 0;
	f->s.in_flight_cnt = 2;
	verdict_window(&f->s, NULL, text, sizeof(text));
	cr_expect_str_eq(text, "no finished request in this window, 2 in flight");
	fixture_free(f);
}

/* ---- waits on a connection ---- */

static struct snap_text net_text(enum wait_class cls, cc_ns ns, uint32_t srtt_us, uint32_t retrans)
{
	struct cc_piece p = { .start = 1000,
			      .end = 1000 + ns,
			      .cls = (uint8_t)cls,
			      .srtt_us = srtt_us,
			      .retrans = retrans };

	return snap_net_text(&p);
}

Test(verdict, what_was_sent_again_was_lost)
{
	cr_expect_str_eq(net_text(WAIT_NET_RECV, CC_MS(200), 50, 1).s,
			 ", 1 packet sent again: lost on the way, or no room at the peer");
	cr_expect_str_eq(net_text(WAIT_UPSTREAM, CC_MS(200), 0, 3).s,
			 ", 3 packets sent again: lost on the way, or no room at the peer");
	cr_expect_str_eq(net_text(WAIT_LOCK, CC_MS(200), 50, 1).s, ""); /* no such wait */
}

Test(verdict, a_peer_is_slow_when_nothing_was_lost_and_it_is_not_the_way_there)
{
	cr_expect_str_eq(net_text(WAIT_NET_RECV, CC_MS(60), 500, 0).s,
			 ", nothing sent again, round trip 0.5 ms: the peer took that long");
	cr_expect_str_eq(net_text(WAIT_NET_SEND, CC_MS(60), 500, 0).s,
			 ", nothing sent again, round trip 0.5 ms: the peer did not read");
	cr_expect_str_eq(net_text(WAIT_NET_RECV, CC_MS(60), 20000, 0).s,
			 "");                                               /* three round trips */
	cr_expect_str_eq(net_text(WAIT_NET_RECV, CC_US(900), 10, 0).s, ""); /* not slow */
	cr_expect_str_eq(net_text(WAIT_NET_RECV, CC_MS(60), 0, 0).s, "");   /* not known */
}

/* ---- what the kernel was at on the CPU ---- */

static const char *kernel_work(const char *innermost, const char *outer, enum wait_class cls)
{
	struct snap_fixture *f = fixture_new();
	const char *ret;

	f->frames[4].text = fx(f, innermost);
	f->frames[5].text = fx(f, outer);
	fixture_strings(f);
	f->p[0].p.cls = (uint8_t)cls;
	f->p[0].kstack = 3;
	ret = snap_kernel_work(&f->s, &f->p[0]);
	fixture_free(f);
	return ret;
}

Test(verdict, a_sample_in_the_kernel_says_what_it_was_at)
{
	static const char fault[] = "asm_exc_page_fault+0x22", soft[] = "handle_softirqs+0xd2";

	cr_expect_str_eq(kernel_work("clear_page_erms+0x7", fault, WAIT_CPU), "page fault");
	cr_expect_str_eq(kernel_work("shrink_node+0x1e4", fault, WAIT_CPU), "reclaim");
	cr_expect_str_eq(kernel_work(soft, "udp_sendmsg+0x9a", WAIT_CPU), "softirq");
	cr_expect_str_eq(kernel_work(soft, fault, WAIT_CPU), "softirq");
	cr_expect_str_eq(kernel_work("vfs_read+0x9", "do_syscall_64+0x71", WAIT_CPU), "");
	cr_expect_str_eq(kernel_work("shrink_node+0x1e4", fault, WAIT_PAGEFAULT), "");
}
