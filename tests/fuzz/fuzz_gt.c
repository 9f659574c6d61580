/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the log of a server whose CRITICAST_GT lines are to be judged. */
#include "eval.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct eval_log log;
	FILE *in = len ? fmemopen((void *)data, len, "r") : NULL;

	if (!in)
		return 0;
	if (eval_log_read(in, &log))
		abort();
	for (size_t i = 0; i < log.cnt; i++)
		if (!log.v[i].token || log.v[i].token >= log.token_cnt ||
		    log.v[i].site >= EVAL_SITE_CNT || log.v[i].mech >= EVAL_MECH_CNT ||
		    (i && log.v[i].wall_ns < log.v[i - 1].wall_ns))
			abort();
	eval_log_done(&log);
	fclose(in);
	return 0;
}
