// Files go both ways between C++ and Python: torch.save, safetensors and numpy.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <numeric>

#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint/record.h"
#include "lockstep/checkpoint/weight_files.h"
#include "lockstep/error.h"
#include "lockstep/formats/npz.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/tree_equal.h"

namespace lockstep {
namespace {

using testing::expect_equal;

const std::vector<std::pair<std::string, at::ScalarType>> kTypes = {
    {"float64", at::kDouble},
    {"float32", at::kFloat},
    {"float16", at::kHalf},
    {"bfloat16", at::kBFloat16},
    {"int64", at::kLong},
    {"int32", at::kInt},
    {"int16", at::kShort},
    {"int8", at::kChar},
    {"uint8", at::kByte},
    {"bool", at::kBool},
    {"complex64", at::kComplexFloat},
    {"complex128", at::kComplexDouble},
    {"uint16", at::kUInt16},
    {"uint32", at::kUInt32},
    {"uint64", at::kUInt64},
    {"float8_e4m3fn", at::kFloat8_e4m3fn},
    {"float8_e5m2", at::kFloat8_e5m2}};

at::Tensor tensor_of(at::ScalarType type) {
  return torch::arange(6, at::kFloat).reshape({2, 3}).to(type);
}

// The same values as content() in checkpoint_files.py.
Tree content() {
  const at::Tensor shared = torch::arange(4, at::kFloat);
  std::string all_bytes(256, '\0');
  std::iota(all_bytes.begin(), all_bytes.end(), '\0');
  Tree tree;
  for (const auto& [name, type] : kTypes) {
    tree["dtypes"][name] = tensor_of(type);
  }
  tree["scalar"] = torch::tensor(2.5F);
  tree["empty"] = torch::empty({0, 3});
  tree["transposed"] = torch::arange(6, at::kLong).reshape({2, 3}).t();
  tree["expanded"] = torch::tensor({7.0F}).expand({3});
  tree["tied"] = Tree::list({shared, shared, shared.slice(0, 1, 3)});
  tree["nested"]["list"] =
      Tree::list({1, Tree::list({2, Tree::list()}), Tree::dict()});
  tree["nested"]["tuple"] =
      Tree::tuple({1, Tree::tuple({}), Tree::tuple({2.5, "x"})});
  tree["nested"][3] = "int key";
  tree["none"] = Tree();
  tree["bools"] = Tree::list({true, false});
  tree["ints"] = Tree::list({0, 255, 256, 65536, -1, INT32_MIN,
                             int64_t{1} << 31, INT64_MIN, INT64_MAX});
  tree["big"] = Tree::list({uint64_t{1} << 63, BigInt{"-9223372036854775809"},
                            BigInt{"1267650600228229401496703205383"},
                            BigInt{"-1267650600228229401496703205383"}});
  tree["floats"] = Tree::list({0.1, -0.0, 1e308, HUGE_VAL});
  tree["text"] = "gr\u00fc\u00df \u4f60\u597d";
  tree["bytes"] = Bytes{all_bytes};
  return tree;
}

torch::nn::Sequential network() {
  return torch::nn::Sequential(torch::nn::Linear(3, 2),
                               torch::nn::BatchNorm1d(2));
}

void run_python(const char* command, const testing::TempDir& folder) {
  const auto result =
      testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/checkpoint_files.py",
                    command, folder.path().string()},
                   {.environment = {}, .folder = "", .ignored_signals = {}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

Tree named_arrays() {
  Tree tree;
  for (const auto& [name, type] : kTypes) {
    if (type != at::kComplexDouble) tree["a_torch." + name] = tensor_of(type);
  }
  tree["scalar"] = torch::tensor(2.5F);
  tree["empty"] = torch::empty({0, 3});
  return tree;
}

Tree numpy_arrays() {
  Tree tree;
  for (const auto& [name, type] : kTypes) {
    if (type == at::kBFloat16 || name.starts_with("float8")) continue;
    tree[name] = tensor_of(type);
  }
  tree["scalar"] = torch::tensor(2.5, at::kDouble);
  tree["empty"] = torch::empty({0, 3});
  return tree;
}

Tree read_arrays(const std::filesystem::path& path) {
  formats::Value value;
  for (auto& [name, array] : formats::read_npz(path)) value[name] = array;
  return checkpoint::to_tree(value);
}

Tree optimizer_state(torch::nn::Module& module) {
  Tree tree;
  int64_t number = 0;
  for (const at::Tensor& parameter : module.parameters()) {
    Tree& state = tree["state"][number];
    state["step"] = torch::tensor(5.0F);
    state["exp_avg"] = torch::full_like(parameter, number).detach();
    state["exp_avg_sq"] = torch::ones_like(parameter).detach();
    ++number;
  }
  Tree group;
  group["lr"] = 0.25;
  group["betas"] = Tree::tuple({0.5, 0.75});
  for (const char* name : {"eps", "weight_decay"}) group[name] = 0.0;
  for (const char* name : {"amsgrad", "maximize", "capturable",
                           "differentiable", "decoupled_weight_decay"}) {
    group[name] = false;
  }
  for (const char* name : {"foreach", "fused"}) group[name] = Tree();
  for (int64_t i = 0; i < number; ++i) group["params"].push_back(i);
  tree["param_groups"].push_back(group);
  return tree;
}

// The same as lazy_tensors() in checkpoint_files.py.
Tree lazy_tensors() {
  const at::Tensor z =
      torch::complex(torch::arange(6.0F), torch::arange(1.0F, 7.0F))
          .reshape({2, 3});
  Tree tree;
  tree["plain"] = z;
  tree["conj"] = z.conj();
  tree["transposed"] = z.conj().t();
  tree["neg"] = torch::imag(z.conj());
  tree["both"] = z.to(at::kComplexDouble).conj()._neg_view()[1];
  return tree;
}

TEST(CheckpointInterop, PythonLoadsWhatWeWrite) {
  const testing::TempDir folder;
  save_checkpoint(folder.path() / "ours.pt", content());
  auto net = network();
  save_checkpoint(folder.path() / "optimizer.pt", optimizer_state(*net));
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& tensor : net->parameters()) tensor.fill_(2);
    for (at::Tensor& tensor : net->buffers()) tensor.fill_(2);
  }
  save_checkpoint(folder.path() / "module_state.pt", module_state(*net));
  save_safetensors(folder.path() / "ours.safetensors", named_arrays());
  save_checkpoint(folder.path() / "ours_lazy.pt", lazy_tensors());
  formats::NamedTensors arrays;
  const formats::Value values = checkpoint::to_value(numpy_arrays());
  for (const auto& entry : *values.get_if<formats::Value::Dict>()) {
    arrays.emplace_back(*entry.key.get_if<std::string>(),
                        *entry.value.get_if<formats::TensorRecord>());
  }
  formats::write_npz(folder.path() / "ours.npz", arrays);
  run_python("check", folder);
}

// In any order.
void expect_named(const Tree& actual, const Tree& expected) {
  for (const auto& entry : *expected.get_if<Tree::Dict>()) {
    const auto& name = *entry.key.get_if<std::string>();
    expect_equal(actual.at(name).value(), entry.value, name);
  }
}

class PythonFiles : public ::testing::Test {
 protected:
  void SetUp() override { run_python("write", folder_); }
  std::filesystem::path file(const char* name) const {
    return folder_.path() / name;
  }

 private:
  testing::TempDir folder_;
};

TEST_F(PythonFiles, AreReadInEveryFormat) {
  expect_equal(load_checkpoint(file("zip.pt")), content());
  expect_equal(load_checkpoint(file("legacy.pt")), content());
  expect_equal(load_checkpoint(file("protocol4.pt")), content());
  expect_named(load_checkpoint(file("python.safetensors")), named_arrays());
}

TEST_F(PythonFiles, TiedTensorsShareMemory) {
  for (const char* name : {"zip.pt", "legacy.pt"}) {
    const Tree loaded = load_checkpoint(file(name));
    const auto tied = loaded.at("tied");
    tied.at(0).as_tensor()[1] = 99;
    EXPECT_EQ(tied.at(1).as_tensor()[1].item<float>(), 99);
    EXPECT_EQ(tied.at(2).as_tensor()[0].item<float>(), 99);
  }
}

TEST_F(PythonFiles, ConjugatedAndNegatedTensorsHaveTheirSigns) {
  const Tree expected = lazy_tensors();
  for (const char* name : {"lazy.pt", "lazy_legacy.pt"}) {
    const Tree loaded = load_checkpoint(file(name));
    const checkpoint::WeightFiles files(file(name));
    for (const auto& entry : *expected.get_if<Tree::Dict>()) {
      const auto& key = *entry.key.get_if<std::string>();
      const at::Tensor wanted =
          entry.value.get_if<at::Tensor>()->resolve_conj().resolve_neg();
      const at::Tensor& tensor = loaded.at(key).as_tensor();
      EXPECT_FALSE(tensor.is_conj() || tensor.is_neg()) << key;
      EXPECT_TRUE(torch::equal(tensor, wanted)) << name << " " << key;
      EXPECT_TRUE(torch::equal(files.get(key), wanted)) << name << " " << key;
      EXPECT_TRUE(torch::equal(files.load(key, at::kCPU), wanted)) << key;
    }
  }
}

TEST_F(PythonFiles, StateDictsOfManyTensorsAreRead) {
  const Tree many = load_checkpoint(file("many.pt"));
  EXPECT_EQ(TreeView(many).as_dict().size(), 20'000U);
  EXPECT_EQ(many.at("layers.19999.attention.weight").as_tensor().item<float>(),
            19'999);
}

TEST_F(PythonFiles, StateDictsLoadIntoModules) {
  auto net = network();
  load_module_state(*net, load_checkpoint(file("state_dict.pt")));
  const Tree first = module_state(*net);
  auto other = network();
  // The same names with "module." before them, beside objects of Python.
  const Tree unknown = load_checkpoint(file("unknown.pt"));
  load_module_state(*other, unknown.at("model"));
  expect_equal(module_state(*other), first);
}

TEST_F(PythonFiles, UnknownObjectsAreSkipped) {
  const Tree tree = load_checkpoint(file("unknown.pt"));
  EXPECT_EQ(tree.find("args")->get_if<Opaque>()->class_name,
            "argparse.Namespace");
  EXPECT_TRUE(tree.find("best")->is<Opaque>());
  EXPECT_TRUE(tree.find("dtype")->is<Opaque>());
  EXPECT_EQ(tree.at("epoch").as_int(), 7);
  EXPECT_EQ(tree.at("size").at(1).as_int(), 3);
  EXPECT_EQ(tree.at("sets").at(0).as_int(), 1);
  EXPECT_EQ(tree.at("counts").at("a").at(0).as_int(), 1);
  EXPECT_TRUE(torch::equal(tree.at("parameter").as_tensor(), torch::ones(2)));
  EXPECT_TRUE(load_checkpoint(file("module.pt")).is<Opaque>());
}

TEST_F(PythonFiles, NpzArraysAreRead) {
  for (const char* name : {"plain.npz", "compressed.npz"}) {
    expect_named(read_arrays(file(name)), numpy_arrays());
  }
  EXPECT_TRUE(torch::equal(read_arrays(file("fortran.npz")).at("a").as_tensor(),
                           torch::arange(6).reshape({2, 3})));
}

}  // namespace
}  // namespace lockstep
