// A collective over Python objects: which of its buffers each rank reads and writes.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "csrc/bindings/buffer.h"
#include "csrc/collective/collective.h"

namespace pccl::bindings {

/// Of calls that leave them out.
inline constexpr const char* kDefaultOp = "sum";
inline constexpr Rank kDefaultRoot = 0;
inline constexpr int kDefaultTag = 0;

/// Throws InvalidArgumentError where there is no such reduction.
[[nodiscard]] ReduceOp op_of(const pybind11::str& name);

/// A sum of each rank's elements times that rank's factor.
struct PremulSum {
    double factor;
};

/// Of collectives that reduce: in Python its name, or a PremulSum.
struct Reducing {
    ReduceOp op = ReduceOp::kSum;
    std::optional<double> factor{};  // of the elements that this rank gives
};

/// What every collective takes besides its buffers.
struct CallOptions {
    bool async_op = false;
    std::optional<double> timeout{};  // seconds
};

/// A collective but for its buffers.
struct CallKind {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    Rank root = kDefaultRoot;
    Reducing reducing{};
};

/// Blocks in memory that is kept from call to call. Reading arguments may run code of the user, and
/// so a call within a call: that has memory of its own.
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

class Call {
   public:
    Call(const CallKind& what, Rank rank, int size) : what_(what), rank_(rank), size_(size) {
        buffers_.stand_in_for_refused();
    }

    /// Takes the collective's buffers: `x` and `out` each one buffer, which is cut where it stands
    /// for blocks of all ranks, or a list. `out` is None where the result comes into `x`. Throws
    /// InvalidArgumentError and UnsupportedError.
    void bind(const pybind11::object& x, const pybind11::object& out);

    /// Valid as long as this.
    [[nodiscard]] Collective collective(std::string_view algorithm = {}) const;
    /// What is wrong with a buffer that is read-only, strided, or written twice; ok: none is. In
    /// its place the collective has memory of its own, and tells other ranks, which get an error
    /// unless they refuse one, too.
    [[nodiscard]] const Status& why_refused() const { return buffers_.why_refused(); }
    [[nodiscard]] CollectiveKind kind() const { return what_.kind; }
    /// What holds the memory.
    Buffers& buffers() { return buffers_; }

   private:
    void take(const pybind11::object& x, const pybind11::object& out);
    void refuse_out(const pybind11::object& out) const;
    void read(const pybind11::object& object);
    void write(const pybind11::object& object);
    void read_and_write(const pybind11::object& object);
    void give(const pybind11::object& object);
    void read_blocks(const pybind11::object& object) { add(*inputs_, object, Access::kRead); }
    void write_blocks(const pybind11::object& object);
    void add(std::vector<Block>& blocks, const pybind11::object& object, Access access);
    void cut(std::vector<Block>& blocks, Block whole) const;
    /// In place of the inputs, where the reduction has a factor.
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
