/* SPDX-License-Identifier: Apache-2.0 */
/* Text that users type or give in files: a filter, a theme, a configuration, which once read and
 * written again is the same. */
#include <string.h>

#include "config.h"
#include "filter.h"
#include "fuzz.h"
#include "theme.h"

static void read_config(const char *text)
{
	struct config c, again;
	struct cc_err err;

	config_init(&c);
	if (config_parse(text, &c, &err))
		return;
	char *merged = config_merge(text, &c), *twice;

	config_init(&again);
	if (!merged || config_parse(merged, &again, &err))
		abort();
	twice = config_merge(merged, &again);
	if (!twice || strcmp(merged, twice) != 0)
		abort();
	free(twice);
	free(merged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1);
	struct filter *f;
	struct cc_err err;
	struct theme t;

	if (!text)
		return -1;
	memcpy(text, data, len);
	text[len] = '\0';
	if (filter_parse(text, &err, &f) == 0)
		filter_free(f);
	memset(&t, 0, sizeof(t));
	if (theme_parse(text, &t, &err) && memchr(err.msg, 0, sizeof(err.msg)) == NULL)
		abort();
	read_config(text);
	free(text);
	return 0;
}
