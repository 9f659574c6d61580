/* SPDX-License-Identifier: Apache-2.0 */
/* What is told like a request and is none. By sizes and times only: no payload is ever seen. */
#include "request.h"

#define QUIET_NS CC_MS(50ull)  /* CC_END_QUIET */
#define FAREWELL_BYTES 64u     /* QUIT, Terminate, a TLS alert, GOAWAY */
#define EXIT_BYTES 8u          /* a process may also die of a request: what is too small for one */
#define EXIT_NS CC_MS(1000ull) /* how long a process may take to end */
#define FAREWELL_NS CC_MS(50ull) /* a client that gave up on an answer waited longer for it */

bool request_is_farewell(const struct cc_rec_req *q)
{
	uint16_t end = q->h.aux;
	cc_ns took = q->h.ts - q->first_recv;
	bool ended = end == CC_END_EXIT ? q->bytes_in <= EXIT_BYTES && took < EXIT_NS
					: took < FAREWELL_NS;

	ended &= end == CC_END_FIN || end == CC_END_EOF || end == CC_END_RST || end == CC_END_EXIT;
	return ended && q->ordinal > 1 && q->first_recv && !q->last_send && q->recv_cnt == 1 &&
	       q->bytes_in <= FAREWELL_BYTES;
}

bool request_is_answered(const struct cc_rec_req *q)
{
	return q->first_send && q->first_send + QUIET_NS > q->h.ts;
}

const char *request_label(const struct cc_rec_req *q)
{
	static const struct {
		uint32_t what;
		const char *label;
	} labels[] = {
		{ CC_RQ_BUSY, "busy period" },      { CC_RQ_SETUP, "set-up" },
		{ CC_RQ_UNSOLICITED, "push" },      { CC_RQ_FAREWELL, "farewell" },
		{ CC_RQ_STREAM, "stream" },         { CC_RQ_NO_REPLY, "no reply" },
		{ CC_RQ_CONCURRENT, "concurrent" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(labels); i++)
		if (q->what & labels[i].what)
			return labels[i].label;
	return "";
}
