/* Keeps the command away from protected directories, in a mount namespace that it shares with its pid 1. */

/* From here on, new mounts stay in this namespace. */
static long make_private(void) { return sys(mount, "none", "/", 0, MS_REC | MS_PRIVATE); }

/*
 * Binds one mount. If mounts below it may hide something, the kernel refuses to leave them out, so they are bound
 * too.
 */
static long bind(const char *from, const char *to)
{
	long result = sys(mount, from, to, 0, MS_BIND);
	return result == -EINVAL ? sys(mount, from, to, 0, MS_BIND | MS_REC) : result;
}

/*
 * Whether we can rename the entries of this folder, or give ourselves permission to. In a user namespace, all other
 * users look like nobody. For nobody itself, the result is therefore true too often, which only costs time.
 */
static bool may_change(const char *folder)
{
	struct file_status status;
	if (sys(faccessat, AT_FDCWD, folder, W_OK) >= 0)
		return true;
	return sys(statx, AT_FDCWD, folder, 0, STATX_UID, &status) < 0 || status.user == (uint32_t)sys(geteuid);
}

/*
 * Whether to leave a shared temporary folder unprotected from root. Root does not rename it by accident, and could
 * undo the protection anyway. The protection would also break Codex, which hides its own folder in /tmp wherever
 * mountinfo shows /tmp, and fails where it cannot.
 */
static bool is_left_to_root(const char *folder)
{
	struct file_status status;
	return sys(geteuid) == 0 && sys(statx, AT_FDCWD, folder, 0, STATX_MODE, &status) >= 0 &&
	       (status.mode & MODE_SHARED) == MODE_SHARED;
}

/* Copies the part of the path before the slash at `end`. */
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

/* Whether this folder also contains one of the paths before `index`. */
static bool is_around_earlier(const struct paths *paths, int index, const char *folder)
{
	for (int i = 0; i < index; i++)
		if (lies_in(paths->path[i], folder))
			return true;
	return false;
}

/*
 * Mounts the folder on top of the stage. The first one carries all others. It is unbindable, so that binding a folder
 * around it does not bind it too.
 */
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
 * Prevents the user from renaming a folder that contains a protected directory. After a rename, the next command
 * would protect the old path and leave the directory exposed. The kernel refuses to rename or remove a folder that
 * carries a mount, whatever path that mount used. So all of these folders are mounted on one stage, each on the root
 * of the one before, which pins that one. A mount at the folder's own path would also work, but renames and hard
 * links cannot cross it. The next mount on the stage pins the last folder and covers them all.
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

/* If `path` is below `directory`, creates the folders for it in the mount that covers `directory`. */
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

/*
 * Mounts an empty, read-only directory over this one, with mount points for the visible directories in it. Fails if
 * the directory does not exist.
 */
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

/* Opens the directories before anything is mounted over them. */
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

/* Mounts an opened directory at its path again, on top of what has been mounted there since. */
static long mount_again(const char *path, int fd)
{
	long result = sys(fchdir, fd);
	if (result >= 0)
		result = sys(mount, ".", path, 0, MS_BIND | MS_REC);
	sys(close, fd);
	return result;
}

/* In two rounds, because a visible directory may contain a hidden one, and that one another visible one. */
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

/* Keeps all other flags of the mount, because a user namespace may only make them stricter. */
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

/*
 * Returns the protected directories whose parents the command can see. One inside a hidden directory is out of its
 * reach.
 */
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

/* Makes all mounts of the options `hidden`, `shown` and `frozen`. */
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

/*
 * Enters the working directory again, because the old one may be below a new mount. Fails if the path now leads to
 * another directory.
 */
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

/* Returns a failure with error 0 on success. */
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
 * Prevents the command from typing into a terminal that it shares with us: the shell that started Drover would run
 * that input. Has no effect on kernels without seccomp filters, see native/README.md.
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

/*
 * Prevents programs with file capabilities from getting the right to unmount in our user namespace. The user does not
 * have it.
 */
static long forbid_unmounting(void) { return sys(prctl, PR_CAPBSET_DROP, CAP_SYS_ADMIN); }
