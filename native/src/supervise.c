/*
 * From the start of the command until nothing of it is left. The same for both levels: at `pid` this
 * is pid 1 of the namespace, at `group` the process Drover started, made reaper of all its descendants.
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
	bool own_group; /* the command leads a process group of its own */
	bool keep_leftovers;
	bool own_proc; /* in a namespace: /proc shows its processes */
	int report_to; /* who must know the command's end even if we are killed; -1: nobody */
};

static bool asks_to_stop(int signal)
{
	return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

/*
 * The next signal that concerns us. Those that a terminal sends come from the kernel (code > 0), and
 * its whole foreground group, the command included, has got them already. A process inside the
 * namespace is no one to give orders to its pid 1.
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

/* Without the kernel's lists of children: what a shell could reach. */
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
 * False where no one took the signal. At level group these are our direct children only: their pids
 * cannot have been reused, as it is we who reap them, and their children become ours as they die.
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

/* Takes in one dead child: its pid, 0 where none is dead (with WNOHANG), -ECHILD where none is left. */
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

/* False where no child is left. These died by themselves: none of them is a leftover. */
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

/* Returns when nothing is left, or nothing that we may kill. */
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

/* The command line of a process, its words separated by spaces. False where it has none, as a dead one. */
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
	/* A line break would begin a line of its own in the report. */
	for (long i = 0; i < length; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
			name[i] = ' ';
	return true;
}

/* Who is about to be killed, as far as there is room. */
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
	/* Where the command's own status never comes to be known, it was killed. */
	struct ending ending = { .wait_status = SIGKILL };
	bool stopping = false, told = false;
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
		/* Those who were asked to stop have the time until the hard kill to do so. */
		if (stopping) {
			if (!told)
				report_early(family, &ending);
			told = true;
			continue;
		}
		if (!family->keep_leftovers) {
			name_leftovers(family, &ending);
			kill_rest(family, &ending);
		}
		return ending;
	}
}
