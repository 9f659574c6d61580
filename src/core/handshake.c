/* SPDX-License-Identifier: Apache-2.0 */
/* TLS handshakes that the first exchange alone does not give away (the kernel's label is for those
 * that it does): of a client whose hello is of no known size, to a server that reads whole flights.
 * By the sizes of both exchanges, and only where the connections to a port have them one like the
 * other: a single one may look so by chance. */
#include <errno.h>
#include <string.h>

#include "engine_priv.h"
#include "handshake.h"

#define PORTS_MAX 256u
#define LEAST 4u       /* connections that look so, before it is believed */
#define ELSE_MAX 10u   /* and no more than 1 in so many that does not */
#define SEEN_MAX 4096u /* then earlier ones count half */

#define HELLO_MIN 100u  /* no hello is smaller */
#define FLIGHT_MIN 600u /* nor a server's flight with a certificate in it */
#define TICKETS_MAX 1000u

static struct tls_port *port_of(struct engine *e, const struct cc_rec_req *q)
{
	for (uint32_t i = 0; i < e->tls_ports.cnt; i++)
		if (e->tls_ports.p[i].port == q->local_port && e->tls_ports.p[i].netns == q->netns)
			return &e->tls_ports.p[i];
	if (e->tls_ports.cnt == PORTS_MAX)
		vec_drop_front(&e->tls_ports, 1);
	if (vec_reserve(&e->mem, &e->tls_ports, e->tls_ports.cnt + 1))
		return NULL;
	e->tls_ports.p[e->tls_ports.cnt] =
		(struct tls_port){ .port = q->local_port, .netns = q->netns };
	return &e->tls_ports.p[e->tls_ports.cnt++];
}

static bool looks_so(const struct cc_rec_req *hello, const struct cc_rec_req *end)
{
	if (hello->bytes_in < HELLO_MIN || hello->bytes_out < FLIGHT_MIN)
		return false;
	if (handshake_is_end13(end->bytes_in))
		return end->bytes_out >= 50 && end->bytes_out <= TICKETS_MAX;
	/* Finished, maybe with a ticket before it */
	return handshake_is_end12(end->bytes_in) &&
	       ((end->bytes_out >= 40 && end->bytes_out <= 60) ||
		(end->bytes_out >= 150 && end->bytes_out <= 400));
}

static bool may_be_one(const struct req *r)
{
	return r->told &&
	       !(r->pub.rec.what & (CC_RQ_UNIX | CC_RQ_UDP | CC_RQ_ORDINAL_GE | CC_RQ_UNSOLICITED));
}

int handshake_of(struct engine *e, struct req *r, struct req **ret)
{
	struct req *hello = r->pub.id.ordinal == 2 ? mixed_earlier(e, r, 1) : NULL;
	struct tls_port *port;

	*ret = NULL;
	if (!hello || !may_be_one(hello) || !may_be_one(r) || r->pub.rec.what & CC_RQ_SETUP)
		return 0;
	port = port_of(e, &r->pub.rec);
	if (!port)
		return -ENOMEM;
	if (!r->hand_shaken && !(hello->pub.rec.what & CC_RQ_SETUP)) {
		bool so = looks_so(&hello->pub.rec, &r->pub.rec);

		port->so += so;
		port->otherwise += !so;
		r->hand_shaken = true;
	}
	if (port->so + port->otherwise > SEEN_MAX) {
		port->so /= 2;
		port->otherwise /= 2;
	}
	if (port->so < LEAST || port->otherwise * ELSE_MAX > port->so)
		return 0;
	if (handshake_is_end13(r->pub.rec.bytes_in) || handshake_is_end12(r->pub.rec.bytes_in))
		r->pub.rec.what |= CC_RQ_SETUP;
	*ret = hello->pub.rec.what & CC_RQ_SETUP ? NULL : hello;
	return 0;
}
