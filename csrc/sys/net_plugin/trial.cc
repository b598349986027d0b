// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/net_plugin/trial.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "csrc/base/text/text.h"

namespace pccl::sys::net_plugin {
namespace {

constexpr Duration kBetweenLooks = std::chrono::milliseconds(1);

/// Page that both processes have at the same address, so that a pointer to a literal is enough.
class SharedStep final : public TrialStep {
   public:
    SharedStep()
        : page_(::mmap(nullptr, sizeof(Step), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0)) {
        if (is_mapped()) new (page_) Step{"dlopen"};
    }
    ~SharedStep() override {
        if (is_mapped()) ::munmap(page_, sizeof(Step));
    }
    SharedStep(const SharedStep&) = delete;
    SharedStep& operator=(const SharedStep&) = delete;

    [[nodiscard]] bool is_mapped() const { return page_ != MAP_FAILED; }
    void at(const char* step) override { static_cast<Step*>(page_)->store(step); }
    [[nodiscard]] const char* reached() const { return static_cast<Step*>(page_)->load(); }

   private:
    using Step = std::atomic<const char*>;
    void* page_;
};

/// The child leaves no core file, no output and no process behind.
void become_silent(pid_t parent) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT})
        std::signal(signal, SIG_DFL);
    sigset_t none_blocked;
    sigemptyset(&none_blocked);
    ::pthread_sigmask(SIG_SETMASK, &none_blocked, nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0) return;
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, stream);
}

/// Waits for the child; returns false where it has not ended, or another waiter took its state.
bool await_end(pid_t child, Deadline deadline, int& state) {
    for (;;) {
        const pid_t ended = ::waitpid(child, &state, WNOHANG);
        if (ended == child) return true;
        if (ended < 0 && errno != EINTR) return false;
        if (deadline.passed()) {
            ::kill(child, SIGKILL);
            while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
            }
            return false;
        }
        system_clock().sleep_for(kBetweenLooks);
    }
}

}  // namespace

Status run_trial(const std::function<void(TrialStep&)>& body, Deadline deadline) {
    SharedStep step;
    if (!step.is_mapped()) return Status::ok();
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) return Status::ok();
    if (child == 0) {
        become_silent(parent);
        // A plug-in that calls exit() leaves before the handlers of the parent run here, and one
        // that throws crashes, instead of going on in the parent's program.
        ::on_exit([](int status, void*) { ::_exit(status); }, nullptr);
        [&]() noexcept { body(step); }();
        ::_exit(0);
    }
    int state = 0;
    if (!await_end(child, deadline, state)) return Status::ok();
    if (WIFSIGNALED(state))
        return Status::unavailable(
            concat(step.reached(), " crashes (signal ", WTERMSIG(state), ")"));
    if (WEXITSTATUS(state) != 0)
        return Status::unavailable(
            concat(step.reached(), " ends the process (status ", WEXITSTATUS(state), ")"));
    return Status::ok();
}

}  // namespace pccl::sys::net_plugin
