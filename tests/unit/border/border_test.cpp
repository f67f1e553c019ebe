// Types that cross the border of liblockstep, in both directions.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <typeinfo>

#include "lockstep/lockstep.h"
#include "lockstep/train.h"

namespace lockstep {
namespace {

// Its errors are thrown by this program and pass through the library.
class BrokenDataset final : public Dataset {
 public:
  int64_t size() const override { return 1; }
  Sample get(int64_t, uint64_t) const override {
    throw FormatError("sample 0 is broken");
  }
};

TEST(Border, ErrorsOfTheLibraryAreCaughtByTheirType) {
  EXPECT_THROW(load_checkpoint("no such file"), IoError);
  EXPECT_THROW(RandomStream(1).integer(0), ConfigError);
  try {
    load_checkpoint("no such file");
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_EQ(typeid(error), typeid(IoError));
    EXPECT_NE(dynamic_cast<const Error*>(&error), nullptr);
  }
}

TEST(Border, TheLibraryKnowsErrorsOfTheProgram) {
  EXPECT_EQ(exit_code(TimeoutError("late")), kTimeoutExitCode);
  EXPECT_EQ(exit_code(PeerError("gone")), kPeerExitCode);
  EXPECT_EQ(kind_name(DeviceError("no GPU")), "DeviceError");
  EXPECT_EQ(run_program([] { throw ConfigError("a bad flag"); }), 2);
}

TEST(Border, ErrorsPassThroughTheThreadsOfTheLibrary) {
  const Loader loader(std::make_shared<BrokenDataset>(), Shard{},
                      c10::Device(c10::DeviceType::CPU), {.workers = 2});
  Batches batches = loader.epoch(0);
  EXPECT_THROW(batches.next(), FormatError);
}

TEST(Border, ClassesOfTheLibraryHaveOneTypeOnBothSides) {
  const auto made =
      make_optimizer("adamw", {{.parameters = {torch::zeros({2})}}}, {});
  EXPECT_NE(dynamic_cast<AdamW*>(made.get()), nullptr);
  EXPECT_EQ(dynamic_cast<Sgd*>(made.get()), nullptr);
  const Optimizer& optimizer = *made;
  EXPECT_EQ(typeid(optimizer), typeid(AdamW));
  const SyncBatchNorm norm(4);
  EXPECT_NE(norm.ptr()->as<SyncBatchNorm>(), nullptr);
}

TEST(Border, TreesOfTheLibraryAreThoseOfTheProgram) {
  Tree tree;
  tree["epoch"] = 3;
  tree["model"]["weight"] = torch::ones({2});
  EXPECT_EQ(tree.at("epoch").as_int(), 3);
  EXPECT_THROW(tree.at("model").at("bias"), FormatError);
}

}  // namespace
}  // namespace lockstep
