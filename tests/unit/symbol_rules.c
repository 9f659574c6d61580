/* SPDX-License-Identifier: Apache-2.0 */
#include "rules_walk.h"
#include "symbol_util.h"

#include <criterion/criterion.h>

unsigned int expect_rules(const struct cc_rec_snap *s, const struct unwind_out *o)
{
	unsigned int no_rule;
	const char *differs = rules_differ(s, o, &no_rule);

	cr_assert_null(differs, "by rules: %s", differs);
	return no_rule;
}
