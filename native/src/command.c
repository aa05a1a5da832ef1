/* From a forked child of ours to the command: everything that applies to the command alone. */

/* How we were started, to be handed on unchanged. */
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
	/* At its hard limit of CPU time a process gets SIGKILL, which says nothing; one second
	 * before that it gets SIGXCPU, which does. */
	if (limit.resource == RLIMIT_CPU && limit.value != now.hard)
		wanted.hard = limit.value + 1;
	return sys(prlimit64, 0, limit.resource, &wanted, 0);
}

/* A program for another machine is ENOEXEC too, and nothing for a shell to read. */
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

/* Drover renamed the variables that would act on the programs before the command. */
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

/* Returns only where it failed. */
static struct failure become_command(const struct options *options, const struct inherited *inherited,
				     bool in_namespace, int report_to)
{
	long result;
	if (options->expected_directory >= 0 && (result = expect_directory(options->expected_directory)) < 0)
		return (struct failure){ STEP_DIRECTORY, (int)-result };
	for (int i = 0; i < options->cgroups.count; i++)
		if ((result = write_file(options->cgroups.path[i], "0")) < 0)
			return (struct failure){ STEP_CGROUP, (int)-result };
	/* Not before: the cgroup is entered through one of them. */
	if (in_namespace && (result = make_readonly(&options->readonly)) < 0 && options->level != LEVEL_AUTO)
		return (struct failure){ STEP_READONLY, (int)-result };
	if (options->merge_output && (result = sys(dup3, 1, 2, 0)) < 0)
		return (struct failure){ STEP_MERGE, (int)-result };
	for (int i = 0; i < options->limit_count; i++)
		if ((result = set_limit(options->limits[i])) < 0)
			return (struct failure){ STEP_RLIMIT, (int)-result };
	if (in_namespace)
		forbid_typing();
	/* One that was open before may lead to what is hidden. Those we keep for ourselves are closed as it starts. */
	close_all_but(3, (const int[]){ options->status_fd, report_to, options->passed_fd, options->lent_directory }, 4);
	sys(rt_sigaction, SIGCHLD, &inherited->on_child, 0, sizeof(signal_set));
	sys(rt_sigprocmask, SIG_SET_MASK, &inherited->mask, 0, sizeof(signal_set));
	result = execute(options);
	return (struct failure){ STEP_EXEC, (int)-result };
}

/* Forks and becomes the command there. The pid, or -errno. */
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
	/* Here too: whichever comes first, the group exists before anyone signals it. */
	if (pid > 0 && !options->on_terminal)
		sys(setpgid, pid, pid);
	return pid;
}
