// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/wake.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <map>
#include <string>

#include "tests/fakes/verbs/engine.h"
#include "tests/fakes/verbs/fabric.h"

namespace pccl::fake_verbs {

namespace {

constexpr uint64_t kIdleNs = 500'000'000;

struct WriteEnd {
    int descriptor;
    bool is_own;  // this process has the read end, too
};

// Write ends by number. The lock of the fabric guards it.
std::map<uint32_t, WriteEnd>& write_ends() {
    static auto* ends = new std::map<uint32_t, WriteEnd>;
    static pid_t owner = ::getpid();
    if (owner != ::getpid()) {
        owner = ::getpid();
        ends = new std::map<uint32_t, WriteEnd>;  // a child of fork() leaves its parent's alone
    }
    return *ends;
}

// Writes where the reader may have been killed: SIGPIPE is blocked, and taken away.
bool write_to_other(int descriptor, uint64_t record) {
    sigset_t pipe_set;
    sigset_t before;
    ::sigemptyset(&pipe_set);
    ::sigaddset(&pipe_set, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
    const bool has_reader = ::write(descriptor, &record, sizeof record) >= 0 || errno != EPIPE;
    if (!has_reader) {
        const timespec none{};
        ::sigtimedwait(&pipe_set, nullptr, &none);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return has_reader;
}

std::string wake_path(uint32_t number) {
    return fabric_folder() + "/wake." + std::to_string(number);
}

void* run_timer(void* /*unused*/) {
    Fabric& all = fabric();
    for (;;) {
        const uint32_t seen = all.tick.load();
        const uint64_t due = all.next_look.load();
        const uint64_t now = now_ns();
        if (due <= now) {
            const Lock lock;
            advance_waiting();
            continue;
        }
        const uint64_t pause = std::min(due - now, kIdleNs);
        const timespec limit{static_cast<time_t>(pause / 1'000'000'000),
                             static_cast<long>(pause % 1'000'000'000)};
        ::syscall(SYS_futex, &all.tick, FUTEX_WAIT, seen, &limit, nullptr, 0);
    }
    return nullptr;
}

}  // namespace

uint32_t make_wake(int* descriptor) {
    const uint32_t number = fabric().next_wake++;
    int ends[2] = {-1, -1};
    if (fabric_folder().empty()) {
        if (::pipe2(ends, O_CLOEXEC) != 0) return 0;
        ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
    } else {
        const std::string path = wake_path(number);
        ::unlink(path.c_str());
        if (::mkfifo(path.c_str(), 0666) != 0) return 0;
        ends[0] = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        ends[1] = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (ends[0] < 0 || ends[1] < 0) return 0;
    }
    *descriptor = ends[0];
    write_ends()[number] = {ends[1], true};
    return number;
}

void remove_wake(uint32_t number) {
    const auto found = write_ends().find(number);
    if (found != write_ends().end()) {
        ::close(found->second.descriptor);
        write_ends().erase(found);
    }
    if (!fabric_folder().empty()) ::unlink(wake_path(number).c_str());
}

void write_wake(uint32_t number, uint64_t record) {
    if (number == 0) return;
    auto found = write_ends().find(number);
    if (found == write_ends().end()) {
        if (fabric_folder().empty()) return;
        const int end = ::open(wake_path(number).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (end < 0) return;
        found = write_ends().emplace(number, WriteEnd{end, false}).first;
    }
    const int end = found->second.descriptor;
    if (found->second.is_own) {
        if (::write(end, &record, sizeof record) < 0)
            complain("an event is lost: its pipe is full");
    } else if (!write_to_other(end, record)) {
        ::close(end);
        write_ends().erase(found);
    }
}

void start_timer() {
    static pid_t started = 0;  // the lock of the fabric guards it
    if (started == ::getpid()) return;
    started = ::getpid();
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t timer{};
    if (::pthread_create(&timer, nullptr, run_timer, nullptr) == 0) ::pthread_detach(timer);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void wake_timers() {
    Fabric& all = fabric();
    all.tick.fetch_add(1);
    ::syscall(SYS_futex, &all.tick, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace pccl::fake_verbs
