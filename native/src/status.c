/* What is told to Drover: lines on the status descriptor, then our own end, which mirrors the command's. */

struct failure {
	const char *step; /* null: none */
	int error;
};

/* How it ended: of the command itself, and of those that outlived it. */
struct ending {
	bool command_exited;
	int wait_status;
	int leftovers;  /* outlived the command and were killed for it */
	int unkillable; /* refused SIGKILL: a set-uid program, at level group */
};

static _Noreturn void leave(int code)
{
	for (;;)
		sys(exit_group, code);
}

static void write_line(int status_fd, struct text *line)
{
	append(line, "\n");
	if (status_fd >= 0)
		sys(write, status_fd, line->bytes, line->length);
}

static void report_level(int status_fd, const char *level)
{
	struct text line = { .length = 0 };
	append(&line, "I ");
	append(&line, level);
	write_line(status_fd, &line);
}

static void report_ending(int status_fd, const struct ending *ending)
{
	struct resource_usage used;
	sys(getrusage, RUSAGE_CHILDREN, &used);
	if (ending->unkillable) {
		struct text line = { .length = 0 };
		append(&line, "U ");
		append_number(&line, (uint64_t)ending->unkillable);
		write_line(status_fd, &line);
	}
	struct text line = { .length = 0 };
	append(&line, "S ");
	append_number(&line, (uint64_t)ending->wait_status);
	append(&line, " ");
	append_number(&line, (uint64_t)ending->leftovers);
	append(&line, " ");
	append_number(&line, (uint64_t)(used.user_seconds * 1000000 + used.user_microseconds));
	append(&line, " ");
	append_number(&line, (uint64_t)(used.system_seconds * 1000000 + used.system_microseconds));
	append(&line, " ");
	append_number(&line, (uint64_t)used.max_rss_kb);
	write_line(status_fd, &line);
}

/* The exit codes are those a shell would give. */
static _Noreturn void fail(int status_fd, struct failure failure)
{
	struct text line = { .length = 0 };
	append(&line, "E ");
	append(&line, failure.step);
	append(&line, " ");
	append_number(&line, (uint64_t)failure.error);
	write_line(status_fd, &line);
	if (!same(failure.step, "exec"))
		leave(125);
	leave(failure.error == ENOENT ? 127 : 126);
}

static _Noreturn void mirror(int wait_status)
{
	int signal = death_signal(wait_status);
	if (!signal)
		leave(exit_code(wait_status));

	struct resource_limit no_core = { 0, 0 };
	struct signal_action by_default = { 0, 0, 0, 0 };
	signal_set just_this = (signal_set)1 << (signal - 1);
	sys(prlimit64, 0, RLIMIT_CORE, &no_core, 0);
	sys(rt_sigaction, signal, &by_default, 0, sizeof(signal_set));
	long self = sys(getpid);
	sys(kill, self, signal);
	sys(rt_sigprocmask, SIG_UNBLOCK_MASK, &just_this, 0, sizeof(signal_set));
	leave(128 + signal);
}
