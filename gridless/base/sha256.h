// SHA-256 (FIPS 180-4), for checksums in manifests. Not meant for secrets.
#pragma once

#include <string>
#include <string_view>

namespace gridless {

// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace gridless
