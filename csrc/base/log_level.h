#pragma once

namespace pccl {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError, kOff };

}  // namespace pccl
