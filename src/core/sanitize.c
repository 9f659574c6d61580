/* SPDX-License-Identifier: Apache-2.0 */
#include "sanitize.h"

#include <string.h>

#define BAD_CHAR UINT32_MAX

/* One UTF-8 character of at most @len bytes. Returns its bytes; *ret is BAD_CHAR and one byte is
 * taken for what is not one: overlong, surrogate, beyond U+10FFFF, cut. */
static size_t next_char(const unsigned char *s, size_t len, uint32_t *ret)
{
	static const uint32_t lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80   ? 1
		   : s[0] < 0xc2 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf5 ? 4
				 : 0;
	uint32_t c = n > 1 ? s[0] & (0x7fu >> n) : s[0];

	*ret = BAD_CHAR;
	if (n == 0 || n > len)
		return 1;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < lowest[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 1;
	*ret = c;
	return n;
}

static bool acts(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       c == 0x61c || c == 0xad;
}

/* Length of the escape sequence at @s[0] == ESC: CSI with parameters, OSC and other strings up to
 * their terminator, two-byte ones; what is cut off goes to the end. */
static size_t escape_len(const unsigned char *s, size_t len)
{
	size_t i = 2;

	if (len < 2)
		return len;
	if (s[1] == '[') {
		while (i < len && s[i] >= 0x20 && s[i] < 0x40)
			i++;
		return i < len && s[i] >= 0x40 && s[i] < 0x7f ? i + 1 : i;
	}
	if (!memchr("]PX^_", s[1], 5))
		return s[1] >= 0x20 && s[1] < 0x7f ? 2 : 1;
	for (; i < len && s[i]; i++) {
		if (s[i] == 0x07)
			return i + 1;
		if (s[i] == 0x1b && i + 1 < len && s[i + 1] == '\\')
			return i + 2;
	}
	return i;
}

size_t sanitize_text(const char *src, size_t len, char *dst, size_t cap)
{
	const unsigned char *s = (const unsigned char *)src;
	size_t out = 0;

	for (size_t i = 0; i < len && s[i];) {
		uint32_t c;

		if (s[i] == 0x1b) {
			i += escape_len(s + i, len - i);
			continue;
		}
		size_t n = next_char(s + i, len - i, &c);
		bool keep = c != BAD_CHAR && !acts(c);
		size_t need = keep ? n : 1;

		if (out + need >= cap)
			break;
		if (keep)
			memcpy(dst + out, s + i, n);
		else
			dst[out] = '?';
		out += need;
		i += n;
	}
	dst[out] = '\0';
	return out;
}
