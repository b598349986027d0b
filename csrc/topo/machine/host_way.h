// SPDX-License-Identifier: Apache-2.0

// TCP cost between two hosts, measured by a group of ranks on both when it was created.
//
// The format is a line of text: "24.1 3.2 0.85 0 2026-11-27T21:40:03Z node7". Its fields are
// microseconds from a send until a polling receiver has the message, microseconds of the sender's
// own time, nanoseconds per byte, 1 if the network limits the byte rate or 0 if the ends may, the
// time of the measurement, and the other host.
#pragma once

#include <string>
#include <string_view>

#include <pccl/status.h>

namespace pccl::topo {

struct PCCL_API HostWay {
    std::string to;    // the other host
    std::string date;  // UTC
    double round = 0;  // seconds, like the next two
    double message = 0;
    double byte = 0;
    /// One connection uses the whole bandwidth of the network: ranks of a host share it.
    bool is_narrow = false;

    static constexpr std::size_t kMostBytes = 512;

    /// Returns the text for parse().
    [[nodiscard]] std::string text() const;
    /// Parses a line. kInvalidArgument contains the fault.
    [[nodiscard]] static Result<HostWay> parse(std::string_view text);

    friend bool operator==(const HostWay&, const HostWay&) = default;
};

}  // namespace pccl::topo
