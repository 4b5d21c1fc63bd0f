// Reading test data; a missing file is a failed test, not an empty one.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace gridless::text {

inline std::string read_data(const std::string& name) {
  std::ifstream in(std::string(GRIDLESS_TEST_DATA) + "/text/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << "missing test data: " << name;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline nlohmann::ordered_json read_json(const std::string& name) {
  return nlohmann::ordered_json::parse(read_data(name));
}

}  // namespace gridless::text
