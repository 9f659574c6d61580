/* SPDX-License-Identifier: Apache-2.0 */
/* shop_stream: records of a small shop. nginx/4245 serves 20 requests on :8080, connection 7f3a;
 * request i (from 1) starts 200 * i ms after SHOP_T0 and is 2 ms of cpu; the last two wait 100 ms
 * in between for cart_mutex, which worker/4249 holds while it is in fsync for 90 of these. */
#ifndef CC_SHOP_STREAM_H
#define CC_SHOP_STREAM_H

#include "source.h"

enum { SHOP_NGINX = 4245, SHOP_WORKER = 4249, SHOP_PID = 4242 };
#define SHOP_T0 CC_S(1000)

int shop_stream(cc_record_fn *fn, void *ctx); /* 0, or what @fn returned */

#endif
