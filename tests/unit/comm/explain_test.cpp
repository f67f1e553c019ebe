#include "lockstep/comm/explain.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

// Texts as the libraries print them.
TEST(Explain, RecognisesTheTextsOfTheLibraries) {
  const std::vector<std::pair<std::string, comm::FaultKind>> known = {
      {"NCCL error in: ProcessGroupNCCL.cpp:77, unhandled system error (run "
       "with NCCL_DEBUG=INFO for details), NCCL version 2.28.9",
       comm::FaultKind::kNccl},
      {"ncclInvalidUsage: This usually reflects invalid usage of NCCL "
       "library. Last error: Duplicate GPU detected : rank 0 and rank 1 both "
       "on CUDA device 1000",
       comm::FaultKind::kDuplicateGpu},
      {"CUDA out of memory. Tried to allocate 20.00 MiB.",
       comm::FaultKind::kOutOfMemory},
      {"[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: "
       "can't allocate memory: you tried to allocate 4096 bytes. Error code 12 "
       "(Cannot allocate memory)",
       comm::FaultKind::kOutOfHostMemory},
      {"std::bad_alloc", comm::FaultKind::kOutOfHostMemory},
      {"The server socket has failed to listen on any local network address. "
       "port: 29500, useIpv6: false, code: -98, name: EADDRINUSE",
       comm::FaultKind::kPortTaken},
      {"[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] "
       "Timed out waiting 5000ms for recv operation to complete",
       comm::FaultKind::kTimeout},
      {"[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection "
       "closed by peer [127.0.0.1]:50847",
       comm::FaultKind::kPeerLost},
      {"[/pytorch/third_party/gloo/gloo/transport/tcp/socket.cc:58] connect "
       "[127.0.0.1]:50847: Connection refused",
       comm::FaultKind::kPeerLost},
      {"CUDA error: an illegal memory access was encountered",
       comm::FaultKind::kCuda},
      {"Cannot initialize CUDA without ATen_cuda library. PyTorch splits",
       comm::FaultKind::kCuda},
      {"Bootstrap : no socket interface found", comm::FaultKind::kInterface},
      {"mat1 and mat2 shapes cannot be multiplied", comm::FaultKind::kUnknown}};
  for (const auto& [text, kind] : known) {
    EXPECT_EQ(comm::recognise(text).kind, kind) << text;
    if (kind != comm::FaultKind::kUnknown) {
      EXPECT_FALSE(comm::recognise(text).remedy.empty()) << text;
    }
  }
}

TEST(Explain, ThrowsTheKindThatFits) {
  const auto thrown = [](const std::string& text) {
    try {
      comm::throw_explained(std::runtime_error(text),
                            "all_reduce #3 on rank 1 of 2");
    } catch (const Error& error) {
      return kind_name(error);
    }
  };
  EXPECT_EQ(thrown("Timed out waiting 10ms"), "TimeoutError");
  EXPECT_EQ(thrown("Connection closed by peer"), "PeerError");
  EXPECT_EQ(thrown("unhandled system error"), "DeviceError");
  EXPECT_EQ(thrown("Address already in use"), "ConfigError");
  EXPECT_EQ(thrown("something else"), "Error");
}

TEST(Explain, AnNcclErrorNamesCauseAndNextCommand) {
  try {
    comm::throw_explained(
        std::runtime_error("NCCL error: unhandled system error"),
        "connecting NCCL on rank 1 of 2 (cuda:1)");
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    for (const char* part :
         {"connecting NCCL on rank 1 of 2 (cuda:1)", "unhandled system error",
          "network interface", "NCCL_DEBUG=INFO", "NCCL_SOCKET_IFNAME"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
    }
  }
}

TEST(Explain, KnowsTheLibrariesFromTheProgram) {
  EXPECT_TRUE(comm::is_of_libraries(std::runtime_error(
      "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection "
      "closed by peer")));
  try {
    TORCH_CHECK(false, "shapes do not fit");
  } catch (const std::exception& error) {
    EXPECT_TRUE(comm::is_of_libraries(error));
  }
  EXPECT_FALSE(comm::is_of_libraries(
      std::runtime_error("bad value for 'timeout' in config.yaml")));
  EXPECT_FALSE(
      comm::is_of_libraries(std::runtime_error("[1, 2] out of memory")));
}

TEST(Explain, LackOfMemoryIsKnownFromTheProgramsOwnErrors) {
  EXPECT_TRUE(comm::is_out_of_memory(std::bad_alloc()));
  try {
    TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory: you tried");
  } catch (const std::exception& error) {
    EXPECT_TRUE(comm::is_out_of_memory(error));
  }
  EXPECT_FALSE(comm::is_out_of_memory(Error("sample 3 is out of memory")));
  EXPECT_FALSE(comm::is_out_of_memory(std::runtime_error("bad_alloc")));
}

TEST(Explain, AnErrorOfOursIsThrownOnUnchanged) {
  try {
    try {
      throw FormatError("as it was");
    } catch (const std::exception& error) {
      comm::throw_explained(error, "reading");
    }
  } catch (const FormatError& error) {
    EXPECT_STREQ(error.what(), "as it was");
  }
}

}  // namespace
}  // namespace lockstep
