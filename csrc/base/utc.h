// The date and time in words that people and files share.
#pragma once

#include <string>

#include "csrc/base/export.h"

namespace pccl {

/// Of milliseconds as wall_clock_ms() counts them, "2026-11-25T21:40:03Z"; empty where that is no
/// time. Later ones compare greater.
[[nodiscard]] PCCL_API std::string in_utc(long long milliseconds);
[[nodiscard]] PCCL_API std::string now_in_utc();

}  // namespace pccl
