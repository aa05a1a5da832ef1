/* Messages between the launcher's processes, over a pipe that the command never sees. */

enum message_kind { MESSAGE_READY, MESSAGE_FAILED, MESSAGE_ENDED };

struct message {
	enum message_kind kind;
	bool own_proc; /* with MESSAGE_READY */
	struct failure failure;
	struct ending ending;
};

enum { NOT_STARTED = 127 };

struct channel {
	int read_end, write_end;
};

static bool send_message(int fd, const struct message *message)
{
	return sys(write, fd, message, sizeof *message) == (long)sizeof *message;
}

/* Returns false at the end of the pipe, when every sender has closed it. */
static bool receive_message(int fd, struct message *message)
{
	return sys(read, fd, message, sizeof *message) == (long)sizeof *message;
}

/*
 * Reads the rest of the pipe and returns its first and last message, or false if there is none. A command that may
 * trace us (as root) can also write to the pipe, even partial messages. The first and the last message are still
 * ours: the command does not exist yet when the first is sent, and is dead when the last is.
 */
static bool receive_ends(int fd, struct message *first, struct message *last)
{
	char bytes[2 * sizeof *last];
	size_t held = 0;
	bool any = false;
	for (long length; (length = sys(read, fd, bytes + held, sizeof bytes - held)) > 0;) {
		held += (size_t)length;
		if (held < sizeof *last)
			continue;
		if (!any)
			memcpy(first, bytes, sizeof *first);
		any = true;
		size_t before = held - sizeof *last;
		for (held = 0; held < sizeof *last; held++)
			bytes[held] = bytes[before + held];
	}
	if (any)
		memcpy(last, bytes, sizeof *last);
	return any;
}

/* Whether the child failed to become the command. In that case it reports the failure and exits with 127. */
static bool is_failure(const struct message *message, int wait_status)
{
	return message->kind == MESSAGE_FAILED && wait_status == NOT_STARTED << 8 &&
	       (unsigned)message->failure.step < STEP_COUNT;
}

static void close_span(int first, unsigned last)
{
	if (sys(close_range, first, last, 0) == 0)
		return;
	/* Fallback for kernels before Linux 5.9. Drover passes no descriptors with high numbers. */
	for (int fd = first; fd < 1024 && (unsigned)fd <= last; fd++)
		sys(close, fd);
}

/* Closes all descriptors from `first` on, except for those in `kept` (-1: none). */
static void close_all_but(int first, const int *kept, int count)
{
	for (;;) {
		int next = -1;
		for (int i = 0; i < count; i++)
			if (kept[i] >= first && (next < 0 || kept[i] < next))
				next = kept[i];
		if (next < 0)
			break;
		if (next > first)
			close_span(first, (unsigned)next - 1);
		first = next + 1;
	}
	close_span(first, UINT32_MAX);
}
