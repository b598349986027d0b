// One way to make a collective, and what the cost model says of it.
#pragma once

#include <string>
#include <string_view>

#include "csrc/collective/shm_algorithm.h"
#include "csrc/schedule/source.h"

namespace pccl {

/// What made a group take a way, first to last: the call or PCCL_ALGORITHM; a capsule that was
/// loaded for the size; what pccl tune measured; the predictions.
namespace chosen_by {
inline constexpr std::string_view kRequested = "request";
inline constexpr std::string_view kCapsule = "capsule";
inline constexpr std::string_view kTuning = "tuning";
inline constexpr std::string_view kPrediction = "prediction";
}  // namespace chosen_by

struct Prediction {
    schedule::SourcePtr source{};  // of a schedule over links; null: over shared memory
    int aggregation = 0;           // of its shape, where it has a choice
    ShmAlgorithm on_shm = ShmAlgorithm::kOneShot;
    double seconds = 0;
    // Over links, that may be late: of the rank that sends most, or, with a root, one after the
    // other where these are more, and where ranks take turns on cores.
    long long messages = 0;
    std::string busiest{};  // the link that ranks share most: "eth0 of node7, 1.25 GB/s"; or empty
    bool is_chosen = false;
    std::string_view chosen_by{};  // why, of the one that is; else empty

    /// As PCCL_ALGORITHM has it.
    [[nodiscard]] std::string_view algorithm() const {
        return source == nullptr ? to_string(on_shm) : source->name;
    }
    /// "shm" or "links".
    [[nodiscard]] std::string_view over() const { return source == nullptr ? "shm" : "links"; }
};

}  // namespace pccl
