// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pccl {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError, kOff };

}  // namespace pccl
