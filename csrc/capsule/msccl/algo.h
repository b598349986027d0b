// The XML of MSCCL (github.com/microsoft/msccl), as it is written: an <algo> of <gpu>s, of <tb>s
// (thread blocks), of <step>s.
#pragma once

#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/source.h"
#include "csrc/sys/xml/xml_text.h"

namespace pccl::capsule::msccl {

/// Chunks of a buffer: "i", "o" or "s".
struct Span {
    schedule::Buffer buffer{};
    int offset = 0;
};

struct Step {
    pugi::xml_node node;  // for messages
    schedule::Action action{};
    Span src;
    Span dst;
    int count = 0;
    int after_block = -1;  // its id; -1: waits for none
    int after_step = -1;
};

struct ThreadBlock {
    int id = 0;
    Rank send = kNoRank;
    Rank recv = kNoRank;
    ChannelId channel = 0;
    std::vector<Step> steps;
};

struct Gpu {
    pugi::xml_node node;
    int scratch_chunks = 0;
    std::vector<ThreadBlock> blocks;
};

struct Algo {
    std::string name;
    std::string protocol;
    schedule::CollectiveKind kind{};
    Rank root = 0;
    int chunks = 1;  // of a block
    bool in_place = false;
    schedule::SizeRange sizes{};
    std::vector<Gpu> gpus;  // by rank
};

/// kInvalidArgument with file and line for what is no such XML, kUnsupported for what it says that
/// capsules cannot.
[[nodiscard]] Result<Algo> read_algo(const sys::XmlText& text, pugi::xml_node root);

}  // namespace pccl::capsule::msccl
