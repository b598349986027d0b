// SPDX-License-Identifier: Apache-2.0

// A GPU in host threads, so that kernels run where there is none: a thread block is a thread of the
// host, and its threads are fibers that take turns. A fiber is left where it waits for its block
// and where it polls. Blocks run at once, as many as the launch has. Memory is the host's.
//
// What this shows: what kernels compute, where they read and write, and whether their waits end;
// under AddressSanitizer, whether they stay within memory; under ThreadSanitizer, whether accesses
// of threads, blocks and ranks are ordered by barriers and flags. What it cannot: how fast kernels
// are, and what is missing where the device orders less than C++ does.
#pragma once

#include <functional>

namespace pccl::emulator {

/// Runs body() as every thread of a grid; returns when all have ended. Whether each of them awaited
/// the launch ahead: on a GPU, who does not may come too early.
[[nodiscard]] bool run_grid(unsigned blocks, unsigned threads, const std::function<void()>& body);

/// Blocks of the largest grid that this thread has run since it last asked.
[[nodiscard]] unsigned take_most_blocks();

/// From now on `hook` is called, unless it is empty, before a kernel that this thread launches
/// loads a packet of a tensor: so that tests can hold it up there, and its block with it.
void call_before_packets(std::function<void()> hook);

/// Returns at once: here a launch ends before the next one begins.
void await_launch_ahead();

/// Calls the hook of who has launched the kernel.
void before_packet();

/// Lets the other threads of the calling thread's block go on.
void yield();
/// Waits for all threads of the block that have not ended. Whether all of them said true.
[[nodiscard]] bool meet(bool reported);
/// The same of the threads of the calling thread's warp.
[[nodiscard]] bool meet_warp(bool reported);

/// From now on LL128 lines come in pieces, as over links that cut stores up, or whole again.
void tear_ll128_lines(bool torn);
[[nodiscard]] bool tears_ll128_lines();

}  // namespace pccl::emulator
