/*
 * Level `group`: no namespace, because most containers refuse it. We are the reaper of all descendants, so that we
 * find even those that leave their session, fork twice or clear their environment. Limitation: if we are killed
 * ourselves, our descendants stay alive.
 */

static _Noreturn void run_in_group(const struct options *options, const struct inherited *inherited)
{
	struct channel channel;
	struct message first, last;
	int status_fd = options->status_fd;

	/* Unlike SIGKILL, this signal lets us kill everything before we exit. */
	die_with_parent(options, HARD_KILL);
	long result = sys(prctl, PR_SET_CHILD_SUBREAPER, 1);
	if (result < 0)
		fail(status_fd, (struct failure){ STEP_SUBREAPER, (int)-result });
	result = sys(pipe2, &channel, O_CLOEXEC);
	if (result < 0)
		fail(status_fd, (struct failure){ STEP_PIPE, (int)-result });

	report_level(status_fd, "group");
	long command = start_command(options, inherited, false, channel.write_end);
	if (command < 0)
		fail(status_fd, (struct failure){ STEP_FORK, (int)-command });
	close_all_but(0, (const int[]){ status_fd, channel.read_end }, 2);

	struct family family = {
		.command = (int)command,
		.own_group = !options->on_terminal,
		.keep_leftovers = options->keep_leftovers,
		.report_to = -1,
	};
	struct ending ending = supervise(&family);
	if (!ending.unkillable && receive_ends(channel.read_end, &first, &last) &&
	    is_failure(&first, ending.wait_status))
		fail(status_fd, first.failure);
	report_ending(status_fd, "group", &ending);
	mirror(ending.wait_status);
}
