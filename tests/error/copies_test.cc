// Copies and semaphores.
#include "tests/error/error_case.h"

namespace gridless::lang {
namespace {

template <void (*kBody)(Kernel&, const Buffers&, int&)>
void in_scope(Kernel& k, int& line) {
  with_buffers(k, kBody, line);
}

void copy_shapes(Kernel& k, const Buffers& m, int& line) {
  MISTAKE k.copy(m.x.rows(0, 8), m.a, m.done);
}
void copy_elements(Kernel& k, const Buffers& m, int& line) { MISTAKE k.copy(m.x, m.half, m.done); }
void copy_semaphore(Kernel& k, const Buffers& m, int& line) { MISTAKE k.copy(m.x, m.done, m.done); }
void copy_on_array(Kernel& k, const Buffers& m, int& line) {
  const Sems two = k.dma_sems(2);
  MISTAKE k.copy(m.x, m.b, two);
}
void copy_on_counter(Kernel& k, const Buffers& m, int& line) {
  const Sem counter = k.sem();
  MISTAKE k.copy(m.x, m.b, counter);
}
void copy_on_memory(Kernel& k, const Buffers& m, int& line) { MISTAKE k.copy(m.x, m.b, m.table); }
void signal_of_dma(Kernel& k, const Buffers& m, int& line) { MISTAKE k.signal(m.done); }
void wait_of_dma(Kernel& k, const Buffers& m, int& line) { MISTAKE k.wait(m.done, 1); }
void wait_shapes(Kernel& k, const Buffers& m, int& line) {
  k.copy(m.x, m.b, m.done);
  MISTAKE k.wait(m.x.rows(0, 8), m.b, m.done);
}
void wait_sent_of_local(Kernel& k, const Buffers& m, int& line) {
  const Copy c = k.copy(m.x, m.b, m.done);
  c.wait();
  MISTAKE c.wait_sent();
}
void no_such_core(Kernel& k, const Buffers& m, int& line) {
  const Sems s = k.dma_sems(2);
  MISTAKE const Copy c = k.copy_to(2, m.a, m.b, s.at(0), s.at(1));
  c.wait_sent();
  c.wait();
}

const ErrorCase kCases[] = {
    {"CopyShapes", "shape_mismatch", "a copy of memref<8x256xf32", "slice() or reshape()",
     in_scope<copy_shapes>},
    {"CopyElements", "shape_mismatch", "into memref<16x256xbf16", "load, cast() and store",
     in_scope<copy_elements>},
    {"CopySemaphore", "invalid_ir", "a copy of memref<16x256xf32", "between HBM, VMEM and SMEM",
     in_scope<copy_semaphore>},
    {"CopyOnArray", "invalid_ir", "a copy on an array of semaphores", "at(i)",
     in_scope<copy_on_array>},
    {"CopyOnCounter", "invalid_ir", "a copy on memref<!tpu.semaphore", "dma_sem()",
     in_scope<copy_on_counter>},
    {"CopyOnMemory", "invalid_ir", "a copy on memref<4xi32", "not a semaphore",
     in_scope<copy_on_memory>},
    {"SignalOfDma", "invalid_ir", "signal() on memref<!tpu.dma_semaphore", "allocate it with sem()",
     in_scope<signal_of_dma>},
    {"WaitOfDma", "invalid_ir", "wait() on memref<!tpu.dma_semaphore", "allocate it with sem()",
     in_scope<wait_of_dma>},
    {"WaitShapes", "shape_mismatch", "a copy of memref<8x256xf32", "one shape",
     in_scope<wait_shapes>},
    {"WaitSentOfLocal", "invalid_ir", "wait_sent() on a copy that stays on this core",
     "call wait()", in_scope<wait_sent_of_local>},
    {"NoSuchCore", "out_of_bounds", "a copy to core 2", "0 to 1", in_scope<no_such_core>, 2},
};
ERROR_SUITE(Copies, kCases);

void forgotten_wait(Kernel& k, const Buffers& m, int& line) {
  const Sem other = k.dma_sem();
  MISTAKE k.copy(m.x, m.b, other);
}
void forgotten_wait_sent(Kernel& k, const Buffers& m, int& line) {
  const Sems s = k.dma_sems(2);
  MISTAKE k.copy_to((k.core() + 1) % 2, m.a, m.b, s.at(0), s.at(1)).wait();
}
// A wait in another iteration, named by its refs, is a wait.
void forgotten_output(Kernel& k, int& line) { MISTAKE k.output("y", Elem::kF32, {8, 128}); }

class Warnings : public testing::TestWithParam<ErrorCase> {};
TEST_P(Warnings, ComeWithTheProgram) { expect_warning(GetParam(), __FILE__); }
const ErrorCase kWarnings[] = {
    {"ForgottenWait", "dma_in_flight_at_end", "nothing waits for the bytes", "call wait()",
     in_scope<forgotten_wait>},
    {"ForgottenWaitSent", "dma_in_flight_at_end", "left its source", "call wait_sent()",
     in_scope<forgotten_wait_sent>, 2},
    {"ForgottenOutput", "uninitialised_read", "output y is never written", "copy() into it",
     forgotten_output},
};
INSTANTIATE_TEST_SUITE_P(Each, Warnings, testing::ValuesIn(kWarnings),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gridless::lang
