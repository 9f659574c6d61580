/* SPDX-License-Identifier: Apache-2.0 */
#include "rights.h"

enum rights_state rights_have(cap_value_t cap)
{
	cap_flag_value_t v = CAP_CLEAR;
	cap_t caps = cap_get_proc();
	if (!caps)
		return RIGHTS_UNKNOWN;
	/* before 5.8 (BPF, PERFMON) and 5.9 (CHECKPOINT_RESTORE) CAP_SYS_ADMIN was all of them, and
	 * it still is */
	bool in_admin = cap == CAP_BPF || cap == CAP_PERFMON || cap == CAP_CHECKPOINT_RESTORE;
	bool got = !cap_get_flag(caps, cap, CAP_EFFECTIVE, &v) && v == CAP_SET;
	if (!got && in_admin)
		got = !cap_get_flag(caps, CAP_SYS_ADMIN, CAP_EFFECTIVE, &v) && v == CAP_SET;
	cap_free(caps);
	return got ? RIGHTS_YES : RIGHTS_NO;
}

void rights_narrow(void)
{
#define X(cap, needed, gives) CAP_##cap,
	static const cap_value_t keep[] = { CC_RIGHTS(X) CAP_DAC_OVERRIDE, CAP_SYS_NICE };
#undef X
	cap_t has = cap_get_proc(), want = cap_init();
	for (size_t i = 0; has && want && i < ARRAY_SIZE(keep); i++)
		for (cap_flag_t flag = CAP_EFFECTIVE; flag <= CAP_INHERITABLE; flag++) {
			cap_flag_value_t v = CAP_CLEAR;
			if (!cap_get_flag(has, keep[i], flag, &v))
				cap_set_flag(want, flag, 1, &keep[i], v);
		}
	if (has && want)
		cap_set_proc(want);
	cap_free(has);
	cap_free(want);
}
