/* SPDX-License-Identifier: Apache-2.0 */
/* demo_net: the demo's small protocol over loopback TCP: a fixed question, an answer of the size
 * that it asks for. */
#ifndef CC_DEMO_NET_H
#define CC_DEMO_NET_H

#include "base.h"

enum demo_op { DEMO_OP_NORMAL, DEMO_OP_CULPRIT }; /* the latter makes others slow */

struct demo_msg {
	uint32_t op;     /* enum demo_op */
	uint32_t answer; /* bytes wanted back */
	cc_ns sent;      /* the client's clock; the same clock as everyone's on this machine */
};

/* A listening socket on 127.0.0.1 with a free port, or -errno. */
int demo_listen(uint16_t *ret_port);
/* @rcvbuf 0: the kernel's choice. */
int demo_connect(uint16_t port, int rcvbuf);
/* -errno on failure; @ret_peer_port may be NULL. */
int demo_accept(int listen_fd, uint16_t *ret_peer_port);

bool demo_ask(int fd, uint32_t op, uint32_t answer);
bool demo_take(int fd, struct demo_msg *ret); /* false: the client has gone */
bool demo_answer(int fd, uint32_t bytes);
/* Reads @bytes, at most @chunk at once with @pause_ns between; 0: as they come. */
bool demo_read_answer(int fd, uint32_t bytes, uint32_t chunk, cc_ns pause_ns);

#endif
