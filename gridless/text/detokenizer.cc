#include "gridless/text/detokenizer.h"

#include "gridless/text/utf8.h"

namespace gridless::text {

namespace {

// CPython waits for the third byte of an encoded surrogate (ED A0..BF xx) before it calls it
// malformed, so that its "surrogatepass" handler could take all three.
bool half_surrogate(std::string_view tail) {
  return tail.size() == 2 && tail[0] == '\xED' && static_cast<unsigned char>(tail[1]) >= 0xA0 &&
         static_cast<unsigned char>(tail[1]) <= 0xBF;
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  size_t pos = 0;
  while (pos < pending_.size()) {
    const Utf8Char c = utf8_at(pending_, pos);
    if (c.status == Utf8Status::kIncomplete) break;
    if (c.status == Utf8Status::kMalformed &&
        half_surrogate(std::string_view(pending_).substr(pos))) {
      break;
    }
    append_utf8(out, c.code_point);
    pos += c.size;
  }
  pending_.erase(0, pos);
  return out;
}

std::string Utf8Stream::finish() {
  const std::string out = to_valid_utf8(pending_);
  pending_.clear();
  return out;
}

}  // namespace gridless::text
