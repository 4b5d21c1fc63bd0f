// Base64 with the standard alphabet and padding (RFC 4648 section 4).
#pragma once

#include <string>
#include <string_view>

#include "gridless/base/error.h"

namespace gridless {

std::string base64_encode(std::string_view bytes);
// Rejects characters outside of the alphabet, missing padding and non-zero trailing bits.
Result<std::string> base64_decode(std::string_view text);

}  // namespace gridless
