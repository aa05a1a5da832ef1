# drover-init in perl, for hosts where the static binary cannot run. native/README.md describes the options, status
# lines and behaviour. native/src implements the same in C, with the same names.
#
# Most of the cost is perl's own startup, so this loads only strict. As in C, descriptors are plain numbers, and each
# system call returns its result or -errno.
use strict;

sub EPERM ()   { 1 }
sub ENOENT ()  { 2 }
sub ENOEXEC () { 8 }
sub ECHILD ()  { 10 }
sub EEXIST ()  { 17 }
sub EINVAL ()  { 22 }
sub ENOSYS ()  { 38 }
sub ESTALE ()  { 116 }

sub SIGFPE ()  { 8 }
sub SIGKILL () { 9 }
sub SIGCHLD () { 17 }
sub SIGPWR ()  { 30 }
sub SIG_UNBLOCK () { 1 }
sub SIG_SETMASK () { 2 }
my %asks_to_stop = map { $_ => 1 } 1, 2, 3, 15;    # HUP INT QUIT TERM

sub PR_SET_PDEATHSIG ()       { 1 }
sub PR_SET_DUMPABLE ()        { 4 }
sub PR_CAPBSET_DROP ()        { 24 }
sub PR_SET_CHILD_SUBREAPER () { 36 }
sub CAP_SYS_ADMIN ()          { 21 }
sub SECCOMP_SET_MODE_FILTER () { 1 }
sub SECCOMP_SPEC_ALLOW ()     { 4 }
sub RUSAGE_CHILDREN ()        { -1 }
sub WNOHANG ()                { 1 }
sub O_CLOEXEC ()              { 02000000 }
sub O_PATH ()                 { 010000000 }
sub W_OK ()                   { 2 }
sub F_DUPFD_CLOEXEC ()        { 1030 }
sub AT_FDCWD ()               { -100 }
sub STATX_MOUNT_ROOT ()       { 0x2000 }
sub PASSED_MAX ()             { 2 }
sub NOT_STARTED ()            { 127 }
sub FIRST_HIGH_FD ()          { 10 }
sub CLONE_NEWNS_NEWPID ()     { 0x20020000 }
sub CLONE_NEWUSER ()          { 0x10000000 }
sub MS_REC_PRIVATE ()         { 0x44000 }
sub MS_HARMLESS ()            { 14 }         # nosuid, nodev, noexec
sub MS_NOEXEC ()              { 8 }
sub MS_RDONLY ()              { 1 }
sub MS_BIND ()                { 0x1000 }
sub MS_BIND_REC ()            { 0x5000 }
sub MS_UNBINDABLE ()          { 0x20000 }
sub MS_PRIVATE ()             { 0x40000 }
sub MS_REMOUNT_BIND ()        { 0x1020 }
sub PATH_MAX ()               { 4096 }
my %resource = (cpu => 0, fsize => 1, core => 4, nofile => 7);

my $all_signals = pack "Q", ~0;
my $default_action = "\0" x 32;
my %number = system_call_numbers();
my %option = (
    status_fd => -1, directory_fd => -1, expected_directory => -1, level => "auto", passed_fds => [], limits => [], cgroups => [],
    hidden => [], shown => [], frozen => [], readonly => [],
);

main();

# --- reports to Drover ----------------------------------------------------------------------------

sub leave { sys("exit_group", $_[0]) while 1 }

sub write_line {
    my ($fd, $line) = @_;
    $line .= "\n";
    sys("write", $fd, $line, length $line) if $fd >= 0;
}

# The final report, which replaces everything in the file: any other content was written by a process that found a way
# to it. A pipe cannot be emptied, so it gets only the lines that are missing.
sub report_ending {
    my ($level, $ending) = @_;
    my $fd = $option{status_fd};
    return if $fd < 0;
    my $usage = "\0" x 144;
    sys("getrusage", RUSAGE_CHILDREN, $usage);
    my ($user_s, $user_us, $system_s, $system_us, $max_rss) = unpack "q5", $usage;
    my $emptied = sys("ftruncate", $fd, 0) == 0;
    my $lines = $emptied ? "I $level\n" : "";
    $lines .= "U $ending->{unkillable}\n" if $ending->{unkillable};
    $lines .= $ending->{names} if $ending->{names};
    $lines .= join " ", "S", $ending->{wait_status}, $ending->{leftovers},
      $user_s * 1_000_000 + $user_us, $system_s * 1_000_000 + $system_us, "$max_rss\n";
    if   ($emptied) { sys("pwrite64", $fd, $lines, length $lines, 0) }
    else            { sys("write", $fd, $lines, length $lines) }
}

# Exits with the code that a shell would use.
sub fail {
    my ($step, $error, $fd) = @_;
    write_line($fd || $option{status_fd}, "E $step $error");
    leave($step ne "exec" ? 125 : $error == ENOENT ? 127 : 126);
}

sub mirror {
    my ($wait_status) = @_;
    my $signal = $wait_status & 0x7f;
    leave($wait_status >> 8 & 0xff) if !$signal;
    my $no_core = pack "QQ", 0, 0;
    my $just_this = pack "Q", 1 << ($signal - 1);
    sys("prlimit64", 0, $resource{core}, $no_core, 0);
    sys("rt_sigaction", $signal, $default_action, 0, 8);
    sys("kill", $$ + 0, $signal);
    sys("rt_sigprocmask", SIG_UNBLOCK, $just_this, 0, 8);
    leave(128 + $signal);
}

# --- messages between our processes, over a pipe that the command never sees ----------------------

sub open_channel {
    my $ends = "\0" x 8;
    my $result = sys("pipe2", $ends, O_CLOEXEC);
    return $result < 0 ? ($result) : (0, unpack "ll", $ends);
}

# A message: its kind (ready, failed, ended), a step, three numbers and, with `ended`, the lines that name the
# leftovers: at most 8, of 128 bytes and a pid each.
use constant { MESSAGE => "A8 A12 l3 a1200", MESSAGE_BYTES => 1232, NAMED_MAX => 8, NAME_BYTES => 128 };

sub send_message {
    my ($fd, $kind, $step, @numbers) = @_;
    return send_packed($fd, $kind, $step, "", @numbers);
}

sub send_packed {
    my ($fd, $kind, $step, $names, @numbers) = @_;
    my $message = pack MESSAGE, $kind, $step, (@numbers, 0, 0, 0)[0 .. 2], $names;
    return sys("write", $fd, $message, length $message) == length $message;
}

sub send_ending {
    my ($fd, $ending) = @_;
    return send_packed($fd, "ended", "", $ending->{names} || "", @$ending{qw(wait_status leftovers unkillable)});
}

sub unpack_message {
    my ($kind, $step, @rest) = unpack MESSAGE, $_[0];
    $rest[3] =~ s/\0+\z//;
    return ($kind, $step, @rest);
}

# Returns nothing at the end of the pipe, when every sender has closed it.
sub receive_message {
    my ($fd) = @_;
    my $message = "\0" x MESSAGE_BYTES;
    return sys("read", $fd, $message, MESSAGE_BYTES) == MESSAGE_BYTES ? unpack_message($message) : ();
}

# Reads the rest of the pipe and returns its first and last message, or nothing if there is none. A command that may
# trace us (as root) can also write to the pipe, even partial messages. The first and the last message are still ours:
# the command does not exist yet when the first is sent, and is dead when the last is.
sub receive_ends {
    my ($fd) = @_;
    my ($all, $chunk, $length) = ("", "\0" x 4096);
    $all .= substr $chunk, 0, $length while ($length = sys("read", $fd, $chunk, 4096)) > 0;
    return () if length $all < MESSAGE_BYTES;
    return map { [unpack_message($_)] } substr($all, 0, MESSAGE_BYTES), substr($all, -MESSAGE_BYTES());
}

# Whether the child failed to become the command. In that case it reports the failure and exits with 127.
sub is_failure {
    my ($message, $wait_status) = @_;
    my ($kind, $step) = @$message;
    return $kind eq "failed" && $wait_status == NOT_STARTED << 8 && $step =~ /^[a-z]+\z/;
}

sub close_span {
    my ($first, $last) = @_;
    return if sys("close_range", $first, $last, 0) == 0;
    # Fallback for kernels before Linux 5.9. Drover passes no descriptors with high numbers.
    for (my $fd = $first ; $fd < 1024 && $fd <= $last ; $fd++) { sys("close", $fd) }
}

# Closes all descriptors from the first on, except for the kept ones (-1: none).
sub close_all_but {
    my ($first, @kept) = @_;
    for my $kept (sort { $a <=> $b } grep { $_ >= $first } @kept) {
        close_span($first, $kept - 1) if $kept > $first;
        $first = $kept + 1;
    }
    close_span($first, 0xffffffff);
}

# --- the working directory, which another process may replace with a link meanwhile ---------------

sub open_working_directory {
    my $here = ".";
    return sys("openat", AT_FDCWD, $here, O_PATH | O_CLOEXEC);
}

sub identity_of {
    my ($fd) = @_;
    my $status = "\0" x 144;
    my $result = sys("fstat", $fd, $status);
    return $result < 0 ? $result : join ":", unpack "QQ", $status;
}

# Returns -ESTALE if the descriptor does not refer to the working directory.
sub expect_directory {
    my ($fd) = @_;
    my $here = open_working_directory();
    return $here if $here < 0;
    my ($expected, $found) = (identity_of($fd), identity_of($here));
    sys("close", $here);
    return $expected =~ /:/ && $expected eq $found ? 0 : -ESTALE;
}

# Returns -ESTALE unless the working directory is the sandbox's mount of the directory `fd`, at this path. A sandbox mounts
# it by path, so another process can redirect that mount with a link, for example onto a directory of programs. A mount
# that the host has at this path is read-only in the sandbox, except in the temporary directory. Kernels before 5.8 do not
# say whether a directory is a mount.
sub expect_mount {
    my ($path, $fd) = @_;
    my ($here, $status, $directory) = ("\0" x PATH_MAX, "\0" x 256, ".");
    my ($mounted, $source) = ("\0" x 120, "\0" x 120);
    my $result = sys("getcwd", $here, PATH_MAX);
    $result = sys("statx", AT_FDCWD, $directory, 0, 0, $status) if $result >= 0;
    $result = sys("statfs", $directory, $mounted) if $result >= 0;
    $result = sys("fstatfs", $fd, $source) if $result >= 0;
    return $result if $result < 0;
    my ($attributes, $known_attributes) = unpack "x8 Q x40 Q", $status;
    my $is_mount = $attributes & STATX_MOUNT_ROOT || !($known_attributes & STATX_MOUNT_ROOT);
    my ($mounted_flags, $source_flags) = map { unpack "x80 Q", $_ } $mounted, $source;
    my $became_readonly = $mounted_flags & MS_RDONLY && !($source_flags & MS_RDONLY);
    return $is_mount && !$became_readonly && unpack("Z*", $here) eq $path ? 0 : -ESTALE;
}

# Provides the working directory to a nested sandbox, which binds directories by their paths: as a mount that no other
# process can replace, and as a descriptor with which the nested launcher verifies that it runs in the same directory.
sub provide_working_directory {
    my ($fd, $point) = @_;
    my $here = open_working_directory();
    return $here if $here < 0;
    my $from = ".";
    my $result = sys("dup3", $here, $fd, 0);
    sys("close", $here);
    $result = sys("mount", $from, $point, 0, MS_BIND_REC, 0) if $result >= 0;
    return $result;
}

# --- keeping the command away from protected directories, in a mount namespace it shares with its pid 1 ---

# From here on, new mounts stay in this namespace.
sub make_private {
    my ($none, $root) = ("none", "/");
    return sys("mount", $none, $root, 0, MS_REC_PRIVATE, 0);
}

# Binds one mount. If mounts below it may hide something, the kernel refuses to leave them out, so they are bound too.
sub bind_mount {
    my ($from, $to) = @_;
    my $result = sys("mount", $from, $to, 0, MS_BIND, 0);
    return $result == -EINVAL ? sys("mount", $from, $to, 0, MS_BIND_REC, 0) : $result;
}

# Whether we can rename the entries of this folder, or give ourselves permission to.
sub may_change {
    my ($folder) = @_;
    return 1 if sys("faccessat", AT_FDCWD, $folder, W_OK) >= 0;
    my $owner = (stat $folder)[4];
    return !defined $owner || $owner == $>;
}

# Whether to leave a shared temporary folder unprotected from root. Root does not rename it by accident, and could
# undo the protection anyway. The protection would also break Codex, which hides its own folder in /tmp wherever
# mountinfo shows /tmp, and fails where it cannot.
sub is_left_to_root {
    my ($folder) = @_;
    my $mode = (stat $folder)[2];
    return $> == 0 && defined $mode && ($mode & 01777) == 01777;
}

# Mounts the folder on top of the stage. The first one carries all others. It is unbindable, so that binding a folder
# around it does not bind it too.
sub stack {
    my ($folder, $stage, $first) = @_;
    my ($none, $here) = ("none", ".");
    my $result = bind_mount($folder, $stage);
    $result = sys("chdir", $stage) if $result >= 0 && $first;
    $result = sys("mount", $none, $here, 0, MS_UNBINDABLE, 0) if $result >= 0 && $first;
    return $result;
}

# Prevents the user from renaming a folder that contains a protected directory. After a rename, the next command would
# protect the old path and leave the directory exposed. The kernel refuses to rename or remove a folder that carries a
# mount, whatever path that mount used. So all of these folders are mounted on one stage, each on the root of the one
# before, which pins that one. A mount at the folder's own path would also work, but renames and hard links cannot
# cross it. The next mount on the stage pins the last folder and covers them all.
sub pin_folders_around {
    my @paths = @_;
    my ($none, $here, $first) = ("none", ".", 1);
    my %seen;
    for my $path (@paths) {
        my ($parent, $folder) = ("/", "");
        my @names = split m{/}, substr($path, 1);
        pop @names;
        for my $name (@names) {
            $folder .= "/$name";
            if (!$seen{$folder}++ && may_change($parent) && !is_left_to_root($folder)) {
                my $result = stack($folder, $paths[0], $first);
                return $result if $result < 0;
                $first = 0;
            }
            $parent = $folder;
        }
    }
    return $first ? 0 : sys("mount", $none, $here, 0, MS_PRIVATE, 0);
}

sub lies_in {
    my ($path, $directory) = @_;
    return index($path, "$directory/") == 0;
}

# Mounts an empty, read-only directory over this one, with mount points for the visible directories in it. Fails if
# the directory does not exist.
sub cover {
    my ($directory) = @_;
    my ($none, $type, $size) = ("none", "tmpfs", "size=4k,nr_inodes=1k,mode=0555");
    my $result = sys("mount", $none, $directory, $type, MS_HARMLESS, $size);
    return $result if $result < 0;
    for my $path (grep { lies_in($_, $directory) } @{ $option{shown} }, @{ $option{frozen} }) {
        my $folder = $directory;
        for my $name (split m{/}, substr($path, 1 + length $directory)) {
            $folder .= "/$name";
            $result = sys("mkdirat", AT_FDCWD, $folder, 0555);
            return $result if $result < 0 && $result != -EEXIST;
        }
    }
    return sys("mount", $none, $directory, 0, MS_REMOUNT_BIND | MS_RDONLY | MS_HARMLESS, 0);
}

# Mounts an opened directory at its path again, on top of what has been mounted there since.
sub mount_again {
    my ($fd, $path) = @_;
    my $here = ".";
    my $result = sys("fchdir", $fd);
    $result = sys("mount", $here, $path, 0, MS_BIND_REC, 0) if $result >= 0;
    sys("close", $fd);
    return $result;
}

sub is_below {
    my ($path, @directories) = @_;
    return scalar grep { lies_in($path, $_) } @directories;
}

# In two rounds, because a visible directory may contain a hidden one, and that one another visible one.
sub hide_and_show {
    my ($fd) = @_;
    my @shown = @{ $option{shown} };
    my $result = 0;
    for my $is_inside (0, 1) {
        for my $path (grep { !!is_below($_, @shown) == $is_inside } @{ $option{hidden} }) {
            $result = cover($path) if $result >= 0;
        }
        for my $path (grep { !!is_below($_, @shown) == $is_inside } @shown) {
            $result = mount_again($fd->{$path}, $path) if $result >= 0;
        }
    }
    return $result;
}

# Keeps all other flags of the mount, because a user namespace may only make them stricter.
sub make_readonly {
    my $none = "none";
    my $flags = MS_REMOUNT_BIND | MS_RDONLY | MS_HARMLESS & ~MS_NOEXEC;
    for my $mount_point (@_) {
        my $result = sys("mount", $none, $mount_point, 0, $flags, 0);
        $result = sys("mount", $none, $mount_point, 0, $flags | MS_NOEXEC, 0) if $result == -EPERM;
        return $result if $result < 0;
    }
    return 0;
}

# Makes all mounts of the options `hidden`, `shown` and `frozen`. Returns nothing, or the failed step and its errno.
sub protect_directories {
    my @hidden = @{ $option{hidden} };
    # A directory inside a hidden one is out of the command's reach.
    my @around = grep { !is_below($_, @hidden) } @hidden, @{ $option{frozen} };
    return if !@around;
    my $path = "\0" x PATH_MAX;
    my $before = open_working_directory();
    my $result = $before < 0 ? $before : sys("getcwd", $path, PATH_MAX);
    return ("directory", -$result) if $result < 0;
    $result = mount_protection(@around);
    return ("hide", -$result) if $result < 0;
    $path =~ s/\0.*//s;
    my @failure = reopen_working_directory($path, $before);
    sys("close", $before);
    return @failure;
}

# Enters the working directory again, because the old one may be below a new mount. Fails if the path now leads to
# another directory.
sub reopen_working_directory {
    my ($path, $before) = @_;
    my $to = $path;
    my $result = sys("chdir", $to);
    return ("hide", -$result) if $result < 0 && is_below($path, @{ $option{hidden} });
    return if $result >= 0 && grep { $_ eq $path } @{ $option{hidden} };
    $result = expect_directory($before) if $result >= 0;
    return $result < 0 ? ("directory", -$result) : ();
}

sub mount_protection {
    my @around = @_;
    my %fd;
    for my $path (@{ $option{shown} }, @{ $option{frozen} }) {
        my $opened = sys("openat", AT_FDCWD, $path, O_PATH | O_CLOEXEC);
        return $opened if $opened < 0;
        $fd{$path} = $opened;
    }
    my $result = pin_folders_around(@around);
    $result = hide_and_show(\%fd) if $result >= 0;
    for my $path (@{ $option{frozen} }) { $result = mount_again($fd{$path}, $path) if $result >= 0 }
    $result = make_readonly(@{ $option{frozen} }) if $result >= 0;
    return $result;
}

# Prevents the command from typing into a terminal that it shares with us: the shell that started Drover would run
# that input. Has no effect on kernels without seccomp filters, see native/README.md.
sub forbid_typing {
    my ($load, $jump, $return) = (0x20, 0x15, 0x06);
    my ($allow, $eperm) = (0x7fff0000, 0x00050001);
    my $instructions = join "", map { pack "S C C L", @$_ } (
        [$load, 0, 0, 0],
        (map { [$jump, 3 - $_, 0, (ioctl_numbers())[$_]] } 0 .. 2),
        [$return, 0, 0, $allow],
        [$load, 0, 0, 24],
        [$jump, 2, 0, 0x5412],    # TIOCSTI
        [$jump, 1, 0, 0x541c],    # TIOCLINUX
        [$return, 0, 0, $allow],
        [$return, 0, 0, $eperm],
    );
    my $program = pack "S x6 P", length($instructions) / 8, $instructions;
    sys("seccomp", SECCOMP_SET_MODE_FILTER, SECCOMP_SPEC_ALLOW, $program);
}

# The numbers of ioctl: ours, that of 32-bit programs, and that of x32 programs.
sub ioctl_numbers { return $number{read} == 0 ? (16, 54, 0x40000202) : (29, 54, 54) }

# Prevents programs with file capabilities from getting the right to unmount in our user namespace. The user does not
# have it.
sub forbid_unmounting { return sys("prctl", PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) }

# --- turning a forked child into the command ------------------------------------------------------

sub write_file {
    my ($path, $content) = @_;
    my $fd = sys("openat", AT_FDCWD, $path, 1 | O_CLOEXEC);
    return $fd if $fd < 0;
    my $written = sys("write", $fd, $content, length $content);
    sys("close", $fd);
    return $written;
}

sub set_limit {
    my ($which, $value) = @_;
    my $now = "\0" x 16;
    my $result = sys("prlimit64", 0, $which, 0, $now);
    return $result if $result < 0;
    my ($soft, $hard) = unpack "QQ", $now;
    # At the soft limit of CPU time, a process gets SIGXCPU, which names the cause. At the hard limit it gets SIGKILL,
    # which does not, so set the hard limit one second higher.
    my $later = $which == $resource{cpu} && $value != $hard ? 1 : 0;
    my $wanted = pack "QQ", $value, $value + $later;
    return sys("prlimit64", 0, $which, $wanted, 0);
}

# A program for another architecture also fails with ENOEXEC, but a shell cannot run it.
sub is_text {
    my ($path) = @_;
    open my $file, "<", $path or return 0;
    sysread $file, my $start, 256;
    return index($start, "\0") < 0;
}

# Drover renames the variables that would affect the programs that run before the command, and sets PERL_BADLANG to
# suppress complaints about an unknown locale. Undo both here and not in %ENV, because they must not affect this perl.
sub execve {
    my ($path, @arguments) = @_;
    my @variables = map { "$_=$ENV{$_}" } grep { !$option{restore_names} || $_ ne "PERL_BADLANG" } keys %ENV;
    if ($option{restore_names}) { s/^DROVER_KEEP_// for @variables }
    my $arguments = pack "(p)*", @arguments, undef;
    my $variables = pack "(p)*", @variables, undef;
    return sys("execve", $path, $arguments, $variables);
}

# Returns only on failure, with the step and its errno.
sub become_command {
    my ($inherited, $in_namespace, $report_to) = @_;
    my $result;
    if ($option{expected_directory} >= 0 && ($result = expect_directory($option{expected_directory})) < 0) {
        return ("directory", -$result);
    }
    if (defined $option{expected_mount} && ($result = expect_mount($option{expected_mount}, $option{expected_directory})) < 0) {
        return ("directory", -$result);
    }
    for my $file (@{ $option{cgroups} }) {
        return ("cgroup", -$result) if ($result = write_file($file, "0")) < 0;
    }
    # Only now, because the command enters its cgroup through one of these mounts.
    if ($in_namespace && ($result = make_readonly(@{ $option{readonly} })) < 0 && $option{level} ne "auto") {
        return ("readonly", -$result);
    }
    return ("merge", -$result) if $option{merge_output} && ($result = sys("dup3", 1, 2, 0)) < 0;
    for my $limit (@{ $option{limits} }) {
        return ("rlimit", -$result) if ($result = set_limit(@$limit)) < 0;
    }
    forbid_typing() if $in_namespace;
    # An inherited descriptor could lead into a hidden directory. The descriptors kept here are closed by exec, except
    # for those passed to the command.
    close_all_but(3, $option{status_fd}, $report_to, @{ $option{passed_fds} }, $option{directory_fd});
    # Perl ignores SIGFPE for itself.
    sys("rt_sigaction", SIGFPE, $default_action, 0, 8);
    sys("rt_sigaction", SIGCHLD, $inherited->{on_child}, 0, 8);
    sys("rt_sigprocmask", SIG_SETMASK, $inherited->{mask}, 0, 8);
    my ($path, $name, @arguments) = @{ $option{path_and_argv} };
    $result = execve($path, $name, @arguments);
    $result = execve("/bin/sh", "/bin/sh", $path, @arguments) if $result == -ENOEXEC && is_text($path);
    return ("exec", -$result);
}

# Forks a child that becomes the command. Returns its pid, or -errno.
sub start_command {
    my ($inherited, $in_namespace, $report_to) = @_;
    my $pid = sys("clone", SIGCHLD);
    if ($pid == 0) {
        sys("setpgid", 0, 0) if !$option{on_terminal};
        send_message($report_to, "failed", become_command($inherited, $in_namespace, $report_to));
        leave(NOT_STARTED);
    }
    # Both processes do this, so that the group exists before anyone signals it, whichever runs first.
    sys("setpgid", $pid, $pid) if $pid > 0 && !$option{on_terminal};
    return $pid;
}

# --- finding our descendants, at level group ------------------------------------------------------

# Returns the pids in one of the kernel's `children` files, or undef if there is no such file.
sub children_in {
    my ($path) = @_;
    open my $file, "<", $path or return undef;
    my $list = do { local $/; <$file> };
    return [split " ", $list];
}

sub own_children { return children_in("/proc/thread-self/children") }

# The kernel lists children under the thread that forked them. A process that has ended has none: they have become our
# children.
sub children_of {
    my ($pid) = @_;
    opendir my $tasks, "/proc/$pid/task" or return ();
    return map { @{ children_in("/proc/$pid/task/$_/children") || [] } } grep { !/^\./ } readdir $tasks;
}

sub descendants {
    my $found = own_children() or return undef;
    for (my $i = 0 ; $i < @$found ; $i++) { push @$found, children_of($found->[$i]) }
    return $found;
}

# --- supervising the command until none of its processes is left ----------------------------------

# With parent 0, we outlive it. Without the option, any parent is accepted.
sub die_with_parent {
    my ($signal) = @_;
    my $parent = $option{parent};
    return if defined $parent && $parent == 0;
    sys("prctl", PR_SET_PDEATHSIG, $signal, 0, 0, 0);
    leave(125) if defined $parent && getppid != $parent;
}

# Returns the next signal to act on. Skips signals from a terminal, which the kernel sends (code > 0), because the
# whole foreground group gets them, including the command. Also skips signals from inside the namespace: its processes
# may not control their pid 1.
sub next_signal {
    my ($in_namespace) = @_;
    while (1) {
        my $info = "\0" x 128;
        my $signal = sys("rt_sigtimedwait", $all_signals, $info, 0, 8);
        return SIGCHLD if $signal == SIGCHLD;
        my ($code, $sender) = unpack "x8 l x4 l", $info;
        return $signal if $signal > 0 && $code <= 0 && !($in_namespace && $sender != 0);
    }
}

# Fallback for kernels without lists of children: signals what a shell could reach.
sub signal_group {
    my ($family, $signal) = @_;
    return sys("kill", $option{on_terminal} ? $family->{command} : -$family->{command}, $signal) == 0;
}

sub signal_all {
    my ($family, $signal) = @_;
    return sys("kill", -1, $signal) if $family->{in_namespace};
    my $pids = descendants() or return signal_group($family, $signal);
    sys("kill", $_ + 0, $signal) for @$pids;
}

# Returns false if no process took the signal. At level `group`, this kills only our direct children. Their pids
# cannot have been reused, because we reap them, and their own children become ours when they die.
sub kill_children {
    my ($family) = @_;
    return sys("kill", -1, SIGKILL) == 0 if $family->{in_namespace};
    my $pids = own_children() or return signal_group($family, SIGKILL);
    return scalar grep { sys("kill", $_ + 0, SIGKILL) == 0 } @$pids;
}

# Reaps one child. Returns its pid, 0 if none has ended (with WNOHANG), or -ECHILD if there are no children.
sub reap {
    my ($family, $ending, $flags) = @_;
    my $pid = waitpid -1, $flags;
    return -ECHILD if $pid < 0;
    if ($pid == $family->{command}) {
        $ending->{command_exited} = 1;
        $ending->{wait_status} = $?;
    }
    elsif ($pid > 0 && ($? & 0x7f) == SIGKILL) {
        $ending->{leftovers}++;
    }
    return $pid;
}

# Returns false if no child is left. Children that ended on their own do not count as leftovers.
sub reap_dead {
    my ($family, $ending) = @_;
    my $pid;
    1 while ($pid = reap($family, $ending, WNOHANG)) > 0;
    $ending->{leftovers} = 0;
    return $pid != -ECHILD;
}

# Returns when no process is left, or none that we may kill.
sub kill_rest {
    my ($family, $ending) = @_;
    while (1) {
        my $reached = kill_children($family);
        my $pid = reap($family, $ending, $reached ? 0 : WNOHANG);
        if ($pid == 0) {
            my $left = own_children();
            $ending->{unkillable} = $left ? @$left : 1;
            return;
        }
        $pid = reap($family, $ending, WNOHANG) while $pid > 0;
        return if $pid == -ECHILD;
    }
}

# Returns a process's command line, with its arguments separated by spaces, or an empty string for a dead process.
# Replaces line breaks, because each would start a new line of the report.
sub read_name {
    my ($pid) = @_;
    open my $file, "<", "/proc/$pid/cmdline" or return "";
    read $file, my $name, NAME_BYTES - 1;
    $name =~ s/\0+\z//;
    $name =~ tr/\x00-\x1f\x7f/ /;
    return $name;
}

# Records the processes that are about to be killed, as many as fit.
sub name_leftovers {
    my ($family, $ending) = @_;
    my @pids = $family->{in_namespace} ? () : @{ descendants() || [] };
    if ($family->{own_proc} && opendir my $proc, "/proc") {
        @pids = grep { /^\d+\z/ && $_ > 1 } readdir $proc;
    }
    my @lines;
    for my $pid (@pids) {
        last if @lines == NAMED_MAX;
        my $name = read_name($pid);
        push @lines, "L $pid $name\n" if $name ne "";
    }
    $ending->{names} = join "", @lines;
}

sub supervise {
    my ($family) = @_;
    # If the command's own status never becomes known, it was killed.
    my $ending = { wait_status => SIGKILL, leftovers => 0, unkillable => 0 };
    my ($stopping, $reported) = (0, 0);
    while (1) {
        my $signal = next_signal($family->{in_namespace});
        if ($signal == SIGPWR) {
            kill_rest($family, $ending);
            $ending->{leftovers} = 0;
            return $ending;
        }
        if ($signal != SIGCHLD) {
            signal_all($family, $signal);
            $stopping ||= $asks_to_stop{$signal};
            next;
        }
        return $ending if !reap_dead($family, $ending);
        next if !$ending->{command_exited};
        # Processes that were asked to stop have until the hard kill to do so.
        if ($stopping) {
            send_ending($family->{report_to}, $ending) if exists $family->{report_to} && !$reported++;
            next;
        }
        if (!$option{keep_leftovers}) {
            name_leftovers($family, $ending);
            kill_rest($family, $ending);
        }
        return $ending;
    }
}

# --- level pid: we stay outside, our child is pid 1 of a new namespace, its child is the command ---

# In a new user namespace, maps our own user and group to themselves and nobody else.
sub map_identity {
    my ($user, $group) = @_;
    my $result = write_file("/proc/self/setgroups", "deny");
    $result = write_file("/proc/self/uid_map", "$user $user 1") if $result >= 0;
    $result = write_file("/proc/self/gid_map", "$group $group 1") if $result >= 0;
    return $result;
}

# Returns false if the host refuses it, as containers with a masked /proc do.
sub mount_own_proc {
    my ($proc, $target) = ("proc", "/proc");
    return sys("mount", $proc, $target, $proc, MS_HARMLESS, 0) >= 0;
}

sub level_name { return $_[0] ? "pid" : "pid-noproc" }

sub give_up {
    my ($channel, $step, $result) = @_;
    send_message($channel, "failed", $step, -$result);
    leave(125);
}

sub run_init {
    my ($inherited, $read_end, $write_end, $identity) = @_;
    # If outer died before this call, nobody reads the pipe, and sending `ready` fails.
    sys("prctl", PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    sys("close", $read_end);
    my $result = 0;
    if ($identity) {
        # The /proc files of a process that cannot be traced belong to root, including uid_map and gid_map.
        sys("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0);
        $result = map_identity(@$identity);
        sys("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    give_up($write_end, "map", $result) if $result < 0;
    $result = make_private();
    my $own_proc = $result >= 0 && mount_own_proc() ? 1 : 0;
    if (@{ $option{hidden} } || @{ $option{frozen} } || @{ $option{readonly} }) {
        give_up($write_end, "hide", $result) if $result < 0;
        if (my ($step, $error) = protect_directories()) { give_up($write_end, $step, -$error) }
        $result = forbid_unmounting() if $identity;
        give_up($write_end, "hide", $result) if $result < 0;
    }
    if ($option{directory_fd} >= 0) {
        $result = provide_working_directory($option{directory_fd}, $option{directory_mount}) if $result >= 0;
        give_up($write_end, "bind", $result) if $result < 0;
    }
    send_message($write_end, "ready", "", $own_proc) or leave(125);

    write_line($option{status_fd}, "I " . level_name($own_proc));
    my $command = start_command($inherited, 1, $write_end);
    give_up($write_end, "fork", $command) if $command < 0;
    close_all_but(0, $write_end);

    # Outer must learn how the command ended even if we are killed.
    my $ending = supervise({ command => $command, in_namespace => 1, own_proc => $own_proc, report_to => $write_end });
    send_ending($write_end, $ending);
    leave(0);
}

# Forks a child that is pid 1 of a new PID namespace. Returns its pid and the ids to map if it has a user namespace.
# Root does without one if the host allows that.
sub fork_init {
    my @identity = ($> + 0, $) + 0);
    my $pid = -EPERM;
    $pid = sys("clone", CLONE_NEWNS_NEWPID | SIGCHLD) if $> == 0;
    return ($pid, undef) if $pid >= 0;
    return (sys("clone", CLONE_NEWNS_NEWPID | CLONE_NEWUSER | SIGCHLD), \@identity);
}

sub wait_for_init {
    my ($init) = @_;
    while (1) {
        my $signal = next_signal(0);
        if ($signal == SIGCHLD) {
            return if waitpid($init, WNOHANG) == $init;
        }
        else {
            sys("kill", $init, $signal == SIGPWR ? SIGKILL : $signal);
        }
    }
}

# Returns only if the namespace cannot be created, with the step and its errno. Nothing has been started then.
sub run_in_namespace {
    my ($inherited) = @_;
    my ($result, $read_end, $write_end) = open_channel();
    return ("pipe", -$result) if $result < 0;
    my ($init, $identity) = fork_init();
    run_init($inherited, $read_end, $write_end, $identity) if $init == 0;
    sys("close", $write_end);
    if ($init < 0) {
        sys("close", $read_end);
        return ("unshare", -$init);
    }

    # Signals stay pending until init is ready: an init that gives up would lose them.
    my ($kind, $step, $number) = receive_message($read_end);
    if ($kind ne "ready") {
        waitpid $init, 0;
        sys("close", $read_end);
        return $kind ? ($step, $number) : ("init", ECHILD);
    }
    my $level = level_name($number);
    close_all_but(0, $option{status_fd}, $read_end);
    wait_for_init($init);

    # If init was killed, it has sent no message, unless the command had already ended.
    my $ending = { wait_status => SIGKILL, leftovers => 0, unkillable => 0 };
    if (my ($first, $last) = receive_ends($read_end)) {
        my ($kind, undef, @numbers) = @$last;
        if   ($kind eq "ended") { @$ending{qw(wait_status leftovers unkillable names)} = @numbers }
        else                    { $ending->{wait_status} = NOT_STARTED << 8 }
        fail(@$first[1, 2]) if is_failure($first, $ending->{wait_status});
    }
    report_ending($level, $ending);
    mirror($ending->{wait_status});
}

# --- level group: no namespace; we are the reaper of every descendant -----------------------------

# Limitation: if we are killed ourselves, our descendants stay alive.
sub run_in_group {
    my ($inherited) = @_;
    # Unlike SIGKILL, this signal lets us kill everything before we exit.
    die_with_parent(SIGPWR);
    my $result = sys("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    fail("subreaper", -$result) if $result < 0;
    ($result, my $read_end, my $write_end) = open_channel();
    fail("pipe", -$result) if $result < 0;

    write_line($option{status_fd}, "I group");
    my $command = start_command($inherited, 0, $write_end);
    fail("fork", -$command) if $command < 0;
    close_all_but(0, $option{status_fd}, $read_end);

    my $ending = supervise({ command => $command });
    if (!$ending->{unkillable} && (my ($first) = receive_ends($read_end))) {
        fail(@$first[1, 2]) if is_failure($first, $ending->{wait_status});
    }
    report_ending("group", $ending);
    mirror($ending->{wait_status});
}

# --- the command line and main --------------------------------------------------------------------

sub parse_value {
    my ($letter, $value) = @_;
    if (my $number = { p => "parent", f => "status_fd", w => "directory_fd", e => "expected_directory" }->{$letter}) {
        return 0 if $value !~ /^\d{1,9}\z/;
        $option{$number} = $value + 0;
    }
    elsif ($letter eq "d") {
        return 0 if $value !~ /^\d{1,9}\z/ || @{ $option{passed_fds} } == PASSED_MAX;
        push @{ $option{passed_fds} }, $value + 0;
    }
    elsif (my $text = { a => "expected_mount", b => "directory_mount" }->{$letter}) {
        $option{$text} = $value;
    }
    elsif ($letter eq "i") {
        return 0 if $value !~ /^(?:none|group|pid|auto)\z/;
        $option{level} = $value;
    }
    elsif ($letter eq "l") {
        return 0 if $value !~ /^(cpu|fsize|nofile)=(\d{1,19})\z/;
        push @{ $option{limits} }, [$resource{$1}, $2 + 0];
    }
    elsif (my $paths = { c => "cgroups", h => "hidden", s => "shown", o => "frozen", r => "readonly" }->{$letter}) {
        push @{ $option{$paths} }, $value;
    }
    else {
        return 0;
    }
    return 1;
}

# Sets every option up to the first invalid one, so that -f is known when the error is reported.
sub parse_options {
    my @words = @_;
    my %flag = (t => "on_terminal", m => "merge_output", k => "keep_leftovers", u => "restore_names");
    while (@words && $words[0] ne "--") {
        shift(@words) =~ /^-(.)\z/s or return 0;
        if ($flag{$1}) { $option{ $flag{$1} } = 1 }
        elsif (!@words || !parse_value($1, shift @words)) { return 0 }
    }
    shift @words;
    return 0 if @words < 2;
    $option{path_and_argv} = \@words;
    return 0 if $option{directory_fd} >= 0 && !defined $option{directory_mount};
    return 0 if defined $option{expected_mount} && $option{expected_directory} < 0;
    # Processes cannot outlive a PID namespace: they die with its pid 1.
    return 0 if $option{keep_leftovers} && $option{level} eq "pid";
    $option{level} = "group" if $option{keep_leftovers} && $option{level} eq "auto";
    return 1;
}

# Moves the status descriptor to a number that the command does not use. It is closed when the command starts.
sub hide_status_fd {
    return 1 if $option{status_fd} < 0;
    my $fd = sys("fcntl", $option{status_fd}, F_DUPFD_CLOEXEC, FIRST_HIGH_FD);
    return 0 if $fd < 0;
    sys("close", $option{status_fd}) if $option{status_fd} > 2;
    $option{status_fd} = $fd;
    return 1;
}

sub main {
    my $inherited = { mask => "\0" x 8, on_child => "\0" x 32 };
    if (!%number) {
        print STDERR "E usage ${\ENOSYS}\n";
        exit 125;
    }
    # First of all, block all signals. One that arrives early stays pending until there is a command to pass it on to.
    sys("rt_sigprocmask", SIG_SETMASK, $all_signals, $inherited->{mask}, 8);
    my $understood = parse_options(@ARGV);
    if (!hide_status_fd() || !$understood) {
        fail("usage", EINVAL, $option{status_fd} < 0 ? 2 : $option{status_fd});
    }
    # If SIGCHLD is ignored, the kernel reaps children itself and their status is lost.
    sys("rt_sigaction", SIGCHLD, $default_action, $inherited->{on_child}, 8);
    fail(become_command($inherited, 0, -1)) if $option{level} eq "none";
    # The command runs as the same user, and must not reach our descriptors through /proc. This does not apply to the
    # command itself, because executing a program resets it.
    sys("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0);
    run_in_group($inherited) if $option{level} eq "group";

    die_with_parent(SIGKILL);
    my @refused = run_in_namespace($inherited);
    # A process that replaces the working directory must not be able to lower the level.
    run_in_group($inherited) if $option{level} eq "auto" && $refused[0] ne "directory";
    fail(@refused);
}

# Strings are passed by address, so they must be variables, which the kernel may write to.
sub sys {
    my $name = shift;
    my $result = syscall $number{$name}, @_, (0) x (5 - @_);
    return $result == -1 ? -($! + 0) : $result;
}

# For the architecture of this perl, read from its ELF header. Empty if we do not know that architecture.
sub system_call_numbers {
    open my $perl, "<:raw", $^X or return ();
    sysread $perl, my $header, 20;
    my ($class, $machine) = unpack "x4 C x13 v", $header;
    return () if $class != 2;
    return (
        read => 0, write => 1, close => 3, fstat => 5, rt_sigaction => 13, rt_sigprocmask => 14, pwrite64 => 18,
        clone => 56, execve => 59, kill => 62, fcntl => 72, ftruncate => 77, getcwd => 79, chdir => 80,
        fchdir => 81, getrusage => 98, setpgid => 109,
        rt_sigtimedwait => 128, statfs => 137, fstatfs => 138, prctl => 157, statx => 332, mount => 165, exit_group => 231, openat => 257, mkdirat => 258, faccessat => 269,
        dup3 => 292, pipe2 => 293, prlimit64 => 302, seccomp => 317, close_range => 436,
    ) if $machine == 62;
    return (
        getcwd => 17, dup3 => 24, fcntl => 25, mkdirat => 34, mount => 40, statfs => 43, fstatfs => 44, ftruncate => 46, faccessat => 48, chdir => 49,
        fchdir => 50, openat => 56, close => 57, pipe2 => 59,
        read => 63, write => 64, pwrite64 => 68, fstat => 80, exit_group => 94, kill => 129, rt_sigaction => 134, rt_sigprocmask => 135,
        rt_sigtimedwait => 137, setpgid => 154, getrusage => 165, prctl => 167, clone => 220, statx => 291,
        execve => 221, prlimit64 => 261, seccomp => 277, close_range => 436,
    ) if $machine == 183;
    return ();
}
