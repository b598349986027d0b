// What TCP takes from one host to another, as a group of ranks on both found when it was made.
//
// A line of text: "24.1 3.2 0.85 0 2026-11-27T21:40:03Z node7": microseconds from a send until a
// receiver that looks has it, and of the sender's own time; nanoseconds a byte; 1 where the network
// is what holds a byte up, 0 where its ends may be; when it was measured, and the other host.
#pragma once

#include <string>
#include <string_view>

#include "csrc/base/status.h"

namespace pccl::topo {

struct PCCL_API HostWay {
    std::string to;    // the other host
    std::string date;  // UTC
    double round = 0;  // seconds, as what follows
    double message = 0;
    double byte = 0;
    /// One connection takes all that the network has: ranks of a host share it.
    bool is_narrow = false;

    static constexpr std::size_t kMostBytes = 512;

    /// What parse() takes.
    [[nodiscard]] std::string text() const;
    /// kInvalidArgument says what is wrong.
    [[nodiscard]] static Result<HostWay> parse(std::string_view text);

    friend bool operator==(const HostWay&, const HostWay&) = default;
};

}  // namespace pccl::topo
