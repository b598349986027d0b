#include "csrc/device/programs/protocol_choice.h"

namespace pccl::device {
namespace {

using kernels::Protocol;

Protocol protocol_of(schedule::MessageProtocol wanted) {
    switch (wanted) {
        case schedule::MessageProtocol::kWords:
            return Protocol::kWords;
        case schedule::MessageProtocol::kLines:
            return Protocol::kLines;
        case schedule::MessageProtocol::kDirect:
            break;
    }
    return Protocol::kDirect;
}

/// Schedules know neither turns nor engines.
Protocol protocol_of(Protocol preferred) {
    const bool is_known = preferred == Protocol::kWords || preferred == Protocol::kLines;
    return is_known ? preferred : Protocol::kDirect;
}

ProtocolChoice fastest(const ProtocolQuestion& question) {
    const bool has_lines = question.lines == abi::LineTrial::kWhole;
    const std::size_t chunk = question.chunk_bytes;
    const bool is_short = question.is_short && chunk <= question.thresholds.most_chunk_in_words;
    if (question.suits_words && (!has_lines || is_short))
        return {Protocol::kWords, "its messages are short: each word brings its arrival flag"};
    if (has_lines && chunk <= question.thresholds.most_chunk_in_lines)
        return {Protocol::kLines,
                "its messages are longer than words carry well: each line of 128 bytes brings one "
                "arrival flag"};
    ProtocolChoice direct{Protocol::kDirect,
                          "its messages are long: they lie in slots, with flags beside these"};
    if (question.lines == abi::LineTrial::kTorn && chunk <= question.thresholds.most_chunk_in_lines)
        direct.obstacle =
            "lines of 128 bytes are not used, for they do not come whole between these GPUs, or "
            "one has no NVLinks";
    return direct;
}

/// Null where messages can go by `protocol`.
const char* obstacle_to(Protocol protocol, const ProtocolQuestion& question) {
    if (protocol == Protocol::kWords && !question.suits_words)
        return "words were asked for, but this is too much for them";
    if (protocol == Protocol::kLines && question.lines != abi::LineTrial::kWhole)
        return "lines were asked for, but they do not come whole between these GPUs, or one has no "
               "NVLinks";
    return nullptr;
}

}  // namespace

ProtocolChoice choose_protocol(const ProtocolQuestion& question) {
    if (!question.preferred && !question.wanted) return fastest(question);
    const Protocol asked =
        question.preferred ? protocol_of(*question.preferred) : protocol_of(*question.wanted);
    if (const char* const obstacle = obstacle_to(asked, question)) {
        ProtocolChoice choice = fastest(question);
        choice.obstacle = obstacle;
        return choice;
    }
    return {asked, question.preferred ? "the group's options ask for this protocol"
                                      : "its capsule asks for this protocol"};
}

}  // namespace pccl::device
