#include "gridless/emulate/contents.h"

#include <algorithm>
#include <cstring>

namespace gridless::emulate {

namespace {
Origin origin_of(Content content) {
  if (content == Content::kVector) return Origin::kVector;
  return content == Content::kNotGiven ? Origin::kNotGiven : Origin::kKnown;
}
}  // namespace

Content content_of(Origin origin) {
  if (origin == Origin::kVector) return Content::kVector;
  return origin == Origin::kNotGiven ? Content::kNotGiven : Content::kKnown;
}

Found inspect(const Buffer& buffer, const Region& region) {
  if (region.empty) return {};
  if (buffer.absent)
    return {.some_garbage = !buffer.written,
            .all_garbage = !buffer.written,
            .origin = origin_of(*buffer.absent)};
  if (!buffer.contents) return {};
  uint8_t seen = 0;
  const auto* contents = reinterpret_cast<const uint8_t*>(buffer.contents.get());
  region.for_each_run([&](int64_t first, int64_t n, int64_t stride) {
    const uint8_t* run = contents + first;
    if (stride == 1) {
      for (int64_t k = 0; k < n; ++k) seen |= run[k];
    } else {
      for (int64_t k = 0; k < n; ++k) seen |= run[k * stride];
    }
  });
  const auto has = [&](Content c) { return (seen & static_cast<uint8_t>(c)) != 0; };
  Found found;
  found.some_garbage = has(Content::kGarbage);
  found.all_garbage = seen == static_cast<uint8_t>(Content::kGarbage);
  if (has(Content::kVector)) found.origin = Origin::kVector;
  if (has(Content::kNotGiven)) found.origin = Origin::kNotGiven;
  return found;
}

void mark(Buffer& buffer, const Region& region, Content content, std::span<const int32_t> mask) {
  if (!region.empty) buffer.written = true;
  if (!buffer.contents || region.empty) return;
  Content* contents = buffer.contents.get();
  if (mask.empty()) {
    region.for_each_run([&](int64_t first, int64_t n, int64_t stride) {
      if (stride == 1) {
        std::fill_n(contents + first, n, content);
      } else {
        for (int64_t k = 0; k < n; ++k) contents[first + k * stride] = content;
      }
    });
    return;
  }
  size_t next = 0;
  region.for_each_run([&](int64_t first, int64_t n, int64_t stride) {
    for (int64_t k = 0; k < n; ++k) {
      if (next < mask.size() && !mask[next++]) continue;
      contents[first + k * stride] = content;
    }
  });
}

void spoil(Buffer& buffer, const Region& region) {
  if (!buffer.contents || region.empty) return;
  Content* contents = buffer.contents.get();
  region.for_each_run([&](int64_t first, int64_t n, int64_t stride) {
    for (int64_t k = 0; k < n; ++k)
      if (Content& c = contents[first + k * stride]; c != Content::kGarbage) c = Content::kNotGiven;
  });
}

void copy_contents(const View& src, const View& dst) {
  const Region to = region_of(dst);
  if (!dst.buffer->contents) {
    if (!to.empty) dst.buffer->written = true;
    return;
  }
  const Region from = region_of(src);
  if (src.buffer->absent)
    return mark(*dst.buffer, to, src.buffer->written ? *src.buffer->absent : Content::kGarbage);
  if (!src.buffer->contents) return mark(*dst.buffer, to, Content::kKnown);
  // Elements of views of other widths than their buffers do not pair up one by one.
  if (!src.plain() || !dst.plain()) {
    const Found found = inspect(*src.buffer, from);
    return mark(*dst.buffer, to, found.all_garbage ? Content::kGarbage : content_of(found.origin));
  }
  const Content* source = src.buffer->contents.get();
  Content* target = dst.buffer->contents.get();
  if (src.contiguous() && dst.contiguous()) {
    std::memmove(target + dst.offset, source + src.offset,
                 static_cast<size_t>(src.num_elements()) * sizeof(Content));
    return;
  }
  std::vector<Content> taken;
  taken.reserve(static_cast<size_t>(src.num_elements()));
  from.for_each_run([&](int64_t first, int64_t n, int64_t stride) {
    for (int64_t k = 0; k < n; ++k) taken.push_back(source[first + k * stride]);
  });
  size_t next = 0;
  to.for_each_run([&](int64_t first, int64_t n, int64_t stride) {
    for (int64_t k = 0; k < n; ++k) target[first + k * stride] = taken[next++];
  });
}

}  // namespace gridless::emulate
