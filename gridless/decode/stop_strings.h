// Stop strings in streamed text: what may be shown now, and whether one has come.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gridless::decode {

// Text in, text out; what might be the beginning of a stop string is held back. After a stop string
// nothing more comes out. Bytes are compared, so an empty stop string is never found.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // The text that is certain not to belong to a stop string.
  std::string push(std::string_view text);
  // What is still held back: no stop string can be completed any more.
  std::string finish();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace gridless::decode
