/* SPDX-License-Identifier: Apache-2.0 */
/* criticast: which wait carried a slow request's time. This file only dispatches. */
#include "cli.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define X(id, name, args, help) { #name, cmd_##name },
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = { CLI_COMMANDS(X) };
#undef X

/* Command names are typed with '-', C names have '_'. */
static bool same_name(const char *typed, const char *name)
{
	for (; *typed && *name; typed++, name++)
		if (*typed != *name && !(*typed == '-' && *name == '_'))
			return false;
	return *typed == *name;
}

/* A descriptor that is closed would be given to the next file: what is written for stdout would go
 * there. Reading from such a stdin is its end, writing to such a stdout an error. */
static void fill_std_fds(void)
{
	static const int flags[] = { O_RDONLY, O_RDONLY, O_WRONLY };
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) != fd)
			_exit(CLI_FAILED);
}

int main(int argc, char **argv)
{
	fill_std_fds();
	setlocale(LC_CTYPE, "");
	signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of the write, with its line */
	if (argc < 2)
		return cli_usage(), CLI_USAGE;
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return cli_usage(), cli_finish_stdout(CLI_OK);
	if (!strcmp(argv[1], "--version"))
		return puts("criticast " CC_VERSION), cli_finish_stdout(CLI_OK);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (same_name(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	return cli_fail(CLI_USAGE, "unknown command '%s'; see criticast --help", argv[1]);
}
