// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/queues.h"
#include "tests/fakes/verbs/wake.h"

namespace pccl::fake_verbs {

namespace {

// Descriptors of the processes that this one has asked about.
struct KnownProcess {
    uint32_t generation;
    int descriptor;
};
KnownProcess known_processes[kMaxProcesses];
pid_t known_by = 0;

// The 22nd field of /proc/PID/stat: when the process began; 0 where there is none.
uint64_t start_time(pid_t pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    char text[1024];
    const ssize_t length = ::read(file, text, sizeof text - 1);
    ::close(file);
    if (length <= 0) return 0;
    text[length] = '\0';
    const char* at_field = std::strrchr(text, ')');
    for (int field = 2; at_field != nullptr && field < 22; ++field) {
        at_field = std::strchr(at_field + 1, ' ');
    }
    return at_field != nullptr ? std::strtoull(at_field, nullptr, 10) : 0;
}

// Whether it has ended, asked without a descriptor that is kept. A zombie has not, nor what cannot
// be found out.
bool has_ended(const SharedProcess& entry) {
    if (::kill(entry.pid, 0) != 0 && errno == ESRCH) return true;
    const uint64_t started = start_time(entry.pid);
    return started != 0 && started != entry.started;
}

// A descriptor of a process; -1 if it has ended, or where there is no descriptor left.
int open_process(const SharedProcess& entry) {
    const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, entry.pid, 0));
    if (descriptor < 0 || !has_ended(entry)) return descriptor;
    ::close(descriptor);
    return -1;
}

void close_known() {
    const pid_t self = ::getpid();
    if (known_by == self) return;
    known_by = self;  // a child of fork() has copies of its parent's descriptors
    for (KnownProcess& known : known_processes) {
        if (known.generation != 0 && known.descriptor >= 0) ::close(known.descriptor);
        known = {};
    }
}

}  // namespace

void lock_fabric(Fabric& all) {
    if (::pthread_mutex_lock(&all.mutex) == EOWNERDEAD) ::pthread_mutex_consistent(&all.mutex);
}

Index join_process(Fabric& all) {
    lock_fabric(all);
    const Index index = free_entry(all.processes, all.processes_end, kMaxProcesses);
    if (index != kNone) {
        SharedProcess& entry = all.processes[index];
        const uint32_t generation = entry.generation + 1;
        entry = {};
        entry.generation = generation;
        entry.pid = ::getpid();
        entry.started = start_time(entry.pid);
        entry.host = static_cast<int>(environment_number("FAKE_VERBS_HOST", 0));
        entry.memlock = environment_number("FAKE_VERBS_MEMLOCK", UINT64_MAX);
        entry.mr_limit = static_cast<uint32_t>(environment_number("FAKE_VERBS_MAX_MR", 65536));
        entry.qp_limit = static_cast<uint32_t>(environment_number("FAKE_VERBS_MAX_QP", 1024));
        entry.no_dmabuf = environment_number("FAKE_VERBS_DMABUF", 1) == 0;
        entry.guarded = environment_number("FAKE_VERBS_GUARD", 0) != 0;
        entry.used = true;
    }
    ::pthread_mutex_unlock(&all.mutex);
    return index;
}

bool is_alive(Index process) {
    if (process == this_process_index()) return true;
    const SharedProcess& entry = fabric().processes[process];
    if (!entry.used) return false;
    close_known();
    KnownProcess& known = known_processes[process];
    if (known.generation != entry.generation) {
        if (known.generation != 0 && known.descriptor >= 0) ::close(known.descriptor);
        known.generation = entry.generation;
        known.descriptor = open_process(entry);
    }
    if (known.descriptor < 0) return !has_ended(entry);
    pollfd ended{known.descriptor, POLLIN, 0};
    return ::poll(&ended, 1, 0) == 0;
}

void remove_ended_processes() {
    Fabric& all = fabric();
    for (Index process = 0; process < all.processes_end; ++process) {
        SharedProcess& entry = all.processes[process];
        if (!entry.used || !has_ended(entry)) continue;
        for (Index i = 0; i < all.qps_end; ++i) {
            if (all.qps[i].used && all.qps[i].process == process) free_qp(i);
        }
        for (Index i = 0; i < all.cqs_end; ++i) {
            if (all.cqs[i].used && all.cqs[i].process == process) free_cq(i);
        }
        for (Index i = 0; i < all.srqs_end; ++i) {
            if (all.srqs[i].used && all.srqs[i].process == process) free_srq(i);
        }
        for (Index i = 0; i < all.mrs_end; ++i) {
            if (all.mrs[i].process == process) all.mrs[i].used = false;
        }
        for (SharedRule& rule : all.rules) {
            if (rule.process == process && rule.rule.all_processes == 0) rule.used = false;
        }
        for (Index i = 0; i < all.contexts_end; ++i) {
            if (!all.contexts[i].used || all.contexts[i].process != process) continue;
            remove_wake(all.contexts[i].wake);
            all.contexts[i].used = false;
        }
        entry.used = false;
    }
}

}  // namespace pccl::fake_verbs
