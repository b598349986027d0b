// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/programs/protocol_choice.h"

namespace pccl::device {
namespace {

using kernels::Protocol;

Protocol protocol_of(schedule::MessageProtocol wanted) {
    switch (wanted) {
        case schedule::MessageProtocol::kLL:
            return Protocol::kLL;
        case schedule::MessageProtocol::kLL128:
            return Protocol::kLL128;
        case schedule::MessageProtocol::kDirect:
            break;
    }
    return Protocol::kDirect;
}

/// Returns the protocol for schedules, which use neither staggered pushes nor copy engines.
Protocol protocol_of(Protocol preferred) {
    const bool is_known = preferred == Protocol::kLL || preferred == Protocol::kLL128;
    return is_known ? preferred : Protocol::kDirect;
}

ProtocolChoice fastest(const ProtocolQuestion& question) {
    const bool has_ll128 = question.ll128 == abi::LL128Trial::kWhole;
    const std::size_t chunk = question.chunk_bytes;
    const bool is_short = has_ll128
                              ? question.is_short && chunk <= question.thresholds.most_chunk_by_ll
                              : chunk <= question.thresholds.most_chunk_by_ll_without_ll128;
    if (question.suits_ll && is_short)
        return {Protocol::kLL, "its messages are short: each word carries its arrival flag"};
    if (has_ll128 && chunk <= question.thresholds.most_chunk_by_ll128)
        return {Protocol::kLL128,
                "its messages are longer than LL carries well: each line of 128 bytes carries one "
                "arrival flag"};
    ProtocolChoice direct{Protocol::kDirect,
                          "its messages are long: they lie in slots, with flags beside these"};
    if (question.ll128 == abi::LL128Trial::kTorn &&
        chunk <= question.thresholds.most_chunk_by_ll128)
        direct.obstacle =
            "LL128 is not used: its lines do not arrive whole between these GPUs, or "
            "one has no NVLinks";
    return direct;
}

/// Returns the obstacle to `protocol`; null where messages can use it.
const char* obstacle_to(Protocol protocol, const ProtocolQuestion& question) {
    if (protocol == Protocol::kLL && !question.suits_ll)
        return "ll was requested, but the message is too large for it";
    if (protocol == Protocol::kLL128 && question.ll128 != abi::LL128Trial::kWhole)
        return "ll128 was requested, but its lines do not arrive whole between these GPUs, or one "
               "has no "
               "NVLinks";
    return nullptr;
}

}  // namespace

ProtocolChoice choose_protocol(const ProtocolQuestion& question) {
    if (!question.preferred && !question.wanted) return fastest(question);
    const Protocol requested =
        question.preferred ? protocol_of(*question.preferred) : protocol_of(*question.wanted);
    if (const char* const obstacle = obstacle_to(requested, question)) {
        ProtocolChoice choice = fastest(question);
        choice.obstacle = obstacle;
        return choice;
    }
    return {requested, question.preferred ? "the group's options request this protocol"
                                          : "its capsule requests this protocol"};
}

}  // namespace pccl::device
