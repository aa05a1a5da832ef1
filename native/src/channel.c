/* What the processes of the helper tell each other, over a pipe that the command never sees. */

enum message_kind { MESSAGE_READY, MESSAGE_FAILED, MESSAGE_ENDED };

struct message {
	enum message_kind kind;
	bool own_proc; /* with MESSAGE_READY */
	struct failure failure;
	struct ending ending;
};

struct channel {
	int read_end, write_end;
};

static bool send_message(int fd, const struct message *message)
{
	return sys(write, fd, message, sizeof *message) == (long)sizeof *message;
}

/*
 * False at the end, once every sender is gone. A command that may trace us (as root) may also write
 * here: nothing that it could have written is taken for more than a number within its range.
 */
static bool receive_message(int fd, struct message *message)
{
	struct message received;
	if (sys(read, fd, &received, sizeof received) != (long)sizeof received)
		return false;
	if ((unsigned)received.failure.step >= STEP_COUNT)
		received.failure.step = STEP_INIT;
	*message = received;
	return true;
}

static void close_span(int first, unsigned last)
{
	if (sys(close_range, first, last, 0) == 0)
		return;
	/* Before Linux 5.9. Nothing we are given by Drover has a high number. */
	for (int fd = first; fd < 1024 && (unsigned)fd <= last; fd++)
		sys(close, fd);
}

/*
 * Closes all but two descriptors (-1: none). The pipes we were given belong to the command alone:
 * held here too, they would never come to their end.
 */
static void close_all_but(int one, int other)
{
	int low = one < other ? one : other;
	int high = one < other ? other : one;
	if (low > 0)
		close_span(0, (unsigned)low - 1);
	if (high > low + 1)
		close_span(low + 1, (unsigned)high - 1);
	close_span(high + 1, UINT32_MAX);
}
