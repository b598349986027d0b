// SPDX-License-Identifier: Apache-2.0

// A collective over Python objects: the buffers that each rank reads and writes.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "csrc/bindings/buffer.h"
#include "csrc/collective/collective.h"

namespace pccl::bindings {

/// Defaults of optional arguments.
inline constexpr const char* kDefaultOp = "sum";
inline constexpr Rank kDefaultRoot = 0;
inline constexpr int kDefaultTag = 0;

/// Throws InvalidArgumentError for an unknown reduction.
[[nodiscard]] ReduceOp op_of(const pybind11::str& name);

/// A sum in which each rank's elements are multiplied by that rank's factor.
struct PremulSum {
    double factor;
};

/// Reduction of a collective: in Python its name, or a PremulSum.
struct Reducing {
    ReduceOp op = ReduceOp::kSum;
    std::optional<double> factor{};  // for this rank's elements
};

/// Arguments of every collective besides its buffers.
struct CallOptions {
    bool async_op = false;
    std::optional<double> timeout{};  // in seconds
};

/// Description of a collective without its buffers.
struct CallKind {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    Rank root = kDefaultRoot;
    Reducing reducing{};
};

/// Blocks in memory that is reused from call to call. Reading arguments may run users' code, which
/// may make a nested call: a nested call has memory of its own.
class KeptBlocks {
   public:
    enum class Side : std::size_t { kInputs, kOutputs };

    explicit KeptBlocks(Side side);
    ~KeptBlocks();
    KeptBlocks(const KeptBlocks&) = delete;
    KeptBlocks& operator=(const KeptBlocks&) = delete;

    std::vector<Block>& operator*() { return blocks_; }
    [[nodiscard]] const std::vector<Block>& operator*() const { return blocks_; }

   private:
    const Side side_;
    std::vector<Block> blocks_;
};

class BufferCall {
   public:
    BufferCall(const CallKind& what, Rank rank, int size) : what_(what), rank_(rank), size_(size) {
        buffers_.stand_in_for_refused();
    }

    /// Binds the buffers. `x` and `out` are each one buffer, which is split where it holds the
    /// blocks of all ranks, or a list. `out` is None where the result goes into `x`. Throws
    /// InvalidArgumentError and UnsupportedError.
    void bind(const pybind11::object& x, const pybind11::object& out);

    /// Returns the collective. Valid during the lifetime of this BufferCall.
    [[nodiscard]] Collective collective(std::string_view algorithm = {}) const;
    /// Returns the error of a buffer that is read-only, strided, written twice, or needs a copy for
    /// which there is no memory; ok: there is none. The collective replaces such a buffer by memory
    /// of its own, and notifies the other ranks, which fail unless they refuse a buffer, too.
    [[nodiscard]] const Status& why_refused() const { return buffers_.why_refused(); }
    [[nodiscard]] CollectiveKind kind() const { return what_.kind; }
    /// Returns the owner of the memory.
    Buffers& buffers() { return buffers_; }

   private:
    void take(const pybind11::object& x, const pybind11::object& out);
    void refuse_out(const pybind11::object& out) const;
    void read(const pybind11::object& object);
    void write(const pybind11::object& object);
    void read_and_write(const pybind11::object& object);
    void add_root_block(const pybind11::object& object);
    void read_blocks(const pybind11::object& object) { add(*inputs_, object, Access::kRead); }
    void write_blocks(const pybind11::object& object);
    void add(std::vector<Block>& blocks, const pybind11::object& object, Access access);
    void cut(std::vector<Block>& blocks, Block whole) const;
    /// Replaces all blocks by blocks of one element, where there is no memory for more: the other
    /// ranks get the refusal with the first of them.
    void shorten_blocks();
    /// Replaces the inputs by their products where the reduction has a factor.
    void premultiply();

    const CallKind what_;
    const Rank rank_;
    const int size_;
    Buffers buffers_;
    KeptBlocks inputs_{KeptBlocks::Side::kInputs};
    KeptBlocks outputs_{KeptBlocks::Side::kOutputs};
    bool has_lists_ = false;
};

}  // namespace pccl::bindings

template <>
struct pybind11::detail::type_caster<pccl::bindings::Reducing> {
    PYBIND11_TYPE_CASTER(pccl::bindings::Reducing, const_name("str | PremulSum"));

    bool load(handle given, bool /*convert*/) {
        if (isinstance<str>(given)) {
            value.op = pccl::bindings::op_of(reinterpret_borrow<str>(given));
            return true;
        }
        if (!isinstance<pccl::bindings::PremulSum>(given)) return false;
        value.factor = given.cast<const pccl::bindings::PremulSum&>().factor;
        return true;
    }
};
