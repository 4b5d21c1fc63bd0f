// Reading, writing and copying the elements of a View.
#include <bit>
#include <cstring>

#include "gridless/emulate/codec.h"
#include "gridless/emulate/view.h"

namespace gridless::emulate {
namespace {

// Where one element lies: a buffer element, and for narrowed views the part of it.
struct Place {
  int64_t element;
  int part;
};

Place place(const View& v, int64_t element, int64_t row) {
  if (v.narrow == 1) return {element, 0};
  const int64_t p = v.narrow_row + row;
  return {element + p / v.narrow * v.narrow_stride, static_cast<int>(p % v.narrow)};
}

uint32_t read_place(const View& v, Place p) {
  const std::byte* data = v.buffer->data.data();
  const int bits = storage_bits(v.buffer->type.elem());
  if (v.plain()) return get_bits(data, p.element, bits);
  if (v.widen > 1) {
    uint32_t word = 0;
    for (int s = 0; s < v.widen; ++s)
      word |= get_bits(data, p.element + s * v.widen_stride, bits) << (s * bits);
    return word;
  }
  const int narrow_bits = bits / v.narrow;
  return get_bits(data, p.element, bits) >> (p.part * narrow_bits) & ((1u << narrow_bits) - 1u);
}

void write_place(const View& v, Place p, uint32_t value) {
  std::byte* data = v.buffer->data.data();
  const int bits = storage_bits(v.buffer->type.elem());
  if (v.plain()) return set_bits(data, p.element, bits, value);
  if (v.widen > 1) {
    const uint32_t mask = (1u << bits) - 1u;  // a widened element is narrower than 32 bits
    for (int s = 0; s < v.widen; ++s)
      set_bits(data, p.element + s * v.widen_stride, bits, value >> (s * bits) & mask);
    return;
  }
  const int narrow_bits = bits / v.narrow;
  const uint32_t mask = ((1u << narrow_bits) - 1u) << (p.part * narrow_bits);
  const uint32_t old = get_bits(data, p.element, bits);
  set_bits(data, p.element, bits, (old & ~mask) | (value << (p.part * narrow_bits) & mask));
}

// Calls row(k, element, narrow_row, count, step, row_step) for each innermost run of the block:
// `count` elements numbered from k, `step` buffer elements (and row_step narrowed rows) apart.
template <typename Row>
void for_each_row(const View& v, const Shape& starts, const Shape& sizes, const Shape& steps,
                  const Row& row) {
  const size_t rank = v.shape.size();
  for (int64_t s : sizes)
    if (s == 0) return;
  const auto step_of = [&](size_t d) { return steps.empty() ? int64_t{1} : steps[d]; };
  const auto is_narrow = [&](size_t d) { return v.is_narrow(d); };
  const auto unit = [&](size_t d) { return is_narrow(d) ? v.narrow_step[d] : v.stride[d]; };
  int64_t element = v.offset, narrow_row = 0;
  for (size_t d = 0; d < rank; ++d) (is_narrow(d) ? narrow_row : element) += starts[d] * unit(d);
  if (rank == 0) return row(0, element, narrow_row, 1, 1, 0);
  const size_t last = rank - 1;
  const int64_t step = is_narrow(last) ? 0 : unit(last) * step_of(last);
  const int64_t row_step = is_narrow(last) ? unit(last) * step_of(last) : 0;
  Shape at(rank, 0);
  for (int64_t k = 0;; k += sizes[last]) {
    row(k, element, narrow_row, sizes[last], step, row_step);
    size_t d = last;
    while (d-- > 0) {
      int64_t& moved = is_narrow(d) ? narrow_row : element;
      const int64_t by = step_of(d) * unit(d);
      if (++at[d] < sizes[d]) {
        moved += by;
        break;
      }
      moved -= by * (sizes[d] - 1);
      at[d] = 0;
      if (d == 0) return;
    }
    if (last == 0) return;
  }
}

void read_block(const View& v, const Shape& starts, const Shape& sizes, const Shape& steps,
                uint32_t* out) {
  const std::byte* data = v.buffer->data.data();
  const int bits = storage_bits(v.buffer->type.elem());
  for_each_row(v, starts, sizes, steps,
               [&](int64_t k, int64_t e, int64_t r, int64_t n, int64_t step, int64_t row_step) {
                 if (v.plain() && step == 1 && bits == 32) {
                   std::memcpy(out + k, data + e * 4, static_cast<size_t>(n) * 4);
                 } else if (v.plain() && bits == 16) {
                   for (int64_t j = 0; j < n; ++j) out[k + j] = get_bits(data, e + j * step, 16);
                 } else if (v.plain() && bits == 8) {
                   for (int64_t j = 0; j < n; ++j) out[k + j] = get_bits(data, e + j * step, 8);
                 } else {
                   for (int64_t j = 0; j < n; ++j)
                     out[k + j] = read_place(v, place(v, e + j * step, r + j * row_step));
                 }
               });
}

void write_block(const View& v, const Shape& starts, const Shape& sizes, const Shape& steps,
                 const uint32_t* in, std::span<const int32_t> mask) {
  std::byte* data = v.buffer->data.data();
  const int bits = storage_bits(v.buffer->type.elem());
  for_each_row(v, starts, sizes, steps,
               [&](int64_t k, int64_t e, int64_t r, int64_t n, int64_t step, int64_t row_step) {
                 if (v.plain() && step == 1 && bits == 32 && mask.empty()) {
                   std::memcpy(data + e * 4, in + k, static_cast<size_t>(n) * 4);
                   return;
                 }
                 for (int64_t j = 0; j < n; ++j) {
                   if (!mask.empty() && !mask[static_cast<size_t>(k + j)]) continue;
                   write_place(v, place(v, e + j * step, r + j * row_step), in[k + j]);
                 }
               });
}

std::vector<uint32_t>& scratch(int64_t n) {
  static thread_local std::vector<uint32_t> words;
  if (words.size() < static_cast<size_t>(n)) words.resize(static_cast<size_t>(n));
  return words;
}

}  // namespace

Vector read_vector(const View& v, const Shape& starts, const Shape& steps, Type type) {
  Vector out(type);
  const int64_t n = out.size();
  uint32_t* words = scratch(n).data();
  // A vector of lower rank is a block whose leading sizes are 1.
  Shape sizes(v.shape.size() - type.shape().size(), 1);
  sizes.insert(sizes.end(), type.shape().begin(), type.shape().end());
  read_block(v, starts, sizes, steps, words);
  const Elem e = v.elem;
  if (out.is_float()) {
    float* f = out.mutable_f().data();
    if (e == Elem::kF32) {
      std::memcpy(f, words, static_cast<size_t>(n) * 4);
    } else if (e == Elem::kBf16) {
      for (int64_t k = 0; k < n; ++k) f[k] = std::bit_cast<float>(words[k] << 16);
    } else {
      for (int64_t k = 0; k < n; ++k) f[k] = float_from_bits(e, words[k]);
    }
  } else {
    int32_t* i = out.mutable_i().data();
    for (int64_t k = 0; k < n; ++k) i[k] = static_cast<int32_t>(wrap(e, words[k]));
  }
  return out;
}

void write_vector(const View& v, const Shape& starts, const Shape& steps, const Vector& value,
                  std::span<const int32_t> mask) {
  const int64_t n = value.size();
  uint32_t* words = scratch(n).data();
  if (value.is_float()) {
    const float* f = value.f().data();
    for (int64_t k = 0; k < n; ++k) words[k] = float_bits(v.elem, f[k]);
  } else {
    const int32_t* i = value.i().data();
    const auto bits = static_cast<uint32_t>(as_unsigned(v.elem, -1));
    for (int64_t k = 0; k < n; ++k) words[k] = static_cast<uint32_t>(i[k]) & bits;
  }
  Shape sizes(v.shape.size() - value.shape().size(), 1);
  sizes.insert(sizes.end(), value.shape().begin(), value.shape().end());
  write_block(v, starts, sizes, steps, words, mask);
}

Scalar read_scalar(const View& v, const Shape& at) {
  uint32_t bits = 0;
  read_block(v, at, Shape(at.size(), 1), {}, &bits);
  if (ir::is_float(v.elem)) return Scalar{.elem = v.elem, .f = float_from_bits(v.elem, bits)};
  return Scalar{.elem = v.elem, .i = wrap(v.elem, bits)};
}

void write_scalar(const View& v, const Shape& at, const Scalar& value) {
  const uint32_t bits = ir::is_float(v.elem) ? float_bits(v.elem, value.f)
                                             : static_cast<uint32_t>(as_unsigned(v.elem, value.i));
  write_block(v, at, Shape(at.size(), 1), {}, &bits, {});
}

void copy_view(const View& src, const View& dst) {
  if (src.buffer->absent || dst.buffer->absent) return;
  const int bits = storage_bits(src.buffer->type.elem());
  const int64_t n = src.num_elements();
  if (src.contiguous() && dst.contiguous() && bits >= 8 &&
      storage_bits(dst.buffer->type.elem()) == bits) {
    const int64_t bytes = bits / 8;
    std::memmove(dst.buffer->data.data() + dst.offset * bytes,
                 src.buffer->data.data() + src.offset * bytes, static_cast<size_t>(n * bytes));
    return;
  }
  std::vector<uint32_t> words(static_cast<size_t>(n));
  read_block(src, Shape(src.shape.size(), 0), src.shape, {}, words.data());
  write_block(dst, Shape(dst.shape.size(), 0), dst.shape, {}, words.data(), {});
}

}  // namespace gridless::emulate
