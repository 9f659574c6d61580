/* SPDX-License-Identifier: Apache-2.0 */
/* req_conn: a connection in the kernel's request state machine, and what is told of it. */
#ifndef REQ_CONN_H
#define REQ_CONN_H

#include "../../bpf/req_link.h"

#include <stddef.h>
#include <stdint.h>

#define MS(n) ((uint64_t)(n)*1000000)
#define TOLD_MAX 256

/* A connection as the kernel has it, and what was told of it. */
struct conn {
	struct req_state s;
	uint64_t now;
	uint32_t rcv_nxt, copied_seq, write_seq;
	uint64_t got, given;         /* bytes that went through recv and send, splice included */
	uint32_t unseen, unseen_tid; /* written, the event is still to come */
	struct cc_rec_req told[TOLD_MAX];
	size_t told_cnt;
};

struct conn *conn_new(uint32_t kind);
void conn_tell(struct conn *c, uint16_t end);
struct req_op conn_op(const struct conn *c, uint64_t bytes, uint32_t tid);
void conn_data(struct conn *c, uint32_t bytes);
int conn_recv(struct conn *c, uint32_t bytes, uint32_t tid);
int conn_send_event(struct conn *c, uint32_t bytes, uint32_t tid);
int conn_send(struct conn *c, uint32_t bytes, uint32_t tid);
void conn_eof(struct conn *c);
void conn_ask(struct conn *c, uint64_t ms, uint32_t bytes);
void conn_answer(struct conn *c, uint64_t ms, uint32_t bytes);

#endif
