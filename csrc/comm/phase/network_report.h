// SPDX-License-Identifier: Apache-2.0

// Report of a switch of phases: what the controller of a network's switches did, as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include <pccl/phases.h>
#include <pccl/status.h>

namespace pccl::comm {

struct StepDuration {
    std::string step{};
    Duration took{};
};

/// Part of one switch.
struct SwitchReport {
    std::string name{};
    std::string fault{};  // error of its last failed step; empty: none
    std::vector<StepDuration> steps{};
    std::vector<std::pair<int, int>> found{};  // circuits of the last reading: ingress, egress
    std::string discarded{};  // edits of others in its candidate that were discarded
    std::string startup{};    // "copied", "not copied" or the error; empty: it has no startup
};

struct NetworkReport {
    cluster::Ending outcome = cluster::Ending::kRefused;
    Status reason{};  // ok if the outcome is kSwitched or kPrepared
    Duration total{};
    Duration dark{};  // from the first commit to the last proof of light
    std::string
        unrecorded{};  // why the end is not in the audit log; empty: it is, or there is none
    std::vector<SwitchReport> switches{};

    /// Returns whether all switches did, or would have done, what was requested.
    [[nodiscard]] bool is_done() const {
        return outcome == cluster::Ending::kSwitched || outcome == cluster::Ending::kPrepared;
    }
};

/// Returns the report for other ranks in at most `longest` bytes (1 KiB or more): without the
/// circuits that were read, and without the switches if these do not fit.
[[nodiscard]] PCCL_API std::string encode(const NetworkReport& report, std::size_t longest);
/// Parses untrusted bytes; kInvalidArgument names the position.
[[nodiscard]] PCCL_API Result<NetworkReport> decode_report(std::string_view bytes);

}  // namespace pccl::comm
