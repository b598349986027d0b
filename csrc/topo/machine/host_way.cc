// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/machine/host_way.h"

#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"

namespace pccl::topo {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kNano = 1e-9;

}  // namespace

std::string HostWay::text() const {
    return concat(static_cast<float>(round / kMicro), " ", static_cast<float>(message / kMicro),
                  " ", static_cast<float>(byte / kNano), " ", is_narrow ? 1 : 0, " ", date, " ",
                  to);
}

Result<HostWay> HostWay::parse(std::string_view text) {
    if (text.size() > kMostBytes)
        return Status::invalid_argument(
            concat("a way between hosts of ", text.size(), " bytes; at most ", kMostBytes));
    const auto figure = [&text] { return number_in(next_word(text), 1e-6, 1e9); };
    const auto round = figure();
    const auto message = figure();
    const auto byte = figure();
    const auto narrow = number_in(next_word(text), 0, 1);
    const std::string_view date = next_word(text);
    const std::string_view to = next_word(text);
    if (!round || !message || !byte || !narrow || date.empty() || to.empty() ||
        !next_word(text).empty())
        return Status::invalid_argument(
            "a way between hosts is two times in microseconds, nanoseconds a byte, 0 or 1, a date "
            "and a host");
    return HostWay{.to = std::string(to),
                   .date = std::string(date),
                   .round = *round * kMicro,
                   .message = *message * kMicro,
                   .byte = *byte * kNano,
                   .is_narrow = *narrow == 1};
}

}  // namespace pccl::topo
