// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <pccl/status.h>
#include "csrc/base/text/text.h"

namespace pccl {
namespace {

StatusCode code_from_errno(int error) {
    switch (error) {
        case EINVAL:
            return StatusCode::kInvalidArgument;
        case ENOSYS:
        case EOPNOTSUPP:
        case EPERM:
        case EACCES:
            return StatusCode::kUnsupported;
        case ETIMEDOUT:
            return StatusCode::kTimeout;
        case ENOMEM:
        case EMFILE:
        case ENFILE:
        case ENOSPC:
        case ENOBUFS:
            return StatusCode::kResourceExhausted;
        default:
            return StatusCode::kUnavailable;
    }
}

/// Returns advice for the user where the system's own message lacks it.
std::string remedy(int error) {
    rlimit files{};
    if (error == EMFILE && ::getrlimit(RLIMIT_NOFILE, &files) == 0)
        return concat("; this process may have ", files.rlim_cur, " (ulimit -n)");
    if (error == ENFILE) return "; the limit is the system's (/proc/sys/fs/file-max)";
    return "";
}

}  // namespace

std::string_view to_string(StatusCode code) {
    switch (code) {
        case StatusCode::kOk:
            return "ok";
        case StatusCode::kInvalidArgument:
            return "invalid_argument";
        case StatusCode::kUnsupported:
            return "unsupported";
        case StatusCode::kUnavailable:
            return "unavailable";
        case StatusCode::kPeerLost:
            return "peer_lost";
        case StatusCode::kTimeout:
            return "timeout";
        case StatusCode::kMismatch:
            return "mismatch";
        case StatusCode::kAborted:
            return "aborted";
        case StatusCode::kResourceExhausted:
            return "resource_exhausted";
        case StatusCode::kInternal:
            return "internal";
    }
    return "unknown";
}

Status::Status(StatusCode code, std::string message, Rank peer)
    : detail_(code == StatusCode::kOk
                  ? nullptr
                  : std::make_shared<const Detail>(Detail{code, std::move(message), peer, {}})) {}

Status Status::invalid_argument(std::string message) {
    return {StatusCode::kInvalidArgument, std::move(message)};
}
Status Status::unsupported(std::string message) {
    return {StatusCode::kUnsupported, std::move(message)};
}
Status Status::unavailable(std::string message) {
    return {StatusCode::kUnavailable, std::move(message)};
}
Status Status::peer_lost(Rank peer, std::string message) {
    return {StatusCode::kPeerLost, std::move(message), peer};
}
Status Status::timeout(std::string message, Rank peer) {
    return {StatusCode::kTimeout, std::move(message), peer};
}
Status Status::mismatch(Rank peer, std::string message) {
    return {StatusCode::kMismatch, std::move(message), peer};
}
Status Status::aborted(std::string message) { return {StatusCode::kAborted, std::move(message)}; }
Status Status::resource_exhausted(std::string message) {
    return {StatusCode::kResourceExhausted, std::move(message)};
}
Status Status::internal(std::string message) { return {StatusCode::kInternal, std::move(message)}; }

Status Status::from_errno(int error, std::string_view what) {
    return {code_from_errno(error),
            concat(what, ": ", std::generic_category().message(error), remedy(error))};
}

const std::string& Status::message() const {
    static const std::string empty;
    return detail_ ? detail_->message : empty;
}

const PeerProcess& Status::process() const {
    static const PeerProcess unknown;
    return detail_ ? detail_->process : unknown;
}

Status Status::with_context(std::string_view context) const {
    return with_message(concat(context, ": ", message()));
}

Status Status::with_message(std::string message) const {
    if (is_ok()) return {};
    return Status(Detail{detail_->code, std::move(message), detail_->peer, detail_->process});
}

Status Status::with_peer(Rank peer) const {
    if (is_ok() || peer == kNoRank) return *this;
    return {code(), concat("rank ", peer, ": ", message()), peer};
}

Status Status::with_process(PeerProcess process) const {
    if (is_ok()) return {};
    return Status(Detail{detail_->code, detail_->message, detail_->peer, std::move(process)});
}

std::string Status::to_string() const {
    return is_ok() ? "ok" : concat(pccl::to_string(code()), ": ", message());
}

}  // namespace pccl
