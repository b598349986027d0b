// Ranks, chunks and nodes are numbered by int, places in containers by std::size_t.
#pragma once

#include <cstddef>

namespace pccl {

constexpr std::size_t at(int id) { return static_cast<std::size_t>(id); }

}  // namespace pccl
