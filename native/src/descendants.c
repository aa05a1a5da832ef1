/* Finds our descendants at level `group`, which has no namespace to contain them. */

enum { PIDS_MAX = 8192 };

struct pids {
	int pid[PIDS_MAX];
	int count;
};

/* Adds the pids in one of the kernel's `children` files. Returns false if there is no such file. */
static bool add_children_in(const char *path, struct pids *pids)
{
	char chunk[512];
	int pid = 0;
	long fd = sys(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	for (long length; (length = sys(read, fd, chunk, sizeof chunk)) > 0;) {
		for (long i = 0; i < length; i++) {
			if (chunk[i] >= '0' && chunk[i] <= '9') {
				pid = pid * 10 + (chunk[i] - '0');
				continue;
			}
			if (pid && pids->count < PIDS_MAX)
				pids->pid[pids->count++] = pid;
			pid = 0;
		}
	}
	sys(close, fd);
	return true;
}

static bool add_own_children(struct pids *pids)
{
	return add_children_in("/proc/thread-self/children", pids);
}

/* The kernel lists children under the thread that forked them. */
static void add_children_of(int pid, struct pids *pids)
{
	_Alignas(struct directory_entry) char entries[1024];
	struct text tasks = { .length = 0 };
	append(&tasks, "/proc/");
	append_number(&tasks, (uint64_t)pid);
	append(&tasks, "/task/");
	long fd = sys(openat, AT_FDCWD, tasks.bytes, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* the process has ended, and its children have become ours */
	for (long length; (length = sys(getdents64, fd, entries, sizeof entries)) > 0;) {
		struct directory_entry *entry;
		for (long at = 0; at < length; at += entry->size) {
			entry = (struct directory_entry *)(entries + at);
			if (entry->name[0] == '.')
				continue;
			struct text children = tasks;
			append(&children, entry->name);
			append(&children, "/children");
			add_children_in(children.bytes, pids);
		}
	}
	sys(close, fd);
}

/* Adds all processes in /proc except for pid 1, in a PID namespace with its own /proc. */
static void add_namespace(struct pids *pids)
{
	_Alignas(struct directory_entry) char entries[1024];
	uint64_t pid;
	long fd = sys(openat, AT_FDCWD, "/proc", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	for (long length; (length = sys(getdents64, fd, entries, sizeof entries)) > 0;) {
		struct directory_entry *entry;
		for (long at = 0; at < length; at += entry->size) {
			entry = (struct directory_entry *)(entries + at);
			if (parse_number(entry->name, &pid) && pid > 1 && pids->count < PIDS_MAX)
				pids->pid[pids->count++] = (int)pid;
		}
	}
	sys(close, fd);
}

static bool add_descendants(struct pids *pids)
{
	if (!add_own_children(pids))
		return false;
	for (int i = 0; i < pids->count; i++)
		add_children_of(pids->pid[i], pids);
	return true;
}
