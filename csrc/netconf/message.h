// SPDX-License-Identifier: Apache-2.0

// Messages of NETCONF peers: as XML, and the error for one that does not follow the protocol.
#pragma once

#include <string_view>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/xml/xml_reader.h"

namespace pccl::netconf {

inline Status protocol_error(std::string_view what) {
    return Status::peer_lost(kNoRank, concat("no NETCONF: ", what));
}

/// Returns the root of a message. White space around it is no part of the XML: some servers send it
/// before the XML declaration, which has to come first. Errors are those of read_xml().
inline Result<sys::XmlElement> read_message(std::string_view message) {
    return sys::read_xml(sys::trimmed(message));
}

}  // namespace pccl::netconf
