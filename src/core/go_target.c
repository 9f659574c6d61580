/* SPDX-License-Identifier: Apache-2.0 */
#include "go_target.h"

#include <string.h>

const char *go_func_name(unsigned int id)
{
	static const char *const names[GO_SITE_CNT] = {
#define X(id_, name) [GO_FN_##id_] = name,
		GO_FUNCS(X)
#undef X
#define X(id_, in, of, nth, name) [GO_FN_CALL_##id_] = name,
			GO_CALLS(X)
#undef X
	};

	return id < GO_SITE_CNT ? names[id] : "?";
}

const char *go_found_name(unsigned int how)
{
	static const char *const names[GO_FOUND_CNT] = {
		[GO_FOUND_NONE] = "not found",
		[GO_FOUND_DWARF] = "debug information",
		[GO_FOUND_TABLE] = "version table",
		[GO_FOUND_FILE] = "offsets file",
		[GO_FOUND_NEWEST] = "table of the newest version known",
		[GO_FOUND_LIVE] = "running process",
		[GO_FOUND_BUILDINFO] = "build information",
		[GO_FOUND_USER] = "the user",
		[GO_FOUND_SCAN] = "version string",
	};

	return how < GO_FOUND_CNT ? names[how] : "?";
}

const char *go_insn_name(unsigned int insn)
{
	static const char *const names[GO_INSN_CNT] = {
		[GO_INSN_PUSH] = "push",
		[GO_INSN_JCC] = "branch",
		[GO_INSN_NOP] = "nop",
		[GO_INSN_CALL] = "call",
		[GO_INSN_NOP5] = "nop of 5 bytes",
		[GO_INSN_STEP] = "single-stepped",
	};

	return insn < GO_INSN_CNT ? names[insn] : "?";
}

bool go_names_handler(const char *name, size_t len)
{
	static const char *const handlers[] = {
		"http2serverConn).runHandler",         "http2serverConn).processHeaders",
		"http2serverConn).scheduleHandler",    "http2serverConn).startPush",
		"http2.(*serverConn).runHandler",      "http2.(*serverConn).processHeaders",
		"http2.(*serverConn).scheduleHandler", "http2.(*serverConn).startPush",
		"grpc.(*Server).serveStreams",         "grpc.(*Server).handleStream",
	};

	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++)
		if (memmem(name, len, handlers[i], strlen(handlers[i])))
			return true;
	return false;
}
