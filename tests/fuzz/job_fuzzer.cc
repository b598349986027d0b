// SPDX-License-Identifier: Apache-2.0

// Hosts and jobs as ranks describe them to each other, and what `pccl topo --measure` keeps. What
// is accepted must come back equal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "csrc/topo/job/job.h"
#include "csrc/topo/machine/calibration.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace pccl::topo;  // NOLINT(google-build-using-namespace): one function
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    static_cast<void>(Calibration::parse(bytes));
    static_cast<void>(decode_host(bytes));
    const auto job = decode_job(bytes);
    if (!job.is_ok()) return 0;
    const auto again = decode_job(encode(*job));
    if (!again.is_ok() || again->digest() != job->digest()) std::abort();
    return 0;
}
