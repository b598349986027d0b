// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/flight/flight_text.h"

#include <string_view>

#include "csrc/base/text.h"
#include "csrc/collective/fingerprint.h"

namespace pccl::runtime {
namespace {

std::string direction_of(const FlightEntry& entry) {
    const std::string_view verb = entry.kind == FlightKind::kSend ? "send to " : "receive from ";
    const Rank peer = entry.message.peer;
    return concat(verb, peer == kNoRank ? "any rank" : concat("rank ", peer));
}

std::string others_of(const FlightEntry& entry) {
    return entry.calls > 1 ? concat(" and ", entry.calls - 1, " more") : "";
}

}  // namespace

std::string describe(const FlightEntry& entry) {
    if (entry.kind == FlightKind::kCollective) return pccl::describe(entry.collective);
    return concat(direction_of(entry), " (tag ", entry.message.tag, ", ", entry.message.bytes,
                  " bytes)");
}

std::string describe_launch(const FlightEntry& entry) {
    if (entry.kind == FlightKind::kCollective)
        return concat(describe_call(entry.collective), others_of(entry));
    return concat(direction_of(entry), " (", entry.message.bytes, " bytes)", others_of(entry));
}

}  // namespace pccl::runtime
