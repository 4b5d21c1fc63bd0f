#include "gridless/chips/tpu7x.h"

namespace gridless::chips {
namespace {

#define GRIDLESS_FACT(name) \
  FactRow { #name, static_cast<double>(kTpu7x.name.value), kTpu7x.name.source, kTpu7x.name.note }

constexpr FactRow kRows[] = {
    GRIDLESS_FACT(vmem_bytes),
    GRIDLESS_FACT(vmem_usable_bytes),
    GRIDLESS_FACT(vmem_default_limit_bytes),
    GRIDLESS_FACT(smem_bytes),
    GRIDLESS_FACT(smem_usable_bytes),
    GRIDLESS_FACT(semaphores),
    GRIDLESS_FACT(semaphores_usable),
    GRIDLESS_FACT(hbm_bytes),
    GRIDLESS_FACT(hbm_usable_bytes),
    GRIDLESS_FACT(hbm_bytes_per_second),
    GRIDLESS_FACT(hbm_copy_bytes_per_second),
    GRIDLESS_FACT(hbm_stream_bytes_per_second),
    GRIDLESS_FACT(die_to_die_bytes_per_second),
    GRIDLESS_FACT(ici_link_bytes_per_second),
    GRIDLESS_FACT(ici_peer_bytes_per_second),
    GRIDLESS_FACT(ici_core_bytes_per_second),
    GRIDLESS_FACT(ici_links_per_chip),
    GRIDLESS_FACT(clock_hz),
    GRIDLESS_FACT(mxus),
    GRIDLESS_FACT(mxu_size),
    GRIDLESS_FACT(bf16_flops),
    GRIDLESS_FACT(fp8_flops),
    GRIDLESS_FACT(sublanes),
    GRIDLESS_FACT(lanes),
    GRIDLESS_FACT(dma_granule_bytes),
    GRIDLESS_FACT(cores_per_chip),
    GRIDLESS_FACT(chips_per_host),
    GRIDLESS_FACT(chips_per_pod),
};

#undef GRIDLESS_FACT

}  // namespace

std::string_view source_name(Source source) {
  switch (source) {
    case Source::kSpec:
      return "spec";
    case Source::kLibtpu:
      return "libtpu";
    case Source::kMeasured:
      return "measured";
    case Source::kDerived:
      return "derived";
  }
  return "unknown";
}

std::span<const FactRow> tpu7x_facts() { return kRows; }

}  // namespace gridless::chips
