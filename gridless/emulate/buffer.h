// Buffer: one allocation of one virtual core, at a place that is the same on all cores.
//
// A buffer belongs to a *site*: a kernel argument, an alloca or sem_alloc op, or the barrier
// semaphore. Addresses on the chip are static and equal on all cores, so "the same buffer on core
// 3" is the buffer of the same site there, whether or not core 3 is inside the scope that allocates
// it.
//
// Bytes are row-major in the packing of the element format (two 4-bit elements per byte, the first
// in the low half). The chip tiles its arrays; nothing that an IR program can observe depends on
// that, except the pairing of rows in bitcasts, which View reproduces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/emulate/codec.h"
#include "gridless/ir/type.h"

namespace gridless::emulate {

using ir::Shape;
using ir::Type;

// A counted semaphore. DMA semaphores count bytes, regular ones signals. Only the owner waits.
struct Semaphore {
  int64_t count = 0;
  std::deque<int64_t> pending;  // copies that will add to it: ids of the DMA engine, in start order
};

// What the checker knows of an element: never written; written by scalar stores or copied from an
// operand; by vector stores; copied from an operand that nobody gave. Bits, so that a region is
// summed up by or.
enum class Content : uint8_t { kGarbage = 1, kKnown = 2, kVector = 4, kNotGiven = 8 };

struct Buffer {
  int core = 0;
  int site = 0;
  Type type;                  // the memref as allocated
  std::string name;           // for messages: "argument 3", "alloca"
  SourceLoc where;            // the allocation, for messages
  std::span<std::byte> data;  // the caller's memory or `owned`
  std::vector<std::byte> owned;
  bool read_only = false;
  Fill fill = Fill::kPoison;  // what poison() writes
  // Under the checker, where each element's value is from; null: all kKnown. Shared by the buffers
  // of aliased arguments.
  std::shared_ptr<Content[]> contents;
  // A run of scalars only keeps no data here: what is known of all that was written. `written`:
  // something was.
  std::optional<Content> absent;
  bool written = false;
  std::vector<Semaphore> semaphores;  // semaphore sites only; row-major

  bool is_semaphore() const { return ir::is_semaphore(type.elem()); }
  // Takes memory of its own and poisons it, or zeroed semaphores.
  void allocate();
  // Overwrites everything with the pattern of `fill`.
  void poison();
  // Starts `contents`, with every element the same.
  void track(Content all);
};

// For Buffer::contents: n elements, all the same.
std::shared_ptr<Content[]> track(int64_t n, Content all);

// Element `index` of packed elements of `bits` bits (2, 4, 8, 16 or 32).
uint32_t get_bits(const std::byte* data, int64_t index, int bits);
void set_bits(std::byte* data, int64_t index, int bits, uint32_t value);

}  // namespace gridless::emulate
