// SPDX-License-Identifier: Apache-2.0

// Measurements of `pccl topo --measure` for the links of a machine, which replace constants.
//
// The format is lines of text. "memory 0 1 0.52 11.9": between cores of NUMA nodes 0 and 1, over
// shared memory, a message takes 0.52 us and further bytes 11.9 GB/s; "sockets 0 0 18 2.1": the
// same over TCP; "network eth0 node7 25 1.17": over that interface to the host of that name, with
// as many ranks as were there together; "gpus 0000:0d:00.0 0000:0e:00.0 9.1 378": copies from the
// first GPU to the second; "reduce 12.5": reduction speed in GB/s. Lines that start with # are
// comments.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/config.h"
#include "csrc/base/ids.h"

namespace pccl::topo {

enum class MeasuredLink { kMemory, kSockets };

struct LinkTimes {
    double latency = 0;    // seconds
    double bandwidth = 0;  // GB/s

    friend bool operator==(const LinkTimes&, const LinkTimes&) = default;
};

class PCCL_API Calibration {
   public:
    static constexpr std::size_t kMostBytes = 16 * kKiB;

    /// Parses a calibration. kInvalidArgument contains the line and its fault.
    [[nodiscard]] static Result<Calibration> parse(std::string_view text);

    [[nodiscard]] bool is_empty() const {
        return links_.empty() && networks_.empty() && gpus_.empty() && !reduce_;
    }
    /// Returns the times between two NUMA nodes, in either order; -1: any. Among several, the
    /// slowest; nullopt if none was measured.
    [[nodiscard]] std::optional<LinkTimes> between(MeasuredLink link, int a, int b) const;
    /// Returns the times to another host.
    [[nodiscard]] std::optional<LinkTimes> network(std::string_view interface,
                                                   std::string_view host) const;
    [[nodiscard]] bool has_gpus() const { return !gpus_.empty(); }
    /// Returns the times of copies from one GPU to another, by their bus ids.
    [[nodiscard]] std::optional<LinkTimes> gpus(std::string_view from, std::string_view to) const;
    /// Returns GB/s.
    [[nodiscard]] std::optional<double> reduce() const { return reduce_; }
    /// Returns the text for parse().
    [[nodiscard]] const std::string& text() const { return text_; }

   private:
    struct CalibrationLine {
        MeasuredLink link = MeasuredLink::kMemory;
        int a = 0;
        int b = 0;
        LinkTimes times;
    };
    struct NamedLine {
        std::string from;
        std::string to;
        LinkTimes times;
    };
    using NamedLines = std::vector<NamedLine>;
    [[nodiscard]] static std::optional<LinkTimes> find(const NamedLines& lines,
                                                       std::string_view from, std::string_view to);
    Status parse_line(std::string_view line);
    static Status parse_named(std::string_view line, std::string_view ends, NamedLines& into);

    std::string text_;
    std::vector<CalibrationLine> links_;
    NamedLines networks_;  // by interface and host
    NamedLines gpus_;      // by bus ids
    std::optional<double> reduce_;
};

/// Returns the path of the measurements of a machine with this digest; empty if the environment
/// sets no directory.
[[nodiscard]] PCCL_API std::string calibration_path(std::string_view digest,
                                                    const Config& config = process_config());
/// Loads the stored measurements; empty without a file. An unusable file gives a warning and an
/// empty result.
[[nodiscard]] PCCL_API Calibration load_calibration(std::string_view digest,
                                                    const Config& config = process_config());
/// Returns whether any measurement is stored; if not, the caller need not detect the machine to
/// look for one.
[[nodiscard]] PCCL_API bool has_calibrations(const Config& config = process_config());

}  // namespace pccl::topo
