// SPDX-License-Identifier: Apache-2.0

// Progress of a rank from its group into a smaller one, as it answers requests in the old group
// (agreement.h explains the stages).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/crypto/sha256.h"

namespace pccl::comm {

struct Shrinking {
    enum class ShrinkStage : std::uint8_t {
        kNone,       // it is not shrinking the group
        kProposed,   // it proposes a list of ranks
        kReady,      // all proposals are equal; it accepts connections of the smaller group
        kConfirmed,  // all ranks are ready; it continues once all have confirmed
        kDoubtful,   // it has confirmed, but `lost` cannot: it continues only if another rank has
        kDecided,    // it has continued in the smaller group
    };
    /// Random id of a call, because a rank may call shrink again.
    using Call = std::array<std::uint8_t, 16>;
    static constexpr std::size_t kMostNamed = 64;

    ShrinkStage stage = ShrinkStage::kNone;
    Rank lost = kNoRank;
    Call call{};
    sys::Digest list{};  // of the remaining ranks
    sys::Digest pact{};  // of the list and the calls of all remaining ranks; set from kReady on
    int staying = 0;     // number of remaining ranks
    std::vector<Rank> left_out{};  // at most kMostNamed of the excluded ranks

    bool operator==(const Shrinking&) const = default;
};

/// Returns kUnavailable: `rank` has continued in a group without this rank.
[[nodiscard]] Status gone_on(Rank rank, const Shrinking& reported);

/// State of a group's shrinks, for the thread that shrinks it and for requests.
class ShrinkState {
   public:
    /// Starts a shrink. kInvalidArgument while another thread shrinks the group, after the group
    /// was shrunk, and if `left_out` lacks a rank that this rank has confirmed to exclude before.
    [[nodiscard]] Status begin(std::span<const Rank> left_out);
    /// Publishes the progress. ShrinkStage::kNone ends the shrink.
    void publish(const Shrinking& now);
    /// Excludes these ranks permanently, even if this shrink fails.
    void renounce(std::span<const Rank> left_out);

    [[nodiscard]] Shrinking published() const;
    [[nodiscard]] std::vector<Rank> renounced() const;

   private:
    mutable std::mutex mutex_;
    bool is_under_way_ = false;
    Shrinking published_;
    std::vector<Rank> renounced_;
};

}  // namespace pccl::comm
