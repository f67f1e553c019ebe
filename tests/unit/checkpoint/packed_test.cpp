#include "lockstep/checkpoint/packed.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "support/tree_equal.h"

namespace lockstep::checkpoint {
namespace {

Tree make_packed_tree() {
  const at::Tensor weight = torch::randn({5, 3});
  Tree tree = Tree::dict();
  tree["weight"] = weight;
  tree["tied"] = weight;
  tree["none"] = Tree();
  tree["empty"] = torch::empty({0});
  tree["number"] = int64_t{1} << 40;
  tree["list"] = Tree::list({1.5, true, std::string("text")});
  return tree;
}

TEST(Packed, IsTheSameTreeAgain) {
  const Tree tree = make_packed_tree();
  const Tree again = unpack(pack(tree));
  testing::expect_equal(again, tree);
  EXPECT_TRUE(again.find("weight")->get_if<at::Tensor>()->is_alias_of(
      *again.find("tied")->get_if<at::Tensor>()));
}

TEST(Packed, WhatIsCutOffIsAnError) {
  const std::string bytes = pack(make_packed_tree());
  for (const size_t size :
       {size_t{0}, size_t{7}, size_t{30}, bytes.size() / 2, bytes.size() - 1}) {
    EXPECT_THROW(unpack(std::string_view(bytes).substr(0, size)), FormatError)
        << size;
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
