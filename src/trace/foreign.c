/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CTF_HINT                                                                            \
	"a CTF trace (LTTng); not read: record with perf or trace-cmd, or convert it with " \
	"`babeltrace2 convert` and import from a tool that writes ftrace text"
#define PERFETTO_HINT "a Perfetto trace; make text of it: traceconv systrace FILE trace.txt"

static const struct {
	const char *magic;
	uint8_t len;
	const char *hint;
} formats[] = {
	{ "PERFILE2", 8, "a perf.data file; make text of it: perf script -i FILE >trace.txt" },
	{ "2ELIFREP", 8,
	  "a perf.data file of the other byte order; make text of it: perf script -i FILE "
	  ">trace.txt" },
	{ "PERFFILE", 8, "an old perf.data file; make text of it: perf script -i FILE >trace.txt" },
	{ "\x17\x08\x44tracing", 10,
	  "a trace.dat file; make text of it: trace-cmd report -i FILE >trace.txt" },
	{ "\x75\xd1\x1d\x57", 4, CTF_HINT },
	{ "\x57\x1d\xd1\x75", 4, CTF_HINT },
	{ "\xc1\x1f\xfc\xc1", 4, CTF_HINT },
	{ "\xc1\xfc\x1f\xc1", 4, CTF_HINT },
	{ "/* CTF 1.", 9, CTF_HINT },
};

/* A protobuf Trace is TracePackets, each field 1 with a length, each of which has fields 1 to 127
 * in it: two that fit one after another are taken for one. */
static bool is_perfetto(const uint8_t *p, size_t len)
{
	size_t at = 0;
	int packets = 0;

	while (at + 2 < len && packets < 2) {
		uint64_t size = 0;
		unsigned int shift = 0;

		if (p[at++] != 0x0a)
			return false;
		while (at < len && shift < 28) {
			size |= (uint64_t)(p[at] & 0x7f) << shift;
			shift += 7;
			if (p[at++] < 0x80)
				break;
		}
		if (!size || at >= len || (p[at] & 7) > 5 || (p[at] & 7) == 3 || (p[at] & 7) == 4 ||
		    p[at] < 8)
			return false;
		packets++;
		if (size > len - at)
			break;
		at += size;
	}
	/* text that begins with an empty line has 0x0a and then blanks or letters */
	return packets >= 2 || (packets == 1 && memchr(p, 0, len));
}

const char *foreign_format(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (len >= formats[i].len && !memcmp(bytes, formats[i].magic, formats[i].len))
			return formats[i].hint;
	return is_perfetto(bytes, len) ? PERFETTO_HINT : NULL;
}

const char *foreign_folder(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ctf = dir >= 0 && faccessat(dir, "metadata", F_OK, 0) == 0;

	if (dir >= 0)
		close(dir);
	return ctf ? CTF_HINT : NULL;
}
