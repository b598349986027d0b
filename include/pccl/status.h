// SPDX-License-Identifier: Apache-2.0

// Status and Result<T>: the results of every fallible function. No function of the library throws,
// but for access to the value of a failed Result.
//
// A code is chosen by the caller's next action, not by the origin of the fault. A Status that
// blames a peer carries its rank, so that nobody has to parse a message. An ok Status is one null
// pointer wide.
//
//     Result<Fd> open_it();
//     Status use_it() {
//         PCCL_ASSIGN_OR_RETURN(Fd fd, open_it());
//         PCCL_TRY(write_header(fd));
//         return Status::ok();
//     }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <pccl/export.h>
#include <pccl/types.h>

namespace pccl {

/// A code is chosen by the caller's next action. kMismatch covers ranks that disagree about one
/// operation, a rank that cannot take part in one as the others can, and a peer, switch or store
/// whose state or identity is not the expected one. The message names both sides.
enum class StatusCode {
    kOk,
    kInvalidArgument,    // the caller passed an invalid argument: correct the call
    kUnsupported,        // this build or this combination cannot do it: choose another
    kUnavailable,        // not here or not now: try elsewhere or later
    kPeerLost,           // a peer died, closed or broke the protocol: shrink or stop
    kTimeout,            // the deadline passed: the message names the missing rank
    kMismatch,           // two sides disagree (above): correct the program or the setting
    kAborted,            // abort was called
    kResourceExhausted,  // memory, descriptors, slots: free some or raise the bound
    kInternal,           // a bug of the library
};

/// Returns "ok", "invalid_argument", ...
[[nodiscard]] PCCL_API std::string_view to_string(StatusCode code);

/// Process of a rank, as far as it is determined.
struct PeerProcess {
    std::string host;      // name of its host; empty: unknown
    std::int64_t pid = 0;  // on that host; 0: unknown
};

/// Outcome of a call: a code, a message of one line, and the rank to blame if there is one. An
/// immutable value, cheap to copy; copies may be used by several threads.
class [[nodiscard]] PCCL_API Status {
   public:
    /// Makes an ok status.
    Status() = default;
    /// Makes a status; `code` is not kOk.
    Status(StatusCode code, std::string message, Rank peer = kNoRank);

    /// Returns an ok status.
    static Status ok() { return {}; }
    /// Returns a status of kInvalidArgument.
    static Status invalid_argument(std::string message);
    /// Returns a status of kUnsupported.
    static Status unsupported(std::string message);
    /// Returns a status of kUnavailable.
    static Status unavailable(std::string message);
    /// Returns a status of kPeerLost, which blames `peer`.
    static Status peer_lost(Rank peer, std::string message);
    /// Returns a status of kTimeout, which blames `peer`.
    static Status timeout(std::string message, Rank peer = kNoRank);
    /// Returns a status of kMismatch, which blames `peer`.
    static Status mismatch(Rank peer, std::string message);
    /// Returns a status of kAborted.
    static Status aborted(std::string message);
    /// Returns a status of kResourceExhausted.
    static Status resource_exhausted(std::string message);
    /// Returns a status of kInternal.
    static Status internal(std::string message);
    /// Returns a status with a code for errno, and the message "<what>: <strerror>".
    static Status from_errno(int error, std::string_view what);

    /// Returns whether the call succeeded.
    [[nodiscard]] bool is_ok() const { return detail_ == nullptr; }
    /// Returns the code; kOk when ok.
    [[nodiscard]] StatusCode code() const { return detail_ ? detail_->code : StatusCode::kOk; }
    /// Returns the message; empty when ok.
    [[nodiscard]] const std::string& message() const;
    /// Returns the rank to blame, or kNoRank.
    [[nodiscard]] Rank peer() const { return detail_ ? detail_->peer : kNoRank; }
    /// Returns the process of that rank, or of a refused connection; empty where it is not
    /// determined.
    [[nodiscard]] const PeerProcess& process() const;

    /// Returns the status with "<context>: " before its message; ok stays ok.
    [[nodiscard]] Status with_context(std::string_view context) const;
    /// Returns the status with another message, about the same rank.
    [[nodiscard]] Status with_message(std::string message) const;
    /// Returns the status with "rank <peer>: " before its message, which blames that rank; ok stays
    /// ok.
    [[nodiscard]] Status with_peer(Rank peer) const;
    /// Returns the status with the process of the rank that it blames.
    [[nodiscard]] Status with_process(PeerProcess process) const;
    /// Returns "peer_lost: rank 3 closed its connection"; "ok" when ok.
    [[nodiscard]] std::string to_string() const;

   private:
    struct Detail {
        StatusCode code;
        std::string message;
        Rank peer;
        PeerProcess process;
    };
    explicit Status(Detail detail) : detail_(std::make_shared<const Detail>(std::move(detail))) {}

    std::shared_ptr<const Detail> detail_;
};

/// Value of a successful call, or the Status of a failed one. Access to the value of a failed one
/// throws std::bad_variant_access: check is_ok() first.
template <typename T>
class [[nodiscard]] Result {
   public:
    /// Makes a successful result.
    Result(T content)
        : state_(std::in_place_index<0>, std::move(content)) {}  // NOLINT: implicit by design
    /// Makes a failed result; `status` is not ok.
    Result(Status status)
        : state_(std::in_place_index<1>, std::move(status)) {}  // NOLINT: implicit by design

    /// Returns whether there is a value.
    [[nodiscard]] bool is_ok() const { return state_.index() == 0; }
    /// Returns the value.
    [[nodiscard]] T& value() & { return std::get<0>(state_); }
    /// Returns the value.
    [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
    /// Returns the value of a temporary, to move from.
    [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
    /// Returns the value.
    [[nodiscard]] T& operator*() & { return value(); }
    /// Returns the value.
    [[nodiscard]] const T& operator*() const& { return value(); }
    /// Gives access to the value's members.
    [[nodiscard]] T* operator->() { return &value(); }
    /// Gives access to the value's members.
    [[nodiscard]] const T* operator->() const { return &value(); }

    /// Returns the error; ok where there is a value.
    [[nodiscard]] Status status() const { return is_ok() ? Status::ok() : std::get<1>(state_); }

   private:
    std::variant<T, Status> state_;
};

}  // namespace pccl

/// Implements PCCL_ASSIGN_OR_RETURN.
#define PCCL_CONCAT_INNER(a, b) a##b
/// Implements PCCL_ASSIGN_OR_RETURN.
#define PCCL_CONCAT(a, b) PCCL_CONCAT_INNER(a, b)

/// Returns the Status of the expression from the enclosing function unless it is ok.
#define PCCL_TRY(expression)                                                         \
    do {                                                                             \
        if (::pccl::Status pccl_try_status = (expression); !pccl_try_status.is_ok()) \
            return pccl_try_status;                                                  \
    } while (false)

/// Declares or assigns `target` from a Result, or returns its Status from the enclosing function.
#define PCCL_ASSIGN_OR_RETURN(target, expression) \
    PCCL_ASSIGN_OR_RETURN_INNER(PCCL_CONCAT(pccl_result_, __LINE__), target, expression)
/// Implements PCCL_ASSIGN_OR_RETURN.
#define PCCL_ASSIGN_OR_RETURN_INNER(result, target, expression) \
    auto result = (expression);                                 \
    if (!result.is_ok()) return result.status();                \
    target = std::move(result).value()
