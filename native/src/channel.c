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

/*
 * Closes everything but one descriptor. The pipes we were given belong to the command alone:
 * held here too, they would never come to their end.
 */
static void close_all_but(int first, int second)
{
	int low = first < second ? first : second;
	int high = first < second ? second : first;
	if (low > 0)
		sys(close_range, 0, low - 1, 0);
	if (high > low + 1)
		sys(close_range, low + 1, high - 1, 0);
	sys(close_range, high + 1, UINT32_MAX, 0);
}
