// A link program: one rank's part of a schedule, made ready to run over links.
//
// Ports replace (peer, channel) pairs, so that the executor looks a link up once an operation. Link
// programs hold no buffers and are shared by all operations of a shape.
#pragma once

#include <memory>
#include <vector>

#include "csrc/base/status.h"
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
    /// Whose blocks the chunks are that it moves, where some lie in scratch; empty: the own one's.
    schedule::MovedBlocks blocks{};
};

struct LinkProgram {
    bool swaps_operands = false;  // ScheduleSource
    schedule::Shape shape;
    Rank rank = 0;  // whose it is
    std::vector<std::vector<LinkStep>> lanes;
    std::vector<schedule::Port> send_ports;
    std::vector<schedule::Port> receive_ports;
    int scratch_chunks = 0;
    int longest_message = 1;               // chunks in the largest message
    bool has_a_link_for_each_step = true;  // of those that send or receive
    bool overwrites_output = false;        // with more than copies of the input
};

[[nodiscard]] Result<std::shared_ptr<const LinkProgram>> make_link_program(
    const schedule::ScheduleSource& source, const schedule::Shape& shape, Rank rank,
    const schedule::RankOrder& order = {});

}  // namespace pccl::comm
