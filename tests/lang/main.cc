// The test program is its own compile worker, as the `gridless` command is.
#include <gtest/gtest.h>

#include <string_view>

#include "gridless/tpu/worker.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "tpu-worker") return gridless::tpu::worker_main();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
