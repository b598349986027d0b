#include "csrc/base/lookout.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pccl {

Lookout::Lookout(Options options)
    : options_(std::move(options)), thread_(options_.name, [this] { run(); }) {}

Lookout::~Lookout() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_one();
}

void Lookout::watch(Watched watched) {
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(watched));
    changed_.notify_one();
}

void Lookout::run() {
    if (options_.prepare) options_.prepare();
    std::vector<Watched> open;
    for (bool is_last = false; !is_last;) {
        is_last = await_look(open);
        std::erase_if(open, [is_last](const Watched& each) {
            const bool is_told = is_last || each.is_over();
            if (is_told) each.tell();
            return is_told;
        });
    }
}

bool Lookout::await_look(std::vector<Watched>& open) {
    std::unique_lock lock(mutex_);
    if (open.empty()) {
        changed_.wait(lock, [this] { return is_closed_ || !added_.empty(); });
    } else {
        changed_.wait_for(lock, options_.interval, [this] { return is_closed_; });
    }
    std::ranges::move(added_, std::back_inserter(open));
    added_.clear();
    return is_closed_;
}

}  // namespace pccl
