#include "gridless/decode/stop_strings.h"

#include <algorithm>
#include <utility>

namespace gridless::decode {

std::string StopStrings::push(std::string_view text) {
  if (found_) return {};
  held_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) {
    if (!stop.empty()) first = std::min(first, held_.find(stop));
  }
  if (first != std::string::npos) {
    found_ = true;
    std::string out = held_.substr(0, first);
    held_.clear();
    return out;
  }
  // The longest tail that begins a stop string stays.
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    if (stop.empty()) continue;
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n) {
      if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n)) {
        keep = n;
        break;
      }
    }
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return out;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace gridless::decode
