/* Reports to Drover: lines on the status descriptor, then our own exit, which mirrors the command's. */

enum step {
	STEP_USAGE, STEP_PIPE, STEP_FORK, STEP_UNSHARE, STEP_MAP, STEP_INIT, STEP_HIDE, STEP_DIRECTORY,
	STEP_BIND, STEP_SUBREAPER, STEP_CGROUP, STEP_READONLY, STEP_MERGE, STEP_RLIMIT, STEP_EXEC, STEP_COUNT,
};

static const char *const step_names[STEP_COUNT] = {
	"usage", "pipe", "fork", "unshare", "map", "init", "hide", "directory", "bind", "subreaper",
	"cgroup", "readonly", "merge", "rlimit", "exec",
};

struct failure {
	enum step step;
	int error;
};

/* How many leftovers are reported by name, and the size of a name including its final zero byte. */
enum { NAMED_MAX = 8, NAME_BYTES = 128 };

struct leftover {
	int pid;
	char name[NAME_BYTES]; /* its command line, on one line */
};

/* How the command and the processes that outlived it ended. */
struct ending {
	bool command_exited;
	int wait_status;
	int leftovers;  /* outlived the command, so we killed them */
	int unkillable; /* survived SIGKILL: set-uid programs, at level `group` */
	int named;
	struct leftover leftover[NAMED_MAX];
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

struct status_file {
	int fd;
	bool emptied; /* a pipe cannot be emptied */
	uint64_t length;
};

static void put_line(struct status_file *file, struct text *line)
{
	append(line, "\n");
	if (file->emptied)
		sys(pwrite64, file->fd, line->bytes, line->length, file->length);
	else if (file->fd >= 0)
		sys(write, file->fd, line->bytes, line->length);
	file->length += line->length;
	line->length = 0;
}

/*
 * The final report, which replaces everything in the file: any other content was written by a process that found a
 * way to it. A pipe cannot be emptied, so it gets only the lines that are missing.
 */
static void report_ending(int status_fd, const char *level, const struct ending *ending)
{
	struct text line = { .length = 0 };
	struct resource_usage used;
	sys(getrusage, RUSAGE_CHILDREN, &used);
	struct status_file file = { .fd = status_fd };
	file.emptied = status_fd >= 0 && sys(ftruncate, status_fd, 0) == 0;
	if (file.emptied) {
		append(&line, "I ");
		append(&line, level);
		put_line(&file, &line);
	}
	if (ending->unkillable) {
		append(&line, "U ");
		append_number(&line, (uint64_t)ending->unkillable);
		put_line(&file, &line);
	}
	for (int i = 0; i < ending->named && i < NAMED_MAX; i++) {
		append(&line, "L ");
		append_number(&line, (uint64_t)ending->leftover[i].pid);
		append(&line, " ");
		append(&line, ending->leftover[i].name);
		put_line(&file, &line);
	}
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
	put_line(&file, &line);
}

/* Exits with the code that a shell would use. */
static _Noreturn void fail(int status_fd, struct failure failure)
{
	struct text line = { .length = 0 };
	append(&line, "E ");
	append(&line, step_names[failure.step]);
	append(&line, " ");
	append_number(&line, (uint64_t)failure.error);
	write_line(status_fd, &line);
	if (failure.step != STEP_EXEC)
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
