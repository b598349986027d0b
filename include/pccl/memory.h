// SPDX-License-Identifier: Apache-2.0

// Memory that sessions register for their peers, and the parts of it that a transfer moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>

namespace pccl::p2p {

struct ImportedMemory;

/// Identity of a session: the name that its user gives, and its incarnation. Sessions have no
/// ranks.
struct SessionId {
    /// Most characters of a name.
    static constexpr std::size_t kLongestName = 64;

    std::string name;  // as check_name() requires
    /// Random number, new for each session, so that the remains of a dead session are never
    /// mistaken for its successor's.
    std::uint64_t incarnation = 0;

    /// Compares name and incarnation.
    bool operator==(const SessionId&) const = default;
};

/// Returns kInvalidArgument unless the name has 1 to SessionId::kLongestName printable ASCII
/// characters without blanks.
[[nodiscard]] PCCL_API Status check_name(std::string_view name);

/// Registration of memory with a session, which makes it. Session::deregister_memory() or
/// Session::close() ends it; the session then drops the owner of the memory. Thread-safe.
class PCCL_API LocalMemory {
   public:
    LocalMemory(const LocalMemory&) = delete;
    LocalMemory& operator=(const LocalMemory&) = delete;
    virtual ~LocalMemory() = default;

    /// Returns the address of the first byte, on the host or on the GPU.
    [[nodiscard]] std::byte* data() const { return data_; }
    /// Returns the length in bytes.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    /// Returns the CUDA ordinal of the GPU that has the memory; -1: the host's memory.
    [[nodiscard]] int device() const { return device_; }
    /// Returns the descriptor for the peers' Session::import_memory(): below 256 bytes, the same on
    /// every call, without secrets.
    [[nodiscard]] virtual std::string serialised_descriptor() const = 0;

   private:
    friend class RegisteredMemory;
    LocalMemory(std::byte* data, std::size_t bytes, int device)
        : data_(data), bytes_(bytes), device_(device) {}

    std::byte* const data_;
    const std::size_t bytes_;
    const int device_;
};

/// Memory of a peer, as its descriptor states it. A plain value: the registration may have ended
/// meanwhile.
class PCCL_API RemoteMemory {
   public:
    /// Makes a handle, for the library: use Session::import_memory() or Session::fetch().
    explicit RemoteMemory(std::shared_ptr<const ImportedMemory> memory)
        : memory_(std::move(memory)) {}

    /// Returns the session with which it is registered.
    [[nodiscard]] const SessionId& owner() const;
    /// Returns the length in bytes.
    [[nodiscard]] std::uint64_t bytes() const;
    /// Returns whether a GPU has the memory.
    [[nodiscard]] bool is_gpu() const;
    /// Returns the internal descriptor, for the library.
    [[nodiscard]] const ImportedMemory& imported() const { return *memory_; }

   private:
    std::shared_ptr<const ImportedMemory> memory_;
};

/// Range of bytes of a memory.
struct Extent {
    std::uint64_t offset = 0;  // in bytes
    std::uint64_t bytes = 0;   // 0: an empty block
};

/// Blocks of equal length at equal distances.
struct StridedExtents {
    std::uint64_t base = 0;    // offset of the first block in bytes
    std::uint64_t bytes = 0;   // of each block
    std::uint64_t stride = 0;  // bytes from the start of one block to the start of the next
    std::uint64_t count = 0;   // number of blocks
};

/// Ordered list of blocks of one memory.
class PCCL_API Extents {
   public:
    /// Most blocks of a list.
    static constexpr std::uint64_t kMost = 1U << 30;

    /// Makes a list of strided blocks, which takes constant space.
    Extents(StridedExtents blocks) : blocks_(blocks) {}  // NOLINT: implicit by design
    /// Makes a list of any blocks, which may overlap.
    Extents(std::vector<Extent> blocks) : blocks_(std::move(blocks)) {}  // NOLINT: as above
    /// Makes a list of one block.
    Extents(const Extent& block)  // NOLINT: as above
        : Extents(StridedExtents{block.offset, block.bytes, 0, 1}) {}

    /// Returns the number of blocks.
    [[nodiscard]] std::uint64_t size() const;
    /// Returns null where the blocks are an explicit list.
    [[nodiscard]] const StridedExtents* strided() const {
        return std::get_if<StridedExtents>(&blocks_);
    }
    /// Returns a block; `index` is below size().
    [[nodiscard]] Extent operator[](std::uint64_t index) const {
        if (const auto* const run = strided()) return {run->base + index * run->stride, run->bytes};
        return std::get<std::vector<Extent>>(blocks_)[index];
    }
    /// Returns kInvalidArgument with the first block that exceeds a memory of `bytes` bytes, or
    /// where there are more than kMost blocks.
    [[nodiscard]] Status check_within(std::uint64_t bytes) const;

   private:
    std::variant<StridedExtents, std::vector<Extent>> blocks_;
};

/// Local side of a transfer of one block.
struct LocalExtent {
    std::shared_ptr<LocalMemory> memory;  // registered with the session that transfers
    Extent extent;                        // within it
};

/// Remote side of a transfer of one block.
struct RemoteExtent {
    RemoteMemory memory;  // of the peer
    Extent extent;        // within it
};

/// Transfer of many blocks, prepared once and posted any number of times. Blocks that are adjacent
/// on both sides are sent as one piece, a long block as several. Immutable, so thread-safe.
class PCCL_API Plan {
   public:
    /// Most bytes per piece. A posted piece can no longer be given up.
    static constexpr std::uint64_t kLongestPiece = 4 << 20;

    /// Local side of a plan.
    struct Local {
        std::shared_ptr<LocalMemory> memory;  // registered with the session that transfers
        Extents blocks;                       // within it
    };
    /// Remote side of a plan.
    struct Remote {
        RemoteMemory memory;  // of the peer
        Extents blocks;       // within it, as many and as long as the local ones
    };
    /// Makes a plan. `longest` is the most bytes per piece, 1 to kLongestPiece. Returns
    /// kInvalidArgument with the first block that is out of bounds or differs in length from its
    /// counterpart.
    static Result<std::shared_ptr<const Plan>> make(Local local, Remote remote,
                                                    std::uint64_t longest = kLongestPiece);

    /// Returns the number of blocks.
    [[nodiscard]] std::uint64_t size() const { return local_.blocks.size(); }
    /// Returns the bytes of all blocks.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// Returns the bytes of one block; `index` is below size().
    [[nodiscard]] std::uint64_t bytes_of(std::uint64_t index) const {
        return local_.blocks[index].bytes;
    }
    /// Returns the most bytes per piece.
    [[nodiscard]] std::uint64_t longest() const { return longest_; }
    /// Returns the local memory.
    [[nodiscard]] LocalMemory& local() const { return *local_.memory; }
    /// Returns the blocks of the local memory.
    [[nodiscard]] const Extents& local_blocks() const { return local_.blocks; }
    /// Returns the peer's memory.
    [[nodiscard]] const RemoteMemory& remote() const { return remote_.memory; }
    /// Returns the blocks of the peer's memory.
    [[nodiscard]] const Extents& remote_blocks() const { return remote_.blocks; }

   private:
    Plan(Local local, Remote remote, std::uint64_t longest);

    const Local local_;
    const Remote remote_;
    const std::uint64_t longest_;
    const std::uint64_t bytes_;
};

}  // namespace pccl::p2p
