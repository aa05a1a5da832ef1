/*
 * drover-init: starts one command and ends everything it started. See native/README.md.
 * Compiled as one unit, without libc and without writable globals.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "syscall.h"
#include "kernel.h"
#include "memory.c"
#include "text.c"
#include "options.c"
#include "status.c"
#include "channel.c"
#include "directory.c"
#include "hide.c"
#include "command.c"
#include "descendants.c"
#include "supervise.c"
#include "namespace.c"
#include "group.c"

enum { FIRST_HIGH_FD = 10 };

/* Moves the status descriptor to a number that the command does not use. It is closed when the command starts. */
static bool hide_status_fd(struct options *options)
{
	if (options->status_fd < 0)
		return true;
	long fd = sys(fcntl, options->status_fd, F_DUPFD_CLOEXEC, FIRST_HIGH_FD);
	if (fd < 0)
		return false;
	if (options->status_fd > 2)
		sys(close, options->status_fd);
	options->status_fd = (int)fd;
	return true;
}

static _Noreturn void run(struct options *options)
{
	struct inherited inherited;
	signal_set all = ALL_SIGNALS;
	struct signal_action by_default = { 0, 0, 0, 0 };

	if (options->level == LEVEL_NONE) {
		sys(rt_sigprocmask, SIG_BLOCK_MASK, 0, &inherited.mask, sizeof(signal_set));
		sys(rt_sigaction, SIGCHLD, 0, &inherited.on_child, sizeof(signal_set));
		fail(options->status_fd, become_command(options, &inherited, false, -1));
	}

	/*
	 * First of all, block all signals. One that arrives early stays pending until there is a command to pass it
	 * on to.
	 */
	sys(rt_sigprocmask, SIG_SET_MASK, &all, &inherited.mask, sizeof(signal_set));
	/* If SIGCHLD is ignored, the kernel reaps children itself and their status is lost. */
	sys(rt_sigaction, SIGCHLD, &by_default, &inherited.on_child, sizeof(signal_set));
	/*
	 * The command runs as the same user, and must not reach our descriptors through /proc. This does not apply to
	 * the command itself, because executing a program resets it.
	 */
	sys(prctl, PR_SET_DUMPABLE, 0);
	if (options->level == LEVEL_GROUP)
		run_in_group(options, &inherited);

	die_with_parent(options, SIGKILL);
	struct failure refused = run_in_namespace(options, &inherited);
	/* A process that replaces the working directory must not be able to lower the level. */
	if (options->level == LEVEL_AUTO && refused.step != STEP_DIRECTORY)
		run_in_group(options, &inherited);
	fail(options->status_fd, refused);
}

__attribute__((used)) _Noreturn void start(long *stack)
{
	long argument_count = stack[0];
	char **arguments = (char **)(stack + 1);
	struct options options = {
		.parent = ANY_PARENT,
		.status_fd = -1,
		.passed_fds = { -1, -1 },
		.directory_fd = -1,
		.expected_directory = -1,
		.level = LEVEL_AUTO,
		.environment = arguments + argument_count + 1,
	};
	bool understood = argument_count > 0 && parse_options(arguments + 1, &options);
	if (!hide_status_fd(&options) || !understood)
		fail(options.status_fd < 0 ? 2 : options.status_fd, (struct failure){ STEP_USAGE, EINVAL });
	run(&options);
}
