/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CC_BPF_GO_FILE_H
#define CC_BPF_GO_FILE_H

#include "go.h"

/* Looks up what s->fd, a file of the current process, is. Says whether it is a connection of its
 * server. sock.bpf.c */
int go_file(struct cc_bpf_go_state *s, struct cc_bpf_go *go, __u64 now);

#endif
