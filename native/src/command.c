/* Turns a forked child into the command. Everything in this file affects only the command. */

/* The signal settings that we were started with, which the command gets unchanged. */
struct inherited {
	signal_set mask;
	struct signal_action on_child;
};

static long write_file(const char *path, const char *content)
{
	long fd = sys(openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	long written = sys(write, fd, content, length_of(content));
	sys(close, fd);
	return written;
}

static long set_limit(struct limit limit)
{
	struct resource_limit now, wanted = { limit.value, limit.value };
	long result = sys(prlimit64, 0, limit.resource, 0, &now);
	if (result < 0)
		return result;
	/*
	 * At the soft limit of CPU time, a process gets SIGXCPU, which names the cause. At the hard limit it gets
	 * SIGKILL, which does not, so set the hard limit one second higher.
	 */
	if (limit.resource == RLIMIT_CPU && limit.value != now.hard)
		wanted.hard = limit.value + 1;
	return sys(prlimit64, 0, limit.resource, &wanted, 0);
}

/* A program for another architecture also fails with ENOEXEC, but a shell cannot run it. */
static bool is_text(const char *path)
{
	char start[256];
	long fd = sys(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	long length = sys(read, fd, start, sizeof start);
	sys(close, fd);
	for (long i = 0; i < length; i++)
		if (!start[i])
			return false;
	return length >= 0;
}

/* Drover renames the variables that would affect the programs that run before the command. */
static void restore_names(char **variable)
{
	static const char prefix[] = "DROVER_KEEP_";
	for (; *variable; variable++)
		if (after(*variable, prefix))
			*variable += sizeof prefix - 1;
}

static long execute(const struct options *options)
{
	if (options->restore_names)
		restore_names(options->environment);
	char **arguments = options->path_and_argv;
	char *path = arguments[0];
	long result = sys(execve, path, arguments + 1, options->environment);
	if (result != -ENOEXEC || !is_text(path))
		return result;
	/* PATH ARGV0 ARGS... becomes /bin/sh PATH ARGS... in place. */
	char shell[] = "/bin/sh";
	arguments[0] = shell;
	arguments[1] = path;
	return sys(execve, shell, arguments, options->environment);
}

/* Returns only on failure. */
static struct failure become_command(const struct options *options, const struct inherited *inherited,
				     bool in_namespace, int report_to)
{
	long result;
	if (options->expected_directory >= 0 && (result = expect_directory(options->expected_directory)) < 0)
		return (struct failure){ STEP_DIRECTORY, (int)-result };
	if (options->expected_mount && (result = expect_mount(options->expected_mount, options->expected_directory)) < 0)
		return (struct failure){ STEP_DIRECTORY, (int)-result };
	for (int i = 0; i < options->cgroups.count; i++)
		if ((result = write_file(options->cgroups.path[i], "0")) < 0)
			return (struct failure){ STEP_CGROUP, (int)-result };
	/* Only now, because the command enters its cgroup through one of these mounts. */
	if (in_namespace && (result = make_readonly(&options->readonly)) < 0 && options->level != LEVEL_AUTO)
		return (struct failure){ STEP_READONLY, (int)-result };
	if (options->merge_output && (result = sys(dup3, 1, 2, 0)) < 0)
		return (struct failure){ STEP_MERGE, (int)-result };
	for (int i = 0; i < options->limit_count; i++)
		if ((result = set_limit(options->limits[i])) < 0)
			return (struct failure){ STEP_RLIMIT, (int)-result };
	if (in_namespace)
		forbid_typing();
	/*
	 * An inherited descriptor could lead into a hidden directory. The descriptors kept here are closed by exec,
	 * except for those passed to the command.
	 */
	close_all_but(3, (const int[]){ options->status_fd, report_to, options->passed_fds[0], options->passed_fds[1],
					options->directory_fd }, 5);
	sys(rt_sigaction, SIGCHLD, &inherited->on_child, 0, sizeof(signal_set));
	sys(rt_sigprocmask, SIG_SET_MASK, &inherited->mask, 0, sizeof(signal_set));
	result = execute(options);
	return (struct failure){ STEP_EXEC, (int)-result };
}

/* Forks a child that becomes the command. Returns its pid, or -errno. */
static long start_command(const struct options *options, const struct inherited *inherited, bool in_namespace,
			  int report_to)
{
	long pid = sys(clone, SIGCHLD);
	if (pid == 0) {
		if (!options->on_terminal)
			sys(setpgid, 0, 0);
		struct message message = { .kind = MESSAGE_FAILED };
		message.failure = become_command(options, inherited, in_namespace, report_to);
		send_message(report_to, &message);
		leave(NOT_STARTED);
	}
	/* Both processes do this, so that the group exists before anyone signals it, whichever runs first. */
	if (pid > 0 && !options->on_terminal)
		sys(setpgid, pid, pid);
	return pid;
}
