// SPDX-License-Identifier: Apache-2.0

// Text of strangers for messages: one line that cannot disturb a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <pccl/export.h>

namespace pccl {

/// Returns the characters of `text`, which need not be valid UTF-8, up to `longest` bytes.
///
/// Blanks replace white space. Question marks replace bytes that are not UTF-8, control characters
/// (C1, too, which some terminals obey), characters that change the direction of text, and
/// invisible characters. A text that is cut ends with "...".
[[nodiscard]] PCCL_API std::string printable(std::string_view text, std::size_t longest);

}  // namespace pccl
