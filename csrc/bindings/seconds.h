// Times as Python users write them: seconds, in floating point.
#pragma once

#include <chrono>
#include <optional>

namespace pccl::bindings {

inline std::chrono::milliseconds milliseconds_of(double seconds) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::duration<double>(seconds));
}

inline std::optional<std::chrono::milliseconds> timeout_of(std::optional<double> seconds) {
    if (!seconds) return std::nullopt;
    return milliseconds_of(*seconds);
}

}  // namespace pccl::bindings
