// Dumps of gallery kernels as libtpu 0.0.51 wrote them, recorded with its own statistics.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "gridless/bundles/listing.h"

namespace gridless::bundles {

inline std::string recorded_folder(const std::string& kernel) {
  return std::string(GRIDLESS_TEST_DATA) + "/bundles/" + kernel;
}

inline std::string recorded(const std::string& kernel, std::string_view file) {
  std::ifstream in(recorded_folder(kernel) + "/" + std::string(file), std::ios::binary);
  EXPECT_TRUE(in) << kernel << "/" << file;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline Listing parsed(std::string_view text) {
  auto listing = parse_listing(text);
  EXPECT_TRUE(listing) << listing.error().message;
  return listing ? std::move(*listing) : Listing{};
}

}  // namespace gridless::bundles
