#include "gridless/emulate/contents.h"

#include <algorithm>

namespace gridless::emulate {

Found inspect(const Buffer& buffer, const Region& region) {
  if (!buffer.contents || region.empty) return {};
  int64_t count[4] = {};
  const Content* contents = buffer.contents.get();
  region.for_each_run([&](int64_t first, int64_t n, int64_t stride) {
    for (int64_t k = 0; k < n; ++k) ++count[static_cast<int>(contents[first + k * stride])];
  });
  const auto of = [&](Content c) { return count[static_cast<int>(c)]; };
  Found found;
  found.some_garbage = of(Content::kGarbage) > 0;
  found.all_garbage =
      of(Content::kKnown) + of(Content::kVector) + of(Content::kNotGiven) == 0 && found.some_garbage;
  if (of(Content::kVector) > 0) found.origin = Origin::kVector;
  if (of(Content::kNotGiven) > 0) found.origin = Origin::kNotGiven;
  return found;
}

void mark(const Buffer& buffer, const Region& region, Content content,
          std::span<const int32_t> mask) {
  if (!buffer.contents || region.empty) return;
  Content* contents = buffer.contents.get();
  size_t next = 0;
  region.for_each_run([&](int64_t first, int64_t n, int64_t stride) {
    for (int64_t k = 0; k < n; ++k) {
      if (next < mask.size() && !mask[next++]) continue;
      contents[first + k * stride] = content;
    }
  });
}

void copy_contents(const View& src, const View& dst) {
  if (!dst.buffer->contents) return;
  const Region from = region_of(src), to = region_of(dst);
  if (!src.buffer->contents) return mark(*dst.buffer, to, Content::kKnown);
  // Elements of views of other widths than their buffers do not pair up one by one.
  if (!src.plain() || !dst.plain()) {
    const Found found = inspect(*src.buffer, from);
    const Content all = found.all_garbage                    ? Content::kGarbage
                        : found.origin == Origin::kVector    ? Content::kVector
                        : found.origin == Origin::kNotGiven ? Content::kNotGiven
                                                             : Content::kKnown;
    return mark(*dst.buffer, to, all);
  }
  std::vector<Content> taken;
  taken.reserve(static_cast<size_t>(src.num_elements()));
  const Content* read = src.buffer->contents.get();
  from.for_each_run([&](int64_t first, int64_t n, int64_t stride) {
    for (int64_t k = 0; k < n; ++k) taken.push_back(read[first + k * stride]);
  });
  Content* write = dst.buffer->contents.get();
  size_t next = 0;
  to.for_each_run([&](int64_t first, int64_t n, int64_t stride) {
    for (int64_t k = 0; k < n; ++k) write[first + k * stride] = taken[next++];
  });
}

}  // namespace gridless::emulate
