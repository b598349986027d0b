#include "csrc/costs/partner.h"

#include <sys/resource.h>

namespace pccl::costs {

Partner::Partner() : thread_("pccl-costs", [this] { serve(); }) {}

Partner::~Partner() { is_over_.store(true); }

void Partner::serve() {
    for (;;) {
        spin_until([this] { return task_.load() != nullptr || is_over_.load(); });
        if (is_over_.load()) return;
        (*task_.load())();
        task_.store(nullptr);
    }
}

void Partner::end() {
    spin_until([this] { return task_.load() == nullptr; });
}

void Partner::run(const Task& task) {
    begin(task);
    end();
}

Status Partner::run_on(const sys::CoreSet& cores) {
    Status done;
    run([&] { done = sys::run_on(cores); });
    return done;
}

long Partner::interruptions() {
    long count = 0;
    run([&] { count = interruptions_of_this_thread(); });
    return count;
}

long interruptions_of_this_thread() {
    rusage usage{};
    return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace pccl::costs
