/* SPDX-License-Identifier: Apache-2.0 */
/* Text that users type or give in files: a filter, a theme. */
#include <string.h>

#include "filter.h"
#include "fuzz.h"
#include "theme.h"

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
	free(text);
	return 0;
}
