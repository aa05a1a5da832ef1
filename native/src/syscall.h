/* Raw system calls, because the launcher has no libc. Every call returns its result, or -errno. */

#if defined(__x86_64__)

enum {
	NR_read = 0, NR_write = 1, NR_close = 3, NR_fstat = 5, NR_rt_sigaction = 13, NR_rt_sigprocmask = 14,
	NR_pwrite64 = 18, NR_getpid = 39, NR_clone = 56, NR_execve = 59, NR_wait4 = 61, NR_kill = 62,
	NR_fcntl = 72, NR_ftruncate = 77, NR_getcwd = 79, NR_chdir = 80, NR_fchdir = 81,
	NR_getrusage = 98, NR_geteuid = 107, NR_getegid = 108, NR_setpgid = 109, NR_getppid = 110,
	NR_rt_sigtimedwait = 128, NR_statfs = 137, NR_fstatfs = 138, NR_prctl = 157, NR_mount = 165, NR_getdents64 = 217, NR_exit_group = 231,
	NR_openat = 257, NR_mkdirat = 258, NR_faccessat = 269, NR_dup3 = 292, NR_pipe2 = 293, NR_prlimit64 = 302,
	NR_seccomp = 317, NR_statx = 332, NR_close_range = 436,
};
/* The numbers of ioctl: ours, that of 32-bit programs, and that of x32 programs. */
enum { IOCTL = 16, IOCTL_32 = 54, IOCTL_OTHER = 0x40000202 };
enum { O_DIRECTORY = 0200000 };

static inline long raw_syscall(long number, long a, long b, long c, long d, long e)
{
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return result;
}

/* The kernel leaves argc, argv and the environment on the stack; start() gets their address. */
__asm__(".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call start\n");

#elif defined(__aarch64__)

enum {
	NR_getcwd = 17, NR_dup3 = 24, NR_fcntl = 25, NR_mkdirat = 34, NR_mount = 40, NR_statfs = 43,
	NR_fstatfs = 44, NR_ftruncate = 46,
	NR_faccessat = 48, NR_chdir = 49, NR_fchdir = 50, NR_openat = 56, NR_close = 57, NR_pipe2 = 59, NR_getdents64 = 61,
	NR_read = 63, NR_write = 64, NR_pwrite64 = 68, NR_fstat = 80, NR_exit_group = 94, NR_kill = 129,
	NR_rt_sigaction = 134, NR_rt_sigprocmask = 135, NR_rt_sigtimedwait = 137, NR_setpgid = 154,
	NR_getrusage = 165, NR_prctl = 167, NR_getpid = 172, NR_getppid = 173, NR_geteuid = 175,
	NR_getegid = 177, NR_clone = 220, NR_execve = 221, NR_wait4 = 260, NR_prlimit64 = 261,
	NR_seccomp = 277, NR_statx = 291, NR_close_range = 436,
};
/* The numbers of ioctl: ours, and that of 32-bit programs. */
enum { IOCTL = 29, IOCTL_32 = 54, IOCTL_OTHER = 54 };
enum { O_DIRECTORY = 040000 };

static inline long raw_syscall(long number, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
}

__asm__(".globl _start\n"
	"_start:\n"
	"	mov x29, xzr\n"
	"	mov x30, xzr\n"
	"	mov x0, sp\n"
	"	and sp, x0, #-16\n"
	"	bl start\n");

#else
#error "drover-init knows x86_64 and aarch64 only"
#endif

/* sys(kill, pid, signal): the missing arguments are zero. */
#define sys(name, ...) SYS_PADDED(NR_##name, ##__VA_ARGS__, 0, 0, 0, 0, 0)
#define SYS_PADDED(number, a, b, c, d, e, ...) \
	raw_syscall(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))
