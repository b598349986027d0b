// SPDX-License-Identifier: Apache-2.0

// One algorithm for a collective, with its prediction by the cost model.
#pragma once

#include <string>
#include <string_view>

#include "csrc/collective/shm_algorithm.h"
#include "csrc/schedule/source.h"

namespace pccl {

/// Reasons for a choice, in order of precedence: the call or PCCL_ALGORITHM; a capsule that was
/// loaded for the size; a measurement of pccl tune; the predictions.
namespace chosen_by {
inline constexpr std::string_view kRequested = "request";
inline constexpr std::string_view kCapsule = "capsule";
inline constexpr std::string_view kTuning = "tuning";
inline constexpr std::string_view kPrediction = "prediction";
}  // namespace chosen_by

struct Prediction {
    schedule::SourcePtr source{};  // schedule over links; null: over shared memory
    int aggregation = 0;           // of its shape, if there is a choice
    ShmAlgorithm on_shm = ShmAlgorithm::kOneShot;
    double seconds = 0;
    // Number of messages over links that may be delayed: those of the rank that sends most. With a
    // root over sockets, it is the longest chain of messages if that is more, or if ranks share
    // cores.
    long long messages = 0;
    std::string busiest{};  // the link that most ranks share: "eth0 of node7, 1.25 GB/s"; or empty
    bool is_chosen = false;
    std::string_view chosen_by{};  // the reason, if it is chosen; otherwise empty

    /// Returns the name for PCCL_ALGORITHM.
    [[nodiscard]] std::string_view algorithm() const {
        return source == nullptr ? to_string(on_shm) : source->name;
    }
    /// Returns "shm" or "links".
    [[nodiscard]] std::string_view over() const { return source == nullptr ? "shm" : "links"; }
};

}  // namespace pccl
