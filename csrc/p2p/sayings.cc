#include "csrc/p2p/sayings.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "csrc/p2p/connection.h"

namespace pccl::p2p {

void Sayings::add(std::shared_ptr<Connection> to, PeerWord word) {
    const std::lock_guard lock(mutex_);
    sayings_.push_back({std::move(to), std::move(word)});
}

std::size_t Sayings::count_to(const Connection& peer) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(
        sayings_, [&peer](const Saying& each) { return each.to.get() == &peer; }));
}

bool Sayings::say() {
    const std::unique_lock saying(saying_, std::try_to_lock);
    if (!saying.owns_lock()) return false;
    std::vector<Saying> all;
    {
        const std::lock_guard lock(mutex_);
        all.swap(sayings_);
    }
    const std::size_t before = all.size();
    std::vector<const Connection*> full;
    std::erase_if(all, [&full](const Saying& each) {
        // Of one peer in their order; those of others do not wait for it.
        if (std::ranges::find(full, each.to.get()) != full.end()) return false;
        if (each.to->say(each.word).code() != StatusCode::kResourceExhausted) return true;
        full.push_back(each.to.get());
        return false;
    });
    const std::lock_guard lock(mutex_);
    const bool said = all.size() < before;
    sayings_.insert(sayings_.begin(), std::make_move_iterator(all.begin()),
                    std::make_move_iterator(all.end()));
    return said;
}

void Sayings::forget(const Connection& peer) {
    const std::lock_guard lock(mutex_);
    std::erase_if(sayings_, [&peer](const Saying& each) { return each.to.get() == &peer; });
}

}  // namespace pccl::p2p
