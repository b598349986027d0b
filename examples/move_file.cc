// SPDX-License-Identifier: Apache-2.0

// Moves a file between two processes with pccl::p2p: one offers it, the other reads it out of the
// first one's memory. In two shells, of one host or two:
//
//     move_file offer holiday.mp4 handover
//     move_file fetch handover copy.mp4      # once "handover" is here; it holds a secret
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pccl/session.h>

namespace {

using pccl::Deadline;
using pccl::Result;
using pccl::Status;
using pccl::p2p::Session;

constexpr std::string_view kDone = "done";

Deadline patience() { return Deadline::after(std::chrono::seconds(60)); }

Result<std::string> contents_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return Status::unavailable("cannot read " + path);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

Status write_file(const std::string& path, std::string_view bytes) {
    const std::string unfinished = path + ".part";
    std::ofstream file(unfinished, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) return Status::unavailable("cannot write " + unfinished);
    std::filesystem::rename(unfinished, path);
    return Status::ok();
}

/// Both are bytes: the length of the first one, in decimal digits and a line's end, goes before.
std::string joined(const std::string& first, const std::string& second) {
    return std::to_string(first.size()) + "\n" + first + second;
}

Result<std::pair<std::string, std::string>> split(const std::string& both) {
    const std::size_t line = both.find('\n');
    const std::size_t length = std::strtoull(both.c_str(), nullptr, 10);
    if (line == std::string::npos || length > both.size() - line - 1)
        return Status::invalid_argument("the handover is not one of this program");
    return std::pair(both.substr(line + 1, length), both.substr(line + 1 + length));
}

Status offer(const std::string& path, const std::string& handover) {
    PCCL_ASSIGN_OR_RETURN(std::string bytes, contents_of(path));
    if (bytes.empty())
        return Status::invalid_argument(path + " is empty: there is nothing to move");
    PCCL_ASSIGN_OR_RETURN(const auto session, Session::create({.name = "offer"}));
    PCCL_ASSIGN_OR_RETURN(const auto memory,
                          session->register_memory(std::as_writable_bytes(std::span(bytes))));
    PCCL_TRY(
        write_file(handover, joined(session->connection_info(), memory->serialised_descriptor())));
    const auto received = session->await_notifications(patience());
    if (received.empty()) return Status::timeout("nobody has fetched the file");
    std::printf("%s has fetched %zu bytes\n", received.front().from.c_str(), bytes.size());
    return Status::ok();
}

Status fetch(const std::string& handover, const std::string& path) {
    PCCL_ASSIGN_OR_RETURN(const std::string words, contents_of(handover));
    PCCL_ASSIGN_OR_RETURN(const auto both, split(words));
    const auto& [info, descriptor] = both;
    PCCL_ASSIGN_OR_RETURN(const auto session, Session::create({.name = "fetch"}));
    PCCL_ASSIGN_OR_RETURN(const auto peer, session->load_remote_conn_info(info));
    PCCL_ASSIGN_OR_RETURN(const auto theirs, session->import_memory(peer.name, descriptor));
    std::string bytes(theirs.bytes(), '\0');
    PCCL_ASSIGN_OR_RETURN(const auto mine,
                          session->register_memory(std::as_writable_bytes(std::span(bytes))));
    PCCL_ASSIGN_OR_RETURN(const auto work,
                          session->read({mine, {0, bytes.size()}}, {theirs, {0, bytes.size()}},
                                        std::as_bytes(std::span(kDone))));
    PCCL_TRY(work.wait(patience()));
    std::printf("%zu bytes over %s\n", bytes.size(), work.stats().path.c_str());
    return write_file(path, bytes);
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const bool offers = arguments.size() == 3 && arguments[0] == "offer";
    if (!offers && (arguments.size() != 3 || arguments[0] != "fetch")) {
        std::fprintf(stderr, "usage: move_file offer FILE HANDOVER | fetch HANDOVER FILE\n");
        return 2;
    }
    const Status status =
        offers ? offer(arguments[1], arguments[2]) : fetch(arguments[1], arguments[2]);
    if (!status.is_ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
    return status.is_ok() ? 0 : 1;
}
