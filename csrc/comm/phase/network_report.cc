// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/phase/network_report.h"

#include <algorithm>

#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"

namespace pccl::cluster {

std::string_view to_string(Ending ending) {
    switch (ending) {
        case Ending::kSwitched:
            return "switched";
        case Ending::kPrepared:
            return "prepared";
        case Ending::kRefused:
            return "refused";
        case Ending::kRolledBack:
            return "rolled back";
        case Ending::kDegraded:
            return "degraded";
    }
    return "unknown";
}

}  // namespace pccl::cluster

namespace pccl::comm {
namespace {

constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kLongestReason = 400;
constexpr std::size_t kMostSwitches = 1024;
constexpr std::size_t kMostSteps = 256;

void put(ByteWriter& out, const SwitchReport& each) {
    for (const std::string* text : {&each.name, &each.fault, &each.discarded, &each.startup})
        out.text(std::string_view(*text).substr(0, kLongestText));
    const std::size_t steps = std::min(each.steps.size(), kMostSteps);
    out.u32(static_cast<std::uint32_t>(steps));
    for (std::size_t i = 0; i < steps; ++i) {
        out.text(each.steps[i].step);
        out.i64(each.steps[i].took.count());
    }
}

std::string encode_with(const NetworkReport& report, std::size_t longest_reason,
                        std::size_t switches) {
    ByteWriter out;
    out.u8(static_cast<std::uint8_t>(report.outcome));
    out.status(report.reason, longest_reason);
    out.i64(report.total.count());
    out.i64(report.dark.count());
    out.text(std::string_view(report.unrecorded).substr(0, kLongestReason));
    out.u32(static_cast<std::uint32_t>(switches));
    for (std::size_t i = 0; i < switches; ++i) put(out, report.switches[i]);
    return out.take();
}

Status take(ByteReader& in, Duration& duration) {
    std::int64_t nanoseconds = 0;
    PCCL_TRY(in.i64(nanoseconds));
    duration = Duration(nanoseconds);
    return Status::ok();
}

Status take_count(ByteReader& in, std::size_t most, std::uint32_t& count) {
    PCCL_TRY(in.u32(count));
    if (count <= most) return Status::ok();
    return Status::invalid_argument(
        concat(count, " entries at byte ", in.offset(), ", at most ", most, " are possible"));
}

Status take(ByteReader& in, SwitchReport& each) {
    for (std::string* text : {&each.name, &each.fault, &each.discarded, &each.startup})
        PCCL_TRY(in.text(*text, kLongestText));
    std::uint32_t steps = 0;
    PCCL_TRY(take_count(in, kMostSteps, steps));
    for (std::uint32_t i = 0; i < steps; ++i) {
        StepDuration& step = each.steps.emplace_back();
        PCCL_TRY(in.text(step.step, kLongestText));
        PCCL_TRY(take(in, step.took));
    }
    return Status::ok();
}

}  // namespace

std::string encode(const NetworkReport& report, std::size_t longest) {
    const std::size_t switches = std::min(report.switches.size(), kMostSwitches);
    std::string whole = encode_with(report, longest / 2, switches);
    return whole.size() <= longest ? whole : encode_with(report, kLongestReason, 0);
}

Result<NetworkReport> decode_report(std::string_view bytes) {
    ByteReader in(bytes);
    NetworkReport report;
    std::uint8_t outcome = 0;
    std::uint32_t switches = 0;
    PCCL_TRY(in.u8(outcome));
    if (outcome > static_cast<std::uint8_t>(cluster::Ending::kDegraded))
        return Status::invalid_argument(concat("outcome ", int{outcome}, " of a switch"));
    report.outcome = static_cast<cluster::Ending>(outcome);
    PCCL_TRY(in.status(report.reason, kLongestText));
    PCCL_TRY(take(in, report.total));
    PCCL_TRY(take(in, report.dark));
    PCCL_TRY(in.text(report.unrecorded, kLongestText));
    PCCL_TRY(take_count(in, kMostSwitches, switches));
    for (std::uint32_t i = 0; i < switches; ++i) PCCL_TRY(take(in, report.switches.emplace_back()));
    PCCL_TRY(in.finish());
    return report;
}

}  // namespace pccl::comm
