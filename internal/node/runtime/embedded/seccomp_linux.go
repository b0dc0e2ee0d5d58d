package embedded

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// allowedCalls are the system calls of the RuntimeDefault profile, by what they are for. What is not here answers EPERM: keyrings, modules,
// kexec, mounts, namespaces, tracing of others, bpf, io_uring, userfaultfd, clocks, swap, reboot, quotas, raw ports.
var allowedCalls = []string{
	// files
	`access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat
	fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstat fstatfs fsync ftruncate futimesat getcwd getdents
	getdents64 getxattr getxattrat lchown lgetxattr link linkat listxattr listxattrat llistxattr lremovexattr lseek lsetxattr lstat mkdir mkdirat mknod mknodat name_to_handle_at
	newfstatat open openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv removexattr removexattrat rename renameat renameat2 rmdir
	sendfile setxattr setxattrat splice stat statfs statx symlink symlinkat sync sync_file_range syncfs tee truncate umask unlink unlinkat utime utimensat utimes
	vmsplice write writev cachestat statmount listmount file_getattr`,
	// asynchronous waiting
	`epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 fanotify_mark inotify_add_watch inotify_init inotify_init1
	inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit poll ppoll pselect6 select signalfd signalfd4 timerfd_create timerfd_gettime
	timerfd_settime`,
	// memory
	`brk get_mempolicy madvise map_shadow_stack memfd_create memfd_secret mincore mlock mlock2 mlockall mmap mprotect mremap mseal msync munlock munlockall munmap
	pkey_alloc pkey_free pkey_mprotect process_madvise process_mrelease remap_file_pages`,
	// processes and threads
	`arch_prctl capget capset execve execveat exit exit_group fork futex futex_requeue futex_wait futex_waitv futex_wake get_robust_list get_thread_area getcpu getegid
	geteuid getgid getgroups getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit getrusage getsid gettid getuid kill membarrier modify_ldt pause
	pidfd_getfd pidfd_open pidfd_send_signal prctl prlimit64 process_vm_readv process_vm_writev ptrace restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask
	rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
	sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp set_robust_list
	set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setuid sigaltstack
	tgkill tkill vfork wait4 waitid landlock_add_rule landlock_create_ruleset landlock_restrict_self uretprobe riscv_flush_icache`,
	// talking to others
	`accept accept4 bind connect getpeername getsockname getsockopt listen mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv
	msgsnd pipe pipe2 recvfrom recvmmsg recvmsg semctl semget semop semtimedop sendmmsg sendmsg sendto setsockopt shmat shmctl shmdt shmget shutdown socketpair ioctl`,
	// time and the system
	`alarm clock_getres clock_gettime clock_nanosleep getitimer getrandom gettimeofday nanosleep setitimer sysinfo time timer_create timer_delete
	timer_getoverrun timer_gettime timer_settime times uname adjtimex clock_adjtime ioprio_get ioprio_set`,
}

// callsOfCapability are allowed in addition to those who hold a capability that makes the calls their business anyway.
var callsOfCapability = map[string]string{
	"CAP_DAC_READ_SEARCH": `open_by_handle_at`,
	"CAP_SYS_ADMIN": `bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie lsm_get_self_attr lsm_list_modules lsm_set_self_attr mount mount_setattr
	move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog umount umount2 unshare`,
	"CAP_SYS_BOOT":       `reboot`,
	"CAP_SYS_CHROOT":     `chroot`,
	"CAP_SYS_MODULE":     `delete_module finit_module init_module`,
	"CAP_SYS_PACCT":      `acct`,
	"CAP_SYS_PTRACE":     `kcmp`,
	"CAP_SYS_RAWIO":      `ioperm iopl`,
	"CAP_SYS_TIME":       `clock_settime clock_settime64 settimeofday stime`,
	"CAP_SYS_TTY_CONFIG": `vhangup`,
	"CAP_SYS_NICE":       `mbind migrate_pages move_pages set_mempolicy set_mempolicy_home_node`,
	"CAP_SYSLOG":         `syslog`,
	"CAP_BPF":            `bpf`,
	"CAP_PERFMON":        `perf_event_open`,
}

// namespaceFlags are the flags of clone that would make a namespace.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// nativeArch is the only architecture whose calls a filter lets through: a second one doubles the time that every start takes to
// compile the filter. Programs of another word size do not run under RuntimeDefault.
var nativeArch = map[string]specs.Arch{"amd64": specs.ArchX86_64, "arm64": specs.ArchAARCH64, "riscv64": specs.ArchRISCV64, "s390x": specs.ArchS390X}

// runtimeDefault is the RuntimeDefault profile for a process with these capabilities.
func runtimeDefault(capabilities []string) *specs.LinuxSeccomp {
	denied, unknown := uint(unix.EPERM), uint(unix.ENOSYS)
	var allowed []string
	for _, group := range allowedCalls {
		allowed = append(allowed, strings.Fields(group)...)
	}
	admin := slices.Contains(capabilities, "CAP_SYS_ADMIN")
	for capability, calls := range callsOfCapability {
		if slices.Contains(capabilities, capability) {
			allowed = append(allowed, strings.Fields(calls)...)
		}
	}
	slices.Sort(allowed)
	profile := &specs.LinuxSeccomp{
		DefaultAction: specs.ActErrno, DefaultErrnoRet: &denied,
		Syscalls: []specs.LinuxSyscall{
			{Names: slices.Compact(allowed), Action: specs.ActAllow},
			// AF_VSOCK (40) reaches the hypervisor past every network policy.
			{Names: []string{"socket"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Index: 0, Value: unix.AF_VSOCK, Op: specs.OpNotEqual}}},
		},
	}
	for _, persona := range []uint64{0x0, 0x0008, 0x20000, 0x20008, 0xffffffff} {
		profile.Syscalls = append(profile.Syscalls, specs.LinuxSyscall{Names: []string{"personality"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: persona, Op: specs.OpEqualTo}}})
	}
	if !admin {
		// The flags of clone3 are in memory, where a filter cannot see them: without the call the C library uses clone.
		profile.Syscalls = append(profile.Syscalls,
			specs.LinuxSyscall{Names: []string{"clone3"}, Action: specs.ActErrno, ErrnoRet: &unknown},
			specs.LinuxSyscall{Names: []string{"clone"}, Action: specs.ActAllow,
				Args: []specs.LinuxSeccompArg{{Index: 0, Value: namespaceFlags, ValueTwo: 0, Op: specs.OpMaskedEqual}}})
	}
	if arch, ok := nativeArch[runtime.GOARCH]; ok {
		profile.Architectures = []specs.Arch{arch}
	}
	return profile
}

// seccomp gives the filter that a container asks for; nil is none.
func (r *Runtime) seccomp(context *cri.LinuxContainerSecurityContext, capabilities []string) (*specs.LinuxSeccomp, error) {
	if context.GetPrivileged() || context.GetSeccomp() == nil {
		return nil, nil
	}
	switch context.Seccomp.ProfileType {
	case cri.SecurityProfile_Unconfined:
		return nil, nil
	case cri.SecurityProfile_RuntimeDefault:
		return runtimeDefault(capabilities), nil
	}
	// The agent has put its own root before the profile's path.
	path, err := filepath.EvalSymlinks(context.Seccomp.LocalhostRef)
	if err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	if root, err := filepath.EvalSymlinks(r.config.SeccompRoot); err != nil || !strings.HasPrefix(path, root+"/") {
		return nil, fmt.Errorf("seccomp profile %s is not below %s", context.Seccomp.LocalhostRef, r.config.SeccompRoot)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	profile := &specs.LinuxSeccomp{}
	if err := json.Unmarshal(text, profile); err != nil {
		return nil, fmt.Errorf("seccomp profile %s: %w", path, err)
	}
	return profile, nil
}
