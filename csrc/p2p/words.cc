#include "csrc/p2p/words.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pccl::p2p {
namespace {

bool speaks_in_vain(const std::shared_ptr<Task>& about) {
    return about != nullptr && about->has_failed();
}

}  // namespace

Result<bool> Words::send(transport::RmaLink& link, std::uint64_t posts) {
    bool sent = false;
    while (!waiting_.empty()) {
        Word& word = waiting_.front();
        if (!speaks_in_vain(word.about)) {
            PCCL_ASSIGN_OR_RETURN(const bool taken, link.notify(word.bytes));
            if (!taken) break;
            sent = true;
            word.posts = posts;
            sent_.push_back(std::move(word));
        }
        waiting_.pop_front();
    }
    return sent;
}

void Words::failed(std::uint64_t post) {
    const auto first =
        std::ranges::find_if(sent_, [post](const Word& word) { return word.posts > post; });
    waiting_.insert(waiting_.begin(), std::make_move_iterator(first),
                    std::make_move_iterator(sent_.end()));
    sent_.erase(first, sent_.end());
}

void Words::over(std::uint64_t post) {
    while (!sent_.empty() && sent_.front().posts <= post) sent_.pop_front();
}

}  // namespace pccl::p2p
