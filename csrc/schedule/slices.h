// SPDX-License-Identifier: Apache-2.0

// Operands of a step: lists of chunks of buffers.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>

namespace pccl::schedule {

enum class Buffer : std::uint8_t { kInput, kOutput, kScratch };

[[nodiscard]] PCCL_API std::string_view to_string(Buffer buffer);

/// `count` chunks from chunk `offset` on.
struct Slice {
    Buffer buffer = Buffer::kInput;
    int offset = 0;
    int count = 0;
    auto operator<=>(const Slice&) const = default;
};

/// List of slices that forms one run of chunks. A send gathers them and a receive scatters them.
/// Adjoining slices are merged, and empty ones are dropped.
class PCCL_API Slices {
   public:
    Slices() = default;
    Slices(const Slice& slice) { add(slice); }  // NOLINT: most lists are one slice
    Slices(Buffer buffer, int offset, int count) : Slices(Slice{buffer, offset, count}) {}
    Slices(std::initializer_list<Slice> slices) {
        for (const Slice& slice : slices) add(slice);
    }

    void add(const Slice& slice);

    [[nodiscard]] bool is_empty() const { return list_.empty(); }
    /// Returns the number of chunks, at most the largest int.
    [[nodiscard]] int count() const { return list_.size() == 1 ? list_[0].count : count_all(); }
    [[nodiscard]] std::size_t size() const { return list_.size(); }  // slices
    [[nodiscard]] const Slice& operator[](std::size_t index) const { return list_[index]; }
    [[nodiscard]] auto begin() const { return list_.begin(); }
    [[nodiscard]] auto end() const { return list_.end(); }
    auto operator<=>(const Slices&) const = default;

   private:
    [[nodiscard]] int count_all() const;

    std::vector<Slice> list_;
};

/// Returns "input[3+1], output[0+2]": slices as offset+count.
[[nodiscard]] PCCL_API std::string to_string(const Slices& slices);

/// Iterator over the chunks of a list, which must outlive it.
class ChunkWalk {
   public:
    explicit ChunkWalk(const Slices& slices) : slices_(slices) {}

    [[nodiscard]] bool has_next() const { return slice_ < slices_.size(); }
    /// Returns the next chunk as a slice. Requires has_next().
    Slice next() {
        const Slice& slice = slices_[slice_];
        const Slice chunk{slice.buffer, slice.offset + chunk_, 1};
        if (++chunk_ == slice.count) {
            ++slice_;
            chunk_ = 0;
        }
        return chunk;
    }

   private:
    const Slices& slices_;
    std::size_t slice_ = 0;
    int chunk_ = 0;
};

}  // namespace pccl::schedule
