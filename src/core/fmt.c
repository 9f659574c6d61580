/* SPDX-License-Identifier: Apache-2.0 */
#include "fmt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t fmt_text(char *buf, size_t cap, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(buf, cap, fmt, ap);

	va_end(ap);
	if (n < 0)
		n = 0;
	return CC_MIN((size_t)n, cap - 1);
}

/* @ns in units of @unit with one digit after the point, which is a point in every locale. */
static size_t fmt_tenths(char *buf, size_t cap, cc_ns ns, uint64_t unit, const char *name)
{
	uint64_t tenths = ns / (unit / 10) + (ns % (unit / 10) >= unit / 20);

	return fmt_text(buf, cap, "%llu.%u%s", (unsigned long long)(tenths / 10),
			(unsigned int)(tenths % 10), name);
}

size_t fmt_ms(char *buf, size_t cap, cc_ns ns)
{
	if (ns && ns < 95000)
		return fmt_text(buf, cap, "0.0%u", (unsigned int)((ns + 5000) / 10000));
	return fmt_tenths(buf, cap, ns, CC_MS(1), "");
}

size_t fmt_dur(char *buf, size_t cap, cc_ns ns)
{
	if (ns < 1000)
		return fmt_text(buf, cap, "%u ns", (unsigned int)ns);
	if (ns < CC_MS(1))
		return fmt_tenths(buf, cap, ns, CC_US(1), " us");
	if (ns < CC_S(1))
		return fmt_tenths(buf, cap, ns, CC_MS(1), " ms");
	return fmt_tenths(buf, cap, ns, CC_S(1), " s");
}

size_t fmt_group(char *buf, size_t cap, uint64_t n)
{
	char digits[24];
	size_t len = fmt_text(digits, sizeof(digits), "%llu", (unsigned long long)n), out = 0;

	for (size_t i = 0; i < len && out + 2 < cap; i++) {
		if (i && (len - i) % 3 == 0)
			buf[out++] = ' ';
		buf[out++] = digits[i];
	}
	buf[out] = '\0';
	return out;
}

size_t fmt_reqid(char *buf, size_t cap, struct cc_reqid id)
{
	switch (id.kind) {
	case CC_REQID_SOCK:
		return fmt_text(buf, cap, "%llx#%u", (unsigned long long)id.id, id.ordinal);
	case CC_REQID_TID:
		return fmt_text(buf, cap, "tid:%llu", (unsigned long long)id.id);
	case CC_REQID_GOID:
		return fmt_text(buf, cap, "goid:%llu", (unsigned long long)id.id);
	}
	buf[0] = '\0';
	return 0;
}

/* ---- addresses ---- */

enum { FAMILY_UNIX = 1, FAMILY_INET = 2, FAMILY_INET6 = 10 }; /* Linux ABI: bits/socket.h */

static size_t fmt_v4(char *buf, size_t cap, const uint8_t *ip, unsigned int port)
{
	return fmt_text(buf, cap, "%u.%u.%u.%u:%u", ip[0], ip[1], ip[2], ip[3], port);
}

/* RFC 5952: lower case, the longest run of zero groups as "::". */
static size_t fmt_v6(char *buf, size_t cap, const uint8_t *ip, unsigned int port)
{
	unsigned int g[8], best = 8, best_len = 1;
	char text[48];
	size_t n = 0;

	for (unsigned int i = 0; i < 8; i++)
		g[i] = (unsigned int)ip[2 * i] << 8 | ip[2 * i + 1];
	for (unsigned int i = 0; i < 8; i++) {
		unsigned int len = 0;

		while (i + len < 8 && !g[i + len])
			len++;
		if (len > best_len) {
			best = i;
			best_len = len;
		}
	}
	for (unsigned int i = 0; i < 8; i++) {
		if (i == best) {
			n += fmt_text(text + n, sizeof(text) - n, "::");
			i += best_len - 1;
			continue;
		}
		n += fmt_text(text + n, sizeof(text) - n, "%s%x",
			      i && i != best + best_len ? ":" : "", g[i]);
	}
	return fmt_text(buf, cap, "[%s]:%u", text, port);
}

size_t fmt_addr(char *buf, size_t cap, const struct cc_addr *a)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	switch (a->family) {
	case FAMILY_INET:
		return fmt_v4(buf, cap, a->ip, a->port);
	case FAMILY_INET6:
		if (memcmp(a->ip, mapped, sizeof(mapped)) == 0)
			return fmt_v4(buf, cap, a->ip + 12, a->port);
		return fmt_v6(buf, cap, a->ip, a->port);
	case FAMILY_UNIX:
		return fmt_text(buf, cap, "unix");
	}
	buf[0] = '\0';
	return 0;
}

/* ---- parsing ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static uint64_t unit_ns(const char *s)
{
	static const struct {
		char name[4];
		uint64_t ns;
	} units[] = { { "ns", 1 },      { "us", 1000 },        { "ms", 1000000 },
		      { "s", CC_S(1) }, { "m", 60 * CC_S(1) }, { "h", 3600 * CC_S(1) } };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(s, units[i].name) == 0)
			return units[i].ns;
	}
	return 0;
}

int fmt_parse_duration(const char *s, cc_ns *ret)
{
	uint64_t whole = 0, fraction = 0, scale = 1, ns;

	if (!is_digit(*s))
		return -EINVAL;
	if (strcmp(s, "0") == 0) {
		*ret = 0;
		return 0;
	}
	for (; is_digit(*s); s++) {
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*s - '0'), &whole))
			return -ERANGE;
	}
	if (*s == '.') {
		if (!is_digit(*++s))
			return -EINVAL;
		for (; is_digit(*s); s++) {
			if (scale < 1000000000) { /* below a ns of any unit but h: cut */
				fraction = 10 * fraction + (uint64_t)(*s - '0');
				scale *= 10;
			}
		}
	}
	uint64_t unit = unit_ns(s);

	if (!unit)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, unit, &ns) ||
	    __builtin_add_overflow(
		    ns, (uint64_t)((double)fraction / (double)scale * (double)unit + 0.5), &ns))
		return -ERANGE;
	*ret = ns;
	return 0;
}

static int parse_u64(const char *s, int base, const char **end, uint64_t *ret)
{
	char *stop;

	/* strtoull takes signs, blanks and a second 0x: we do not */
	if (!is_digit(*s) &&
	    !(base == 16 && ((*s >= 'a' && *s <= 'f') || (*s >= 'A' && *s <= 'F'))))
		return -EINVAL;
	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(s, &stop, base);
	*end = stop;
	return errno ? -EINVAL : 0;
}

static int parse_sock(const char *s, bool ordinal_must, struct cc_reqid *ret)
{
	struct cc_reqid id = { .kind = CC_REQID_SOCK };
	uint64_t ordinal = 0;
	const char *end;

	if (parse_u64(s, 16, &end, &id.id))
		return -EINVAL;
	if (*end == '#') {
		if (parse_u64(end + 1, 10, &end, &ordinal) || ordinal == 0 || ordinal > UINT32_MAX)
			return -EINVAL;
	} else if (ordinal_must) {
		return -EINVAL;
	}
	if (*end)
		return -EINVAL;
	id.ordinal = (uint32_t)ordinal;
	*ret = id;
	return 0;
}

static int parse_number(const char *s, enum cc_reqid_kind kind, uint64_t max, struct cc_reqid *ret)
{
	const char *end;
	uint64_t n;

	if (parse_u64(s, 10, &end, &n) || *end || n > max)
		return -EINVAL;
	*ret = (struct cc_reqid){ .id = n, .kind = kind };
	return 0;
}

int fmt_parse_reqid(const char *s, struct cc_reqid *ret)
{
	if (strncmp(s, "tid:", 4) == 0)
		return parse_number(s + 4, CC_REQID_TID, UINT32_MAX, ret);
	if (strncmp(s, "goid:", 5) == 0)
		return parse_number(s + 5, CC_REQID_GOID, UINT64_MAX, ret);
	if (strncmp(s, "0x", 2) == 0)
		return parse_sock(s + 2, false, ret);
	if (strchr(s, '#'))
		return parse_sock(s, true, ret);
	return parse_number(s, CC_REQID_TID, UINT32_MAX, ret);
}

bool fmt_reqid_matches(struct cc_reqid want, struct cc_reqid id)
{
	return want.kind == id.kind && want.id == id.id &&
	       (want.ordinal == 0 || want.ordinal == id.ordinal);
}
