// SPDX-License-Identifier: Apache-2.0

// Link program: one rank's part of a schedule, prepared to run over links.
//
// Ports replace (peer, channel) pairs, so that the executor looks up a link once an operation. Link
// programs hold no buffers; all operations of a shape share them.
#pragma once

#include <memory>
#include <vector>

#include <pccl/status.h>
#include "csrc/schedule/moved_blocks.h"
#include "csrc/schedule/source.h"

namespace pccl::comm {

inline constexpr int kNoPort = -1;

struct LinkStep {
    schedule::Action action = schedule::Action::kNop;
    schedule::Slices src;
    schedule::Slices dst;
    int from = kNoPort;  // index into LinkProgram::receive_ports
    int to = kNoPort;    // index into LinkProgram::send_ports
    std::vector<schedule::Dependency> after;
    /// Owners of the blocks of the moved chunks, if some lie in scratch; empty: this rank.
    schedule::MovedBlocks blocks{};
};

struct LinkProgram {
    bool swaps_operands = false;  // see ScheduleSource
    schedule::Shape shape;
    Rank rank = 0;  // the rank that runs it
    std::vector<std::vector<LinkStep>> lanes;
    std::vector<schedule::PeerPort> send_ports;
    std::vector<schedule::PeerPort> receive_ports;
    int scratch_chunks = 0;
    int longest_message = 1;               // chunks in the largest message
    bool has_a_link_for_each_step = true;  // for each step that sends or receives
    bool overwrites_output = false;        // with more than copies of the input
};

[[nodiscard]] Result<std::shared_ptr<const LinkProgram>> make_link_program(
    const schedule::ScheduleSource& source, const schedule::Shape& shape, Rank rank,
    const schedule::RankOrder& order = {});

}  // namespace pccl::comm
