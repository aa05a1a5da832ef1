/* What the command must not reach or change, in a mount namespace that it shares with its pid 1. */

/* Mounts made from here on stay in this namespace. */
static long make_private(void) { return sys(mount, "none", "/", 0, MS_REC | MS_PRIVATE); }

/* Where the kernel refuses to leave out mounts below, as they may be there to hide something, they come along. */
static long bind(const char *from, const char *to)
{
	long result = sys(mount, from, to, 0, MS_BIND);
	return result == -EINVAL ? sys(mount, from, to, 0, MS_BIND | MS_REC) : result;
}

/*
 * Can we rename what is in this folder, or make it so that we can? In a user namespace all other users look like nobody:
 * for nobody itself the answer is yes too often, which costs time and nothing else.
 */
static bool may_change(const char *folder)
{
	struct file_status status;
	if (sys(faccessat, AT_FDCWD, folder, W_OK) >= 0)
		return true;
	return sys(statx, AT_FDCWD, folder, 0, STATX_UID, &status) < 0 || status.user == (uint32_t)sys(geteuid);
}

/*
 * Root renames no shared temporary folder by accident, and against intent a pin does not help: root can unmount it.
 * It would even do harm. Codex hides its own folder in /tmp wherever mountinfo shows /tmp, and fails where it cannot.
 */
static bool is_left_to_root(const char *folder)
{
	struct file_status status;
	return sys(geteuid) == 0 && sys(statx, AT_FDCWD, folder, 0, STATX_MODE, &status) >= 0 &&
	       (status.mode & MODE_SHARED) == MODE_SHARED;
}

/* The start of a path, up to a slash in it. */
static const char *part_of(char *buffer, const char *path, size_t end)
{
	memcpy(buffer, path, end);
	buffer[end] = 0;
	return buffer;
}

static bool lies_in(const char *path, const char *directory)
{
	const char *below = after(path, directory);
	return below && *below == '/';
}

static bool is_below(const char *path, const struct paths *directories)
{
	for (int i = 0; i < directories->count; i++)
		if (lies_in(path, directories->path[i]))
			return true;
	return false;
}

/* Is this folder also around one of the paths before? */
static bool is_around_earlier(const struct paths *paths, int index, const char *folder)
{
	for (int i = 0; i < index; i++)
		if (lies_in(paths->path[i], folder))
			return true;
	return false;
}

/* Lays the folder on top of the stage. The first carries all others: it must not come along with a folder around it. */
static long stack(const char *folder, const char *stage, bool first)
{
	long result = bind(folder, stage);
	if (result >= 0 && first)
		result = sys(chdir, stage);
	if (result >= 0 && first)
		result = sys(mount, "none", ".", 0, MS_UNBINDABLE);
	return result;
}

/*
 * A user who could rename a folder around a protected one would leave it in the open for the next command, which gets the
 * old path protected. The kernel refuses to rename or remove what is mounted on, by whatever path: so all of them are
 * mounted on one stage, each on the root of the one before. A mount at its own path would do it too, but no rename
 * and no hard link crosses one. What is mounted on the stage next pins the last and covers them all.
 */
static long pin_folders_around(const struct paths *paths)
{
	char folder[PATH_MAX], parent[PATH_MAX];
	bool first = true;
	for (int i = 0; i < paths->count; i++) {
		const char *path = paths->path[i];
		if (length_of(path) >= PATH_MAX)
			return -ENAMETOOLONG;
		part_of(parent, "/", 1);
		for (size_t end = 1; path[end]; end++) {
			if (path[end] != '/')
				continue;
			part_of(folder, path, end);
			if (!is_around_earlier(paths, i, folder) && may_change(parent) && !is_left_to_root(folder)) {
				long result = stack(folder, paths->path[0], first);
				if (result < 0)
					return result;
				first = false;
			}
			part_of(parent, path, end);
		}
	}
	return first ? 0 : sys(mount, "none", ".", 0, MS_PRIVATE);
}

/* Folders in what covers `directory` for `path`, if it lies below. */
static long make_folders(const char *directory, const char *path)
{
	char folder[PATH_MAX];
	size_t length = length_of(path);
	if (!lies_in(path, directory))
		return 0;
	if (length >= sizeof folder)
		return -ENAMETOOLONG;
	for (size_t end = length_of(directory) + 1; end <= length; end++) {
		if (path[end] && path[end] != '/')
			continue;
		long result = sys(mkdirat, AT_FDCWD, part_of(folder, path, end), 0555);
		if (result < 0 && result != -EEXIST)
			return result;
	}
	return 0;
}

/* Mounts an empty, read-only directory over it, with places for what is shown in there. One that is gone is a failure too. */
static long cover(const char *directory, const struct options *options)
{
	long result = sys(mount, "none", directory, "tmpfs", MS_HARMLESS, "size=4k,nr_inodes=1k,mode=0555");
	for (int i = 0; result >= 0 && i < options->shown.count; i++)
		result = make_folders(directory, options->shown.path[i]);
	for (int i = 0; result >= 0 && i < options->frozen.count; i++)
		result = make_folders(directory, options->frozen.path[i]);
	if (result < 0)
		return result;
	return sys(mount, "none", directory, 0, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_HARMLESS);
}

/* Directories as they are before anything is mounted over them. */
static long open_all(const struct paths *paths, int *fds)
{
	for (int i = 0; i < paths->count; i++) {
		long fd = sys(openat, AT_FDCWD, paths->path[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return fd;
		fds[i] = (int)fd;
	}
	return 0;
}

/* Puts it back where it was, on top of what was mounted there since. */
static long mount_again(const char *path, int fd)
{
	long result = sys(fchdir, fd);
	if (result >= 0)
		result = sys(mount, ".", path, 0, MS_BIND | MS_REC);
	sys(close, fd);
	return result;
}

/* What is shown may have a hidden directory in it, with something shown in there: so in two rounds. */
static long hide_and_show(const struct options *options, const int *fds)
{
	const struct paths *hidden = &options->hidden, *shown = &options->shown;
	long result = 0;
	for (int is_inside = 0; is_inside < 2; is_inside++) {
		for (int i = 0; result >= 0 && i < hidden->count; i++)
			if (is_below(hidden->path[i], shown) == is_inside)
				result = cover(hidden->path[i], options);
		for (int i = 0; result >= 0 && i < shown->count; i++)
			if (is_below(shown->path[i], shown) == is_inside)
				result = mount_again(shown->path[i], fds[i]);
	}
	return result;
}

/* The remount keeps all other flags: in a user namespace only stricter ones are allowed. */
static long make_readonly(const struct paths *paths)
{
	const long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;
	for (int i = 0; i < paths->count; i++) {
		long result = sys(mount, "none", paths->path[i], 0, flags);
		if (result == -EPERM)
			result = sys(mount, "none", paths->path[i], 0, flags | MS_NOEXEC);
		if (result < 0)
			return result;
	}
	return 0;
}

/* Those whose surroundings the command sees: what lies in a hidden one is out of its reach. */
static struct paths exposed(const struct options *options)
{
	const struct paths *all[] = { &options->hidden, &options->frozen };
	struct paths found = { .count = 0 };
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < all[k]->count; i++)
			if (!is_below(all[k]->path[i], &options->hidden))
				add_path(&found, all[k]->path[i]);
	return found;
}

/* Hides and freezes. */
static long mount_protection(const struct options *options, const struct paths *around)
{
	int shown[PATHS_MAX], frozen[PATHS_MAX];
	long result = open_all(&options->shown, shown);
	if (result >= 0)
		result = open_all(&options->frozen, frozen);
	if (result >= 0)
		result = pin_folders_around(around);
	if (result >= 0)
		result = hide_and_show(options, shown);
	for (int i = 0; result >= 0 && i < options->frozen.count; i++)
		result = mount_again(options->frozen.path[i], frozen[i]);
	if (result >= 0)
		result = make_readonly(&options->frozen);
	return result;
}

/* It was opened before: it may lead to what lies below a mount. Its path may lead elsewhere by now, and must not. */
static struct failure reopen_working_directory(const char *path, int before, const struct paths *hidden)
{
	long result = sys(chdir, path);
	if (result < 0 && is_below(path, hidden))
		return (struct failure){ STEP_HIDE, (int)-result };
	for (int i = 0; i < hidden->count; i++)
		if (result >= 0 && same(path, hidden->path[i]))
			return (struct failure){ .error = 0 };
	if (result >= 0)
		result = expect_directory(before);
	return (struct failure){ STEP_DIRECTORY, (int)-result };
}

/* The error is 0 where nothing failed. */
static struct failure protect_directories(const struct options *options)
{
	char working_directory[PATH_MAX];
	struct paths around = exposed(options);
	if (!around.count)
		return (struct failure){ .error = 0 };
	long before = open_working_directory();
	long result = before < 0 ? before : sys(getcwd, working_directory, sizeof working_directory);
	if (result < 0)
		return (struct failure){ STEP_DIRECTORY, (int)-result };
	result = mount_protection(options, &around);
	if (result < 0)
		return (struct failure){ STEP_HIDE, (int)-result };
	struct failure failure = reopen_working_directory(working_directory, (int)before, &options->hidden);
	sys(close, before);
	return failure;
}

/*
 * The command may share our terminal. Without this it could type into it, and the shell that started Drover would run
 * that. A kernel without filters leaves it possible: see the docs.
 */
static void forbid_typing(void)
{
	const struct filter_instruction instructions[] = {
		{ LOAD_WORD, 0, 0, CALL_NUMBER },
		{ JUMP_IF_EQUAL, 3, 0, IOCTL },
		{ JUMP_IF_EQUAL, 2, 0, IOCTL_32 },
		{ JUMP_IF_EQUAL, 1, 0, IOCTL_OTHER },
		{ RETURN, 0, 0, SECCOMP_ALLOW },
		{ LOAD_WORD, 0, 0, SECOND_ARGUMENT },
		{ JUMP_IF_EQUAL, 2, 0, TIOCSTI },
		{ JUMP_IF_EQUAL, 1, 0, TIOCLINUX },
		{ RETURN, 0, 0, SECCOMP_ALLOW },
		{ RETURN, 0, 0, SECCOMP_EPERM },
	};
	const struct filter_program program = { sizeof instructions / sizeof *instructions, instructions };
	sys(seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_SPEC_ALLOW, &program);
}

/* A user has no right to unmount in our user namespace; nor shall a program with file capabilities give it. */
static long forbid_unmounting(void) { return sys(prctl, PR_CAPBSET_DROP, CAP_SYS_ADMIN); }
