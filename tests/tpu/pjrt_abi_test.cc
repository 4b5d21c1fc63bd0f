// Our declarations of the PJRT C API against the real libtpu, which names the struct and the size
// that it expects when it is given too small a one. So slots and sizes are checked by their owner.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "gridless/tpu/libtpu_path.h"
#include "gridless/tpu/pjrt_call.h"

namespace gridless::tpu {
namespace {

using abi::Slot;

struct Expectation {
  Slot slot;
  const char* name;  // in lower case: libtpu spells some with a capital L in Client
  size_t size;       // of our struct
};

template <typename Args>
Expectation expect(Slot slot, const char* name) {
  return {slot, name, sizeof(Args)};
}

const std::vector<Expectation>& all() {
  static const std::vector<Expectation> list = {
      expect<abi::EventArgs>(Slot::kEventDestroy, "event_destroy"),
      expect<abi::EventArgs>(Slot::kEventAwait, "event_await"),
      expect<abi::EventOnReadyArgs>(Slot::kEventOnReady, "event_onready"),
      expect<abi::ClientCreateArgs>(Slot::kClientCreate, "client_create"),
      expect<abi::ClientDestroyArgs>(Slot::kClientDestroy, "client_destroy"),
      expect<abi::ClientTextArgs>(Slot::kClientPlatformName, "client_platformname"),
      expect<abi::ClientTextArgs>(Slot::kClientPlatformVersion, "client_platformversion"),
      expect<abi::ClientDevicesArgs>(Slot::kClientDevices, "client_devices"),
      expect<abi::ClientDevicesArgs>(Slot::kClientAddressableDevices, "client_addressabledevices"),
      expect<abi::ClientCompileArgs>(Slot::kClientCompile, "client_compile"),
      expect<abi::BufferFromHostArgs>(Slot::kClientBufferFromHostBuffer,
                                      "client_bufferfromhostbuffer"),
      expect<abi::DeviceDescriptionIdArgs>(Slot::kDeviceDescriptionId, "devicedescription_id"),
      expect<abi::DeviceDescriptionAttributesArgs>(Slot::kDeviceDescriptionAttributes,
                                                   "devicedescription_attributes"),
      expect<abi::DeviceGetDescriptionArgs>(Slot::kDeviceGetDescription, "device_getdescription"),
      expect<abi::ExecutableDestroyArgs>(Slot::kExecutableDestroy, "executable_destroy"),
      expect<abi::ExecutableNumOutputsArgs>(Slot::kExecutableNumOutputs, "executable_numoutputs"),
      expect<abi::ExecutableSizeOfGeneratedCodeArgs>(Slot::kExecutableSizeOfGeneratedCode,
                                                     "executable_sizeofgeneratedcodeinbytes"),
      expect<abi::ExecutableGetCostAnalysisArgs>(Slot::kExecutableGetCostAnalysis,
                                                 "executable_getcostanalysis"),
      expect<abi::ExecutableSerializeArgs>(Slot::kExecutableSerialize, "executable_serialize"),
      expect<abi::LoadedExecutableArgs>(Slot::kLoadedExecutableDestroy, "loadedexecutable_destroy"),
      expect<abi::LoadedExecutableGetExecutableArgs>(Slot::kLoadedExecutableGetExecutable,
                                                     "loadedexecutable_getexecutable"),
      expect<abi::LoadedExecutableDevicesArgs>(Slot::kLoadedExecutableAddressableDevices,
                                               "loadedexecutable_addressabledevices"),
      expect<abi::ExecuteArgs>(Slot::kLoadedExecutableExecute, "loadedexecutable_execute"),
      expect<abi::DeserializeAndLoadArgs>(Slot::kExecutableDeserializeAndLoad,
                                          "executable_deserializeandload"),
      expect<abi::BufferArgs>(Slot::kBufferDestroy, "buffer_destroy"),
      expect<abi::BufferToHostArgs>(Slot::kBufferToHostBuffer, "buffer_tohostbuffer"),
      expect<abi::BufferReadyEventArgs>(Slot::kBufferReadyEvent, "buffer_readyevent"),
      expect<abi::TopologyCreateArgs>(Slot::kTopologyCreate, "topologydescription_create"),
      expect<abi::TopologyGetDeviceDescriptionsArgs>(Slot::kTopologyGetDeviceDescriptions,
                                                     "topologydescription_getdevicedescriptions"),
      expect<abi::CompileArgs>(Slot::kCompile, "compile"),
      expect<abi::ExecutableGetCompiledMemoryStatsArgs>(Slot::kExecutableGetCompiledMemoryStats,
                                                        "executable_getcompiledmemorystats"),
  };
  return list;
}

TEST(PjrtAbi, EveryDeclaredStructIsWhatLibtpuExpectsInThatSlot) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "libtpu is not built for the sanitizers";
#endif
  const auto libtpu = find_libtpu("");
  if (!libtpu) GTEST_SKIP() << libtpu.error().message;
  setenv("TPU_SKIP_MDS_QUERY", "1", 1);
  const auto api = load_plugin(libtpu->path.string());
  ASSERT_TRUE(api) << api.error().message;
  const std::regex says("Unexpected PJRT_(\\w+?)(_Args)? size: expected (\\d+), got");
  for (const Expectation& e : all()) {
    struct {
      abi::Header header;  // struct_size 0: refused before anything else is read
      char rest[256] = {};
    } args;
    const auto refused = try_call(**api, e.slot, args);
    ASSERT_FALSE(refused) << e.name;
    std::smatch match;
    ASSERT_TRUE(std::regex_search(refused.error().text, match, says)) << refused.error().text;
    std::string name = match[1];
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    EXPECT_EQ(name, e.name);
    EXPECT_GE(e.size, std::stoul(match[3])) << e.name;
    EXPECT_LT(e.size, std::stoul(match[3]) + 16) << e.name << " has fields that libtpu lacks";
  }
}

}  // namespace
}  // namespace gridless::tpu
