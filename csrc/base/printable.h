// Text of strangers as a message may show it: one line that cannot disturb a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "csrc/base/export.h"

namespace pccl {

/// Returns the characters of `text`, which is UTF-8 or is not, up to `longest` bytes of it.
///
/// Blanks stand for white space, question marks for bytes that are no UTF-8, for control
/// characters (C1, too, which some terminals obey), for what turns the direction of text, and for
/// characters that nobody sees. A text that is cut ends with "...".
[[nodiscard]] PCCL_API std::string printable(std::string_view text, std::size_t longest);

}  // namespace pccl
