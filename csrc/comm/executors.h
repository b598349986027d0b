// What runs the collectives of a group, one at a time: made once, with the memory that they need.
#pragma once

#include <optional>

#include "csrc/comm/board/board_executor.h"
#include "csrc/comm/links/link_executor.h"

namespace pccl::comm {

struct Executors {
    LinkExecutor over_links;
    std::optional<BoardExecutor> over_board;  // of a group that has a board
};

}  // namespace pccl::comm
