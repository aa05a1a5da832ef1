/* The part of the kernel's interface that we use. It is the same on both architectures. */

enum { EPERM = 1, ENOENT = 2, ENOEXEC = 8, ECHILD = 10, EEXIST = 17, EINVAL = 22, ENAMETOOLONG = 36, ESTALE = 116 };

enum {
	SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGKILL = 9, SIGTERM = 15, SIGCHLD = 17, SIGPWR = 30,
	SIG_BLOCK_MASK = 0, SIG_UNBLOCK_MASK = 1, SIG_SET_MASK = 2,
};
typedef uint64_t signal_set;
#define ALL_SIGNALS (~(signal_set)0)

struct signal_action {
	uint64_t handler, flags, restorer;
	signal_set mask;
};

struct signal_info {
	int32_t signal, error, code, padding;
	int32_t sender; /* 0 if the sender is outside our PID namespace */
	int32_t rest[27];
};

struct resource_limit {
	uint64_t soft, hard;
};
enum { RLIMIT_CPU = 0, RLIMIT_FSIZE = 1, RLIMIT_CORE = 4, RLIMIT_NOFILE = 7 };

struct resource_usage {
	int64_t user_seconds, user_microseconds;
	int64_t system_seconds, system_microseconds;
	int64_t max_rss_kb;
	int64_t rest[13];
};
#define RUSAGE_CHILDREN (-1)

struct directory_entry {
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

/* The result of statx. */
struct file_status {
	uint32_t mask, block_size;
	uint64_t attributes;
	uint32_t links, user, group;
	uint16_t mode, padding;
	uint64_t inode, size, blocks, known_attributes;
	char rest[192];
};

/* The result of statfs. */
struct file_system {
	int64_t numbers[10], flags, rest[4];
};

/* The start of the result of fstat, which is the same on both architectures. */
struct file_identity {
	uint64_t device, inode;
	char rest[128];
};

/* One instruction of a seccomp filter, and a program of several. */
struct filter_instruction {
	uint16_t code;
	uint8_t if_true, if_false;
	uint32_t value;
};
struct filter_program {
	uint16_t length;
	const struct filter_instruction *instructions;
};
enum { LOAD_WORD = 0x20, JUMP_IF_EQUAL = 0x15, RETURN = 0x06 };
enum { CALL_NUMBER = 0, SECOND_ARGUMENT = 24 };
enum { SECCOMP_SET_MODE_FILTER = 1, SECCOMP_SPEC_ALLOW = 4 };
enum { TIOCSTI = 0x5412, TIOCLINUX = 0x541c };
#define SECCOMP_ALLOW 0x7fff0000u
#define SECCOMP_EPERM 0x00050001u

enum { PR_SET_PDEATHSIG = 1, PR_SET_DUMPABLE = 4, PR_CAPBSET_DROP = 24, PR_SET_CHILD_SUBREAPER = 36 };
enum { CAP_SYS_ADMIN = 21 };
enum { PATH_MAX = 4096 };
enum { WNOHANG = 1 };
enum { F_DUPFD_CLOEXEC = 1030 };
enum { O_RDONLY = 0, O_WRONLY = 1, O_CLOEXEC = 02000000, O_PATH = 010000000 };
enum { W_OK = 2, STATX_MODE = 2, STATX_UID = 8, STATX_MOUNT_ROOT = 0x2000, MODE_SHARED = 01777 };
#define AT_FDCWD (-100)

enum { CLONE_NEWNS = 0x00020000, CLONE_NEWUSER = 0x10000000, CLONE_NEWPID = 0x20000000 };
enum {
	MS_RDONLY = 1, MS_NOSUID = 2, MS_NODEV = 4, MS_NOEXEC = 8, MS_REMOUNT = 0x20, MS_BIND = 0x1000,
	MS_REC = 0x4000, MS_UNBINDABLE = 0x20000, MS_PRIVATE = 0x40000,
};
enum { MS_HARMLESS = MS_NOSUID | MS_NODEV | MS_NOEXEC };

/* A wait status: the low 7 bits are the signal that ended it, the next byte is the exit code. */
static int death_signal(int wait_status) { return wait_status & 0x7f; }
static int exit_code(int wait_status) { return (wait_status >> 8) & 0xff; }
