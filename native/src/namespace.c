/*
 * Level `pid`: we stay outside (outer), our child is pid 1 of a new PID namespace (init), and its child is the
 * command. When pid 1 dies, the kernel kills every process in the namespace, and lets us reap pid 1 only after all
 * others have ended.
 */

/* In a new user namespace, maps our own user and group to themselves and nobody else. */
static long map_identity(long user, long group)
{
	struct text users = { .length = 0 }, groups = { .length = 0 };
	append_number(&users, (uint64_t)user);
	append(&users, " ");
	append_number(&users, (uint64_t)user);
	append(&users, " 1");
	append_number(&groups, (uint64_t)group);
	append(&groups, " ");
	append_number(&groups, (uint64_t)group);
	append(&groups, " 1");

	long result = write_file("/proc/self/setgroups", "deny");
	if (result >= 0)
		result = write_file("/proc/self/uid_map", users.bytes);
	if (result >= 0)
		result = write_file("/proc/self/gid_map", groups.bytes);
	return result;
}

/* Returns false if the host refuses it, as containers with a masked /proc do. */
static bool mount_own_proc(void)
{
	return sys(mount, "proc", "/proc", "proc", MS_HARMLESS) >= 0;
}

static const char *level_name(bool own_proc) { return own_proc ? "pid" : "pid-noproc"; }

static _Noreturn void give_up(int channel, enum step step, long result)
{
	struct message message = { .kind = MESSAGE_FAILED, .failure = { step, (int)-result } };
	send_message(channel, &message);
	leave(125);
}

static _Noreturn void run_init(const struct options *options, const struct inherited *inherited,
			       struct channel channel, bool new_user, long user, long group)
{
	/* If outer died before this call, nobody reads the pipe, and sending MESSAGE_READY fails. */
	sys(prctl, PR_SET_PDEATHSIG, SIGKILL);
	sys(close, channel.read_end);
	long result = 0;
	if (new_user) {
		/* The /proc files of a process that cannot be traced belong to root, including uid_map and gid_map. */
		sys(prctl, PR_SET_DUMPABLE, 1);
		result = map_identity(user, group);
		sys(prctl, PR_SET_DUMPABLE, 0);
	}
	if (result < 0)
		give_up(channel.write_end, STEP_MAP, result);
	result = make_private();
	bool own_proc = result >= 0 && mount_own_proc();
	if (options->hidden.count || options->frozen.count || options->readonly.count) {
		if (result < 0)
			give_up(channel.write_end, STEP_HIDE, result);
		struct failure failure = protect_directories(options);
		if (failure.error)
			give_up(channel.write_end, failure.step, -failure.error);
		if (new_user && (result = forbid_unmounting()) < 0)
			give_up(channel.write_end, STEP_HIDE, result);
	}
	if (options->directory_fd >= 0) {
		if (result >= 0)
			result = provide_working_directory(options->directory_fd, options->directory_mount);
		if (result < 0)
			give_up(channel.write_end, STEP_BIND, result);
	}
	struct message message = { .kind = MESSAGE_READY, .own_proc = own_proc };
	if (!send_message(channel.write_end, &message))
		leave(125);

	report_level(options->status_fd, level_name(own_proc));
	long command = start_command(options, inherited, true, channel.write_end);
	if (command < 0)
		give_up(channel.write_end, STEP_FORK, command);
	close_all_but(0, &channel.write_end, 1);

	struct family family = {
		.command = (int)command,
		.in_namespace = true,
		.own_proc = own_proc,
		.report_to = channel.write_end,
	};
	message.kind = MESSAGE_ENDED;
	message.ending = supervise(&family);
	send_message(channel.write_end, &message);
	leave(0);
}

/* Forks a child that is pid 1 of a new PID namespace. Root does without a user namespace if the host allows that. */
static long fork_init(bool *new_user)
{
	const long flags = CLONE_NEWPID | CLONE_NEWNS | SIGCHLD;
	long pid = -EPERM;
	*new_user = false;
	if (sys(geteuid) == 0)
		pid = sys(clone, flags);
	if (pid >= 0)
		return pid;
	*new_user = true;
	return sys(clone, flags | CLONE_NEWUSER);
}

static void wait_for_init(int init)
{
	for (;;) {
		int signal = next_signal(false);
		if (signal == SIGCHLD) {
			if (sys(wait4, init, 0, WNOHANG, 0) == init)
				return;
		} else {
			sys(kill, init, signal == HARD_KILL ? SIGKILL : signal);
		}
	}
}

/* Returns only if the namespace cannot be created. Nothing has been started then. */
static struct failure run_in_namespace(const struct options *options, const struct inherited *inherited)
{
	struct channel channel;
	/* Stays unchanged if init is killed before it sends a message. */
	struct message message = { .kind = MESSAGE_FAILED, .failure = { STEP_INIT, ECHILD } };
	bool new_user;
	long user = sys(geteuid), group = sys(getegid);
	int status_fd = options->status_fd;

	long result = sys(pipe2, &channel, O_CLOEXEC);
	if (result < 0)
		return (struct failure){ STEP_PIPE, (int)-result };
	long init = fork_init(&new_user);
	if (init == 0)
		run_init(options, inherited, channel, new_user, user, group);
	sys(close, channel.write_end);
	if (init < 0) {
		sys(close, channel.read_end);
		return (struct failure){ STEP_UNSHARE, (int)-init };
	}

	/* Signals stay pending until init is ready: an init that gives up would lose them. */
	bool ready = receive_message(channel.read_end, &message) && message.kind == MESSAGE_READY;
	if (!ready) {
		sys(wait4, init, 0, 0, 0);
		sys(close, channel.read_end);
		return message.failure;
	}
	const char *level = level_name(message.own_proc);
	close_all_but(0, (const int[]){ status_fd, channel.read_end }, 2);
	wait_for_init((int)init);

	/* If init was killed, it has sent no message, unless the command had already ended. */
	struct ending ending = { .wait_status = SIGKILL };
	struct message first, last;
	if (receive_ends(channel.read_end, &first, &last)) {
		if (last.kind == MESSAGE_ENDED)
			ending = last.ending;
		else
			ending.wait_status = NOT_STARTED << 8;
		if (is_failure(&first, ending.wait_status))
			fail(status_fd, first.failure);
	}
	report_ending(status_fd, level, &ending);
	mirror(ending.wait_status);
}
