// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/shrinking.h"

#include <algorithm>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"

namespace pccl::comm {

Status gone_on(Rank rank, const Shrinking& reported) {
    return Status(StatusCode::kUnavailable,
                  concat("rank ", rank, " has gone on without this one, in a group of ",
                         reported.staying, " that leaves out ", listed(reported.left_out)),
                  rank);
}

Status ShrinkState::begin(std::span<const Rank> left_out) {
    const std::lock_guard lock(mutex_);
    if (published_.stage == Shrinking::ShrinkStage::kDecided)
        return Status::invalid_argument("it has been shrunk: shrink the smaller group");
    if (is_under_way_) return Status::invalid_argument("another thread shrinks it");
    std::vector<Rank> back;
    for (const Rank rank : renounced_)
        if (std::ranges::find(left_out, rank) == left_out.end()) back.push_back(rank);
    if (!back.empty())
        return Status::invalid_argument(concat("leave out ", listed(back),
                                               ", too: this rank has confirmed that before, and "
                                               "others may have gone on without"));
    is_under_way_ = true;
    return Status::ok();
}

void ShrinkState::publish(const Shrinking& now) {
    const std::lock_guard lock(mutex_);
    published_ = now;
    is_under_way_ = now.stage != Shrinking::ShrinkStage::kNone;
}

void ShrinkState::renounce(std::span<const Rank> left_out) {
    const std::lock_guard lock(mutex_);
    renounced_.assign(left_out.begin(), left_out.end());
}

Shrinking ShrinkState::published() const {
    const std::lock_guard lock(mutex_);
    return published_;
}

std::vector<Rank> ShrinkState::renounced() const {
    const std::lock_guard lock(mutex_);
    return renounced_;
}

}  // namespace pccl::comm
