/* The working directory. Another process may replace it by a link while we set up the command. */

static long open_working_directory(void)
{
	return sys(openat, AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* -ESTALE where the working directory is not the one of this descriptor. */
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
 * For a sandbox inside, which binds directories by their paths: at a place that no other process can replace, and as a
 * descriptor with which the launcher in there checks where it is.
 */
static long lend_working_directory(int fd, const char *point)
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
