// SPDX-License-Identifier: Apache-2.0

// Substitute for the kernels in builds without CUDA.
#include "csrc/kernels/launch.h"

namespace pccl::kernels {
namespace {

Status no_kernels() { return Status::unsupported("this build of pccl has no device kernels"); }

}  // namespace

Status launch_all_reduce(const Launch&, Stream) { return no_kernels(); }
Status launch_reduce_scatter(const Launch&, Stream) { return no_kernels(); }
Status launch_all_gather(const Launch&, Stream) { return no_kernels(); }
Status launch_all_to_all(const Launch&, Stream) { return no_kernels(); }
Status launch_broadcast(const Launch&, Stream) { return no_kernels(); }
Status launch_batch(const BatchLaunch&, Stream) { return no_kernels(); }
Status launch_large_batch(const LargeBatch&, Stream) { return no_kernels(); }
Status launch_pull_begin(const Pull&, Stream) { return no_kernels(); }
Status launch_pull_end(const Pull&, Stream) { return no_kernels(); }
Status launch_messages(const MessageLaunch&, Stream) { return no_kernels(); }
Status launch_host_messages(const HostMessageLaunch&, Stream) { return no_kernels(); }
Status launch_pairs(const PairsLaunch&, Stream) { return no_kernels(); }
Status launch_state_exchange(const ProgramLaunch&, Stream) { return no_kernels(); }
Status launch_ll128_trial(const Trial&, Stream) { return no_kernels(); }
Status launch_clock(const ClockLaunch&, Stream) { return no_kernels(); }
Status launch_program(const ProgramLaunch&, Stream) { return no_kernels(); }

}  // namespace pccl::kernels
