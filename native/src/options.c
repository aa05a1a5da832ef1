/* The command line, as described in native/README.md. */

enum level { LEVEL_NONE, LEVEL_GROUP, LEVEL_PID, LEVEL_AUTO };
enum { ANY_PARENT = -1, NO_PARENT = 0 }; /* ANY_PARENT: not checked. NO_PARENT: we outlive our parent. */
enum { LIMITS_MAX = 8, PATHS_MAX = 32, PASSED_MAX = 2 };

struct paths {
	const char *path[2 * PATHS_MAX]; /* twice as many, so that one list can hold two of these options */
	int count;
};

struct limit {
	int resource;
	uint64_t value;
};

struct options {
	int parent;    /* its pid, ANY_PARENT or NO_PARENT */
	int status_fd; /* -1: none */
	enum level level;
	bool on_terminal;
	bool merge_output;
	bool keep_leftovers;
	bool restore_names;
	struct limit limits[LIMITS_MAX];
	int limit_count;
	struct paths cgroups;
	struct paths hidden, shown, frozen; /* directories; at level pid */
	struct paths readonly;              /* mount points; at level pid */
	int passed_fds[PASSED_MAX];         /* passed to the command besides 0, 1 and 2; -1: none */
	int directory_fd;                   /* descriptor for the working directory; -1: none */
	const char *directory_mount;        /* where to mount the working directory */
	int expected_directory;             /* -1: any */
	const char *expected_mount;         /* the path of the working directory; null: any */
	char **path_and_argv; /* PATH ARGV0 ARGS..., terminated by a null pointer */
	char **environment;
};

static bool parse_level(const char *name, enum level *level)
{
	if (same(name, "none"))
		*level = LEVEL_NONE;
	else if (same(name, "group"))
		*level = LEVEL_GROUP;
	else if (same(name, "pid"))
		*level = LEVEL_PID;
	else if (same(name, "auto"))
		*level = LEVEL_AUTO;
	else
		return false;
	return true;
}

static bool parse_limit(const char *text, struct options *options)
{
	const char *value;
	struct limit limit;
	if ((value = after(text, "cpu=")))
		limit.resource = RLIMIT_CPU;
	else if ((value = after(text, "fsize=")))
		limit.resource = RLIMIT_FSIZE;
	else if ((value = after(text, "nofile=")))
		limit.resource = RLIMIT_NOFILE;
	else
		return false;
	if (options->limit_count == LIMITS_MAX || !parse_number(value, &limit.value))
		return false;
	options->limits[options->limit_count++] = limit;
	return true;
}

static bool parse_small_number(const char *text, int *number)
{
	uint64_t value;
	if (!parse_number(text, &value) || value > INT32_MAX)
		return false;
	*number = (int)value;
	return true;
}

static bool parse_passed_fd(const char *text, struct options *options)
{
	for (int i = 0; i < PASSED_MAX; i++)
		if (options->passed_fds[i] < 0)
			return parse_small_number(text, &options->passed_fds[i]);
	return false;
}

static void add_path(struct paths *paths, const char *path) { paths->path[paths->count++] = path; }

static bool parse_path(struct paths *paths, const char *path)
{
	if (paths->count == PATHS_MAX)
		return false;
	add_path(paths, path);
	return true;
}

static bool parse_value(char option, char *value, struct options *options)
{
	switch (option) {
	case 'p':
		return parse_small_number(value, &options->parent);
	case 'f':
		return parse_small_number(value, &options->status_fd);
	case 'i':
		return parse_level(value, &options->level);
	case 'l':
		return parse_limit(value, options);
	case 'c':
		return parse_path(&options->cgroups, value);
	case 'd':
		return parse_passed_fd(value, options);
	case 'w':
		return parse_small_number(value, &options->directory_fd);
	case 'b':
		options->directory_mount = value;
		return true;
	case 'e':
		return parse_small_number(value, &options->expected_directory);
	case 'a':
		options->expected_mount = value;
		return true;
	case 'h':
		return parse_path(&options->hidden, value);
	case 's':
		return parse_path(&options->shown, value);
	case 'o':
		return parse_path(&options->frozen, value);
	case 'r':
		return parse_path(&options->readonly, value);
	default:
		return false;
	}
}

static bool parse_flag(char option, struct options *options)
{
	switch (option) {
	case 't':
		return options->on_terminal = true;
	case 'm':
		return options->merge_output = true;
	case 'k':
		return options->keep_leftovers = true;
	case 'u':
		return options->restore_names = true;
	default:
		return false;
	}
}

/* Sets every option up to the first invalid one, so that -f is known when the error is reported. */
static bool parse_options(char **argument, struct options *options)
{
	for (; *argument && !same(*argument, "--"); argument++) {
		char *text = *argument;
		if (text[0] != '-' || !text[1] || text[2])
			return false;
		if (parse_flag(text[1], options))
			continue;
		if (!argument[1] || !parse_value(text[1], argument[1], options))
			return false;
		argument++;
	}
	if (!argument[0] || !argument[1] || !argument[2])
		return false;
	options->path_and_argv = argument + 1;
	if (options->directory_fd >= 0 && !options->directory_mount)
		return false;
	if (options->expected_mount && options->expected_directory < 0)
		return false;
	/* Processes cannot outlive a PID namespace: they die with its pid 1. */
	if (options->keep_leftovers && options->level == LEVEL_PID)
		return false;
	if (options->keep_leftovers && options->level == LEVEL_AUTO)
		options->level = LEVEL_GROUP;
	return true;
}
