/* What the processes of the helper tell each other, over a pipe that the command never sees. */

enum message_kind { MESSAGE_READY, MESSAGE_FAILED, MESSAGE_ENDED };

struct message {
	enum message_kind kind;
	struct failure failure; /* its text is at the same address in every fork of us */
	struct ending ending;
};

struct channel {
	int read_end, write_end;
};

static bool send_message(int fd, const struct message *message)
{
	return sys(write, fd, message, sizeof *message) == (long)sizeof *message;
}

/* False at the end, once every sender is gone. */
static bool receive_message(int fd, struct message *message)
{
	return sys(read, fd, message, sizeof *message) == (long)sizeof *message;
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
