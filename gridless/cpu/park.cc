#include "gridless/cpu/park.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gridless::cpu {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "a futex is the word itself");

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  return ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

}  // namespace

// Returns at once when the epoch has moved on; signals and spurious wake-ups return too, and the
// caller looks at its condition again in every case.
void Parker::sleep(uint32_t epoch) { futex(epoch_, FUTEX_WAIT, epoch); }

void Parker::wake() { futex(epoch_, FUTEX_WAKE, 1); }

}  // namespace gridless::cpu
