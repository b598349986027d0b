// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/log/log_sink.h"
