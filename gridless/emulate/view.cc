#include "gridless/emulate/view.h"

#include <fmt/format.h>

#include "gridless/emulate/codec.h"

namespace gridless::emulate {

int64_t View::num_elements() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

int64_t View::num_bytes() const { return storage_bytes(elem, num_elements()); }

bool View::contiguous() const {
  if (!plain()) return false;
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && stride[d] != step) return false;
    step *= shape[d];
  }
  return true;
}

std::string View::str() const {
  return fmt::format("{} of core {}, {}{}{} at element {}", buffer->name, buffer->core,
                     ir::shape_str(shape), shape.empty() ? "" : "x", ir::spelling(elem), offset);
}

View whole(Buffer& buffer) {
  return View{.buffer = &buffer,
              .elem = buffer.type.elem(),
              .shape = buffer.type.shape(),
              .stride = row_major(buffer.type.shape())};
}

View slice(const View& v, const Shape& starts, const Shape& sizes) {
  View out = v;
  out.shape = sizes;
  for (size_t d = 0; d < starts.size(); ++d) {
    out.offset += starts[d] * v.stride[d];
    if (v.is_narrow(d)) out.narrow_row += starts[d] * v.narrow_step[d];
  }
  return out;
}

std::string squeeze(const View& v, const Shape& shape, View& out) {
  out = v;
  out.shape.clear();
  out.stride.clear();
  out.narrow_step.clear();
  // Which of several 1s goes does not matter: their strides are never used.
  size_t next = 0;
  for (size_t d = 0; d < v.shape.size(); ++d) {
    const bool keep = next < shape.size() && v.shape[d] == shape[next];
    if (!keep && v.shape[d] != 1) break;
    if (!keep) continue;
    out.shape.push_back(v.shape[d]);
    out.stride.push_back(v.stride[d]);
    if (v.narrow > 1) out.narrow_step.push_back(v.narrow_step[d]);
    ++next;
  }
  if (out.shape == shape) return {};
  return fmt::format("cannot squeeze {} to {}", ir::shape_str(v.shape), ir::shape_str(shape));
}

namespace {

// Dimensions [from, from_end) of an old shape that a reshape turns into [to, to_end) of the new.
struct Group {
  size_t from, from_end, to, to_end;
};

// Steps for the new dimensions of a group: the old ones must chain, as in numpy's reshape without a
// copy. `step_of` gives the old dimensions' steps, `next` takes the new ones. False if they do not.
template <typename StepOf>
bool chain(const Group& g, const View& v, const Shape& shape, const StepOf& step_of, Shape& next) {
  int64_t step = 0, span = 0;  // step of the group's last dimension; step the next must have
  for (size_t d = g.from_end; d-- > g.from;) {
    if (v.shape[d] == 1) continue;
    const int64_t own = step_of(d);
    if (step == 0) {
      step = own;
    } else if (own != span) {
      return false;
    }
    span = own * v.shape[d];
  }
  if (step == 0) step = 1;
  for (size_t d = g.to_end; d-- > g.to;) {
    next[d] = step;
    step *= shape[d];
  }
  return true;
}

// Next to a narrowed dimension everything counts in narrowed rows.
bool reshape_group(const Group& g, const View& v, const Shape& shape, View& out) {
  bool narrow = false;
  for (size_t d = g.from; d < g.from_end; ++d) narrow |= v.shape[d] > 1 && v.is_narrow(d);
  if (!narrow) return chain(g, v, shape, [&](size_t d) { return v.stride[d]; }, out.stride);
  for (size_t d = g.from; d < g.from_end; ++d)
    if (v.shape[d] > 1 && !v.is_narrow(d) && v.stride[d] % v.narrow_stride != 0) return false;
  const auto rows = [&](size_t d) {
    return v.is_narrow(d) ? v.narrow_step[d] : v.stride[d] / v.narrow_stride * v.narrow;
  };
  return chain(g, v, shape, rows, out.narrow_step);
}

}  // namespace

std::string reshape(const View& v, const Shape& shape, View& out) {
  out = v;
  out.shape = shape;
  out.stride.assign(shape.size(), 0);
  if (v.narrow > 1) out.narrow_step.assign(shape.size(), 0);
  int64_t total = 1;
  for (int64_t d : shape) total *= d;
  if (total != v.num_elements())
    return fmt::format("cannot reshape {} to {}", ir::shape_str(v.shape), ir::shape_str(shape));
  // Groups of dimensions with equal products, from the right.
  size_t from = v.shape.size(), to = shape.size();
  while (from > 0 || to > 0) {
    Group g{.from = from, .from_end = from, .to = to, .to_end = to};
    int64_t a = 1, b = 1;
    if (from > 0) a = v.shape[--from];
    if (to > 0) b = shape[--to];
    while (a != b) {
      if (a < b) {
        if (from == 0) return "reshape: shapes do not match";
        a *= v.shape[--from];
      } else {
        if (to == 0) return "reshape: shapes do not match";
        b *= shape[--to];
      }
    }
    g.from = from;
    g.to = to;
    if (!reshape_group(g, v, shape, out))
      return fmt::format("cannot reshape the strided ref {} to {} without a copy",
                         ir::shape_str(v.shape), ir::shape_str(shape));
  }
  return {};
}

namespace {

// v's elements to r times as wide: of a buffer of the wide or of the narrow format.
std::string bitcast_wider(const View& v, int r, size_t d, View& out) {
  if (v.narrow > 1) {
    // Undoes a narrowing, wholly or in part, if the rows start at a word.
    bool whole_words = v.narrow % r == 0 && v.narrow_row % r == 0 && v.narrow_step[d] == 1;
    for (size_t k = 0; k < v.shape.size(); ++k)
      whole_words &= k == d || v.shape[k] == 1 || v.narrow_step[k] % r == 0;
    if (!whole_words) return "bitcast to a wider format from the middle of a word";
    out.narrow /= r;
    out.narrow_row /= r;
    for (size_t k = 0; k < v.shape.size(); ++k) {
      if (k != d) out.narrow_step[k] /= r;
      if (out.narrow == 1 && out.narrow_step[k] != 0)
        out.stride[k] = out.narrow_step[k] * out.narrow_stride;
    }
    if (out.narrow == 1) {
      out.offset += out.narrow_row * out.narrow_stride;
      out.narrow_row = 0;
      out.narrow_step.clear();
    }
    return {};
  }
  if (v.widen > 1 && v.stride[d] != v.widen * v.widen_stride)
    return "bitcast to a wider format of rows that are apart";
  if (v.widen == 1) out.widen_stride = v.stride[d];
  out.widen *= r;
  out.stride[d] = v.stride[d] * r;
  return {};
}

std::string bitcast_narrower(const View& v, int r, size_t d, View& out) {
  if (v.widen > 1) {
    if (v.widen % r != 0 || v.stride[d] != v.widen * v.widen_stride)
      return "bitcast to a format narrower than the buffer's own";
    out.widen /= r;
    out.stride[d] = v.stride[d] / r;
    return {};
  }
  if (v.narrow == 1) {
    out.narrow_step.assign(v.shape.size(), 0);
    out.narrow_step[d] = 1;
    out.narrow_stride = v.stride[d];
    out.stride[d] = 0;
  } else if (v.narrow_step[d] != 1) {
    return "second bitcast along another dimension";
  } else {
    for (size_t k = 0; k < v.shape.size(); ++k)
      if (k != d) out.narrow_step[k] *= r;
  }
  out.narrow *= r;
  out.narrow_row *= r;
  return {};
}

}  // namespace

std::string bitcast(const View& v, Elem elem, const Shape& shape, View& out) {
  const int from = storage_bits(v.elem), to = storage_bits(elem);
  out = v;
  out.elem = elem;
  out.shape = shape;
  if (from == to) {
    if (shape == v.shape) return {};
    return fmt::format("bitcast of {} to {} of the same width", ir::shape_str(v.shape),
                       ir::shape_str(shape));
  }
  if (v.shape.size() < 2 || shape.size() != v.shape.size())
    return "a bitcast to another width needs at least two dimensions";
  const size_t d = shape.size() - 2;
  Shape expected = v.shape;
  expected[d] = expected[d] * from / to;
  if (shape != expected || v.shape[d] * from % to != 0) {
    return fmt::format(
        "bitcast of {}x{} to {}x{}: the second-minor dimension must change with the "
        "width",
        ir::shape_str(v.shape), ir::spelling(v.elem), ir::shape_str(shape), ir::spelling(elem));
  }
  return to > from ? bitcast_wider(v, to / from, d, out) : bitcast_narrower(v, from / to, d, out);
}

std::string outside(const View& v, const Shape& starts, const Shape& sizes, const Shape& steps) {
  for (size_t d = 0; d < v.shape.size(); ++d) {
    const int64_t first = starts[d];
    const int64_t last = first + (sizes[d] - 1) * (steps.empty() ? 1 : steps[d]);
    if (first >= 0 && last < v.shape[d] && (sizes[d] > 0 || first <= v.shape[d])) continue;
    return fmt::format("indices {} to {} of dimension {}, which has {}", first, last, d,
                       v.shape[d]);
  }
  return {};
}

bool clip(const View& v, Shape& starts, Shape& sizes, const Shape& steps) {
  const auto round_up = [](int64_t n, int64_t step) { return n <= 0 ? 0 : (n + step - 1) / step; };
  for (size_t d = 0; d < v.shape.size(); ++d) {
    const int64_t step = steps.empty() ? 1 : steps[d];
    const int64_t first = round_up(-starts[d], step);
    const int64_t end = std::min(sizes[d], round_up(v.shape[d] - starts[d], step));
    if (first >= end) return false;
    starts[d] += first * step;
    sizes[d] = end - first;
  }
  return true;
}

}  // namespace gridless::emulate
