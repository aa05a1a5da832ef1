/*
 * Supervises the command until none of its processes is left. At level `pid`, this runs in pid 1 of the namespace. At
 * `group`, it runs in the process that Drover started, which is the reaper of all descendants.
 */

enum { HARD_KILL = SIGPWR };

static void die_with_parent(const struct options *options, int signal)
{
	if (options->parent == NO_PARENT)
		return;
	sys(prctl, PR_SET_PDEATHSIG, signal);
	if (options->parent != ANY_PARENT && sys(getppid) != options->parent)
		leave(125);
}

struct family {
	int command;
	bool in_namespace;
	bool own_group; /* the command leads its own process group */
	bool keep_leftovers;
	bool own_proc; /* in a namespace: /proc shows its processes */
	int report_to; /* receives the command's end early, in case we are killed; -1: none */
};

static bool asks_to_stop(int signal)
{
	return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

/*
 * Returns the next signal to act on. Skips signals from a terminal, which the kernel sends (code > 0), because the
 * whole foreground group gets them, including the command. Also skips signals from inside the namespace: its
 * processes may not control their pid 1.
 */
static int next_signal(bool in_namespace)
{
	signal_set all = ALL_SIGNALS;
	struct signal_info info;
	for (;;) {
		long signal = sys(rt_sigtimedwait, &all, &info, 0, sizeof(signal_set));
		if (signal == SIGCHLD)
			return SIGCHLD;
		if (signal > 0 && info.code <= 0 && !(in_namespace && info.sender != 0))
			return (int)signal;
	}
}

/* Fallback for kernels without lists of children: signals what a shell could reach. */
static bool signal_group(const struct family *family, int signal)
{
	return sys(kill, family->own_group ? -family->command : family->command, signal) == 0;
}

static void signal_all(const struct family *family, int signal)
{
	struct pids pids;
	pids.count = 0;
	if (family->in_namespace)
		sys(kill, -1, signal);
	else if (!add_descendants(&pids))
		signal_group(family, signal);
	for (int i = 0; i < pids.count; i++)
		sys(kill, pids.pid[i], signal);
}

/*
 * Returns false if no process took the signal. At level `group`, this kills only our direct children. Their pids
 * cannot have been reused, because we reap them, and their own children become ours when they die.
 */
static bool kill_children(const struct family *family)
{
	struct pids pids;
	bool reached = false;
	pids.count = 0;
	if (family->in_namespace)
		return sys(kill, -1, SIGKILL) == 0;
	if (!add_own_children(&pids))
		return signal_group(family, SIGKILL);
	for (int i = 0; i < pids.count; i++)
		if (sys(kill, pids.pid[i], SIGKILL) == 0)
			reached = true;
	return reached;
}

/* Reaps one child. Returns its pid, 0 if none has ended (with WNOHANG), or -ECHILD if there are no children. */
static long reap(const struct family *family, struct ending *ending, int flags)
{
	int wait_status;
	long pid = sys(wait4, -1, &wait_status, flags, 0);
	if (pid == family->command) {
		ending->command_exited = true;
		ending->wait_status = wait_status;
	} else if (pid > 0 && death_signal(wait_status) == SIGKILL) {
		ending->leftovers++;
	}
	return pid;
}

/* Returns false if no child is left. Children that ended on their own do not count as leftovers. */
static bool reap_dead(const struct family *family, struct ending *ending)
{
	long pid;
	while ((pid = reap(family, ending, WNOHANG)) > 0)
		;
	ending->leftovers = 0;
	return pid != -ECHILD;
}

static int count_children(void)
{
	struct pids pids;
	pids.count = 0;
	return add_own_children(&pids) ? pids.count : 1;
}

/* Returns when no process is left, or none that we may kill. */
static void kill_rest(const struct family *family, struct ending *ending)
{
	for (;;) {
		bool reached = kill_children(family);
		long pid = reap(family, ending, reached ? 0 : WNOHANG);
		if (pid == 0) {
			ending->unkillable = count_children();
			return;
		}
		while (pid > 0)
			pid = reap(family, ending, WNOHANG);
		if (pid == -ECHILD)
			return;
	}
}

/*
 * Reads a process's command line, with its arguments separated by spaces. Returns false if it has none, for example
 * because it is dead.
 */
static bool read_name(int pid, char name[NAME_BYTES])
{
	struct text path = { .length = 0 };
	append(&path, "/proc/");
	append_number(&path, (uint64_t)pid);
	append(&path, "/cmdline");
	long fd = sys(openat, AT_FDCWD, path.bytes, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	long length = sys(read, fd, name, NAME_BYTES - 1);
	sys(close, fd);
	while (length > 0 && !name[length - 1])
		length--;
	if (length <= 0)
		return false;
	name[length] = 0;
	/* A line break would start a new line of the report. */
	for (long i = 0; i < length; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
			name[i] = ' ';
	return true;
}

/* Records the processes that are about to be killed, as many as fit. */
static void name_leftovers(const struct family *family, struct ending *ending)
{
	struct pids pids;
	pids.count = 0;
	if (!family->in_namespace)
		add_descendants(&pids);
	else if (family->own_proc)
		add_namespace(&pids);
	for (int i = 0; i < pids.count && ending->named < NAMED_MAX; i++) {
		struct leftover *leftover = &ending->leftover[ending->named];
		leftover->pid = pids.pid[i];
		if (read_name(leftover->pid, leftover->name))
			ending->named++;
	}
}

static void report_early(const struct family *family, const struct ending *ending)
{
	struct message message = { .kind = MESSAGE_ENDED, .ending = *ending };
	if (family->report_to >= 0)
		send_message(family->report_to, &message);
}

static struct ending supervise(const struct family *family)
{
	/* If the command's own status never becomes known, it was killed. */
	struct ending ending = { .wait_status = SIGKILL };
	bool stopping = false, reported = false;
	for (;;) {
		int signal = next_signal(family->in_namespace);
		if (signal == HARD_KILL) {
			kill_rest(family, &ending);
			ending.leftovers = 0;
			return ending;
		}
		if (signal != SIGCHLD) {
			signal_all(family, signal);
			stopping = stopping || asks_to_stop(signal);
			continue;
		}
		if (!reap_dead(family, &ending))
			return ending;
		if (!ending.command_exited)
			continue;
		/* Processes that were asked to stop have until the hard kill to do so. */
		if (stopping) {
			if (!reported)
				report_early(family, &ending);
			reported = true;
			continue;
		}
		if (!family->keep_leftovers) {
			name_leftovers(family, &ending);
			kill_rest(family, &ending);
		}
		return ending;
	}
}
