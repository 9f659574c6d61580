/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wait_class.h"

Test(wait_class, both_spellings_lead_back_to_the_class)
{
	for (int c = 0; c < WAIT_CLASS_CNT; c++) {
		char json[32];

		/* the JSON name is the people's name with '_' for ' ': nothing else may differ */
		snprintf(json, sizeof(json), "%s", wait_class_name(c));
		for (char *p = json; *p; p++)
			if (*p == ' ')
				*p = '_';
		cr_expect_str_eq(wait_class_json(c), json);
		cr_expect_eq(wait_class_parse(wait_class_name(c)), c, "%s", wait_class_name(c));
		cr_expect_eq(wait_class_parse(json), c, "%s", json);
		cr_expect_not_null(strchr(WAIT_GROUPS, wait_class_letter(c)));
	}
}

Test(wait_class, outside_numbers_and_words_do_no_harm)
{
	cr_expect_str_eq(wait_class_name(WAIT_CLASS_CNT), "unknown");
	cr_expect_str_eq(wait_class_json(~0u), "unknown");
	cr_expect_eq(wait_class_letter(~0u), '?');
	cr_expect(wait_class_unexplained(~0u));
	cr_expect_eq(wait_class_parse("lok"), -EINVAL);
	cr_expect_eq(wait_class_parse(""), -EINVAL);
	cr_expect_str_eq(wait_group_name('L'), "lock");
	cr_expect_str_eq(wait_group_name('\0'), "other");
	cr_expect_str_eq(wait_group_name('x'), "other");
}
