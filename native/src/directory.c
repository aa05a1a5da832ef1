/* The working directory. Another process may replace it with a link while we set up the command. */

static long open_working_directory(void)
{
	return sys(openat, AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Returns -ESTALE if the descriptor does not refer to the working directory. */
static long expect_directory(int fd)
{
	struct file_identity expected, found;
	long here = open_working_directory();
	if (here < 0)
		return here;
	long result = sys(fstat, fd, &expected);
	if (result >= 0)
		result = sys(fstat, here, &found);
	sys(close, here);
	if (result < 0)
		return result;
	return expected.device == found.device && expected.inode == found.inode ? 0 : -ESTALE;
}

/*
 * Returns -ESTALE unless the working directory is the sandbox's mount of the directory `fd`, at this path. A sandbox
 * mounts it by path, so another process can redirect that mount with a link, for example onto a directory of programs.
 * A mount that the host has at this path is read-only in the sandbox, except in the temporary directory. Kernels before
 * 5.8 do not say whether a directory is a mount.
 */
static long expect_mount(const char *path, int fd)
{
	char here[PATH_MAX];
	struct file_status status;
	struct file_system mounted, source;
	long result = sys(getcwd, here, sizeof here);
	if (result >= 0)
		result = sys(statx, AT_FDCWD, ".", 0, 0, &status);
	if (result >= 0)
		result = sys(statfs, ".", &mounted);
	if (result >= 0)
		result = sys(fstatfs, fd, &source);
	if (result < 0)
		return result;
	bool is_mount = status.attributes & STATX_MOUNT_ROOT || !(status.known_attributes & STATX_MOUNT_ROOT);
	bool became_readonly = mounted.flags & MS_RDONLY && !(source.flags & MS_RDONLY);
	return is_mount && !became_readonly && same(here, path) ? 0 : -ESTALE;
}

/*
 * Provides the working directory to a nested sandbox, which binds directories by their paths: as a mount that no
 * other process can replace, and as a descriptor with which the nested launcher verifies that it runs in the same
 * directory.
 */
static long provide_working_directory(int fd, const char *point)
{
	long here = open_working_directory();
	if (here < 0)
		return here;
	long result = sys(dup3, here, fd, 0);
	sys(close, here);
	if (result >= 0)
		result = sys(mount, ".", point, 0, MS_BIND | MS_REC);
	return result;
}
