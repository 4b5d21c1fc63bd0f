#include "gridless/text/bpe.h"

#include <algorithm>
#include <bit>

#include "gridless/text/utf8.h"

namespace gridless::text {
namespace {

// GPT-2's table: printable Latin-1 stands for itself, the other 68 bytes for U+0100 onwards, in
// order.
struct ByteTable {
  std::array<char32_t, 256> to_char{};
  std::array<int, 324> to_byte{};

  ByteTable() {
    to_byte.fill(-1);
    char32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      to_char[b] = printable ? static_cast<char32_t>(b) : next++;
      to_byte[to_char[b]] = b;
    }
  }
};

const ByteTable& table() {
  static const ByteTable instance;
  return instance;
}

}  // namespace

bool byte_level_to_bytes(std::string_view text, std::string& out) {
  std::string bytes;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = utf8_at(text, pos);
    if (c.status != Utf8Status::kValid || c.code_point >= table().to_byte.size()) return false;
    const int byte = table().to_byte[c.code_point];
    if (byte < 0) return false;
    bytes += static_cast<char>(byte);
    pos += c.size;
  }
  out = std::move(bytes);
  return true;
}

std::string bytes_to_byte_level(std::string_view bytes) {
  std::string out;
  for (const char b : bytes) append_utf8(out, table().to_char[static_cast<unsigned char>(b)]);
  return out;
}

Bpe::Bpe(const std::array<int32_t, 256>& byte_ids, const std::vector<Merge>& merges,
         int32_t unknown)
    : byte_ids_(byte_ids), unknown_(unknown) {
  const size_t capacity = std::bit_ceil(std::max<size_t>(16, merges.size() * 2));
  slots_.resize(capacity);
  shift_ = 64 - std::countr_zero(capacity);
  for (const Merge& m : merges) {
    const uint64_t pair = key(m.left, m.right);
    size_t i = (pair * 0x9E3779B97F4A7C15u) >> shift_;
    while (slots_[i].pair != kEmpty && slots_[i].pair != pair) i = (i + 1) & (capacity - 1);
    slots_[i] = {pair, m.rank, m.joined};  // of a repeated pair the last one counts
  }
}

const Bpe::Slot* Bpe::find(int32_t left, int32_t right) const {
  const uint64_t pair = key(left, right);
  const size_t mask = slots_.size() - 1;
  for (size_t i = (pair * 0x9E3779B97F4A7C15u) >> shift_;; i = (i + 1) & mask) {
    if (slots_[i].pair == pair) return &slots_[i];
    if (slots_[i].pair == kEmpty) return nullptr;
  }
}

void Bpe::encode(std::string_view word, std::vector<int32_t>& out) const {
  if (!words_.empty()) {
    if (const auto it = words_.find(std::string(word)); it != words_.end()) {
      out.push_back(it->second);
      return;
    }
  }
  // Symbols form a linked list; joining keeps the left one and unlinks the right one.
  struct Symbol {
    int32_t id, prev, next;
  };
  // A pair worth joining. It is stale once either symbol changed, which its ids tell.
  struct Candidate {
    int32_t rank, pos, left, right, joined;
    bool operator<(const Candidate& o) const {  // std heaps keep the greatest on top
      return rank != o.rank ? rank > o.rank : pos > o.pos;
    }
  };
  thread_local std::vector<Symbol> symbols;
  thread_local std::vector<Candidate> heap;
  symbols.clear();
  heap.clear();
  for (const char byte : word) {
    int32_t id = byte_ids_[static_cast<unsigned char>(byte)];
    if (id < 0) id = unknown_;
    if (id < 0) continue;
    const auto n = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, n - 1, n + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;

  const auto consider = [&](int32_t pos) {
    const int32_t next = symbols[pos].next;
    if (next < 0) return false;
    const Slot* slot = find(symbols[pos].id, symbols[next].id);
    if (slot == nullptr) return false;
    heap.push_back({slot->rank, pos, symbols[pos].id, symbols[next].id, slot->joined});
    return true;
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<int32_t>(i));
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate best = heap.back();
    heap.pop_back();
    Symbol& left = symbols[best.pos];
    if (left.id != best.left || left.next < 0 || symbols[left.next].id != best.right) continue;
    Symbol& right = symbols[left.next];
    left.id = best.joined;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) symbols[left.next].prev = best.pos;
    if (left.prev >= 0 && consider(left.prev)) std::push_heap(heap.begin(), heap.end());
    if (consider(best.pos)) std::push_heap(heap.begin(), heap.end());
  }
  for (int32_t i = 0; i >= 0; i = symbols[i].next) out.push_back(symbols[i].id);
}

}  // namespace gridless::text
