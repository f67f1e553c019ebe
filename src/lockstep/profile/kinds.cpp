#include "lockstep/profile/kinds.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string>

namespace lockstep::profile {
namespace {

using Names = std::span<const std::string_view>;

constexpr auto kProductOperations =
    std::to_array<std::string_view>({"mm",
                                     "addmm",
                                     "addmm_",
                                     "bmm",
                                     "bmm_",
                                     "baddbmm",
                                     "baddbmm_",
                                     "matmul",
                                     "linear",
                                     "mv",
                                     "addmv",
                                     "addmv_",
                                     "dot",
                                     "vdot",
                                     "einsum",
                                     "outer",
                                     "ger",
                                     "addr",
                                     "addbmm",
                                     "_addmm_activation",
                                     "mkldnn_linear",
                                     "bilinear",
                                     "linear_backward",
                                     "matmul_backward",
                                     "_trilinear"});
constexpr auto kCopyOperations =
    std::to_array<std::string_view>({"copy_",
                                     "_to_copy",
                                     "to",
                                     "clone",
                                     "contiguous",
                                     "cat",
                                     "stack",
                                     "hstack",
                                     "vstack",
                                     "pin_memory",
                                     "_pin_memory",
                                     "item",
                                     "_local_scalar_dense",
                                     "repeat",
                                     "roll",
                                     "flip",
                                     "_foreach_copy_",
                                     "pad",
                                     "constant_pad_nd",
                                     "repeat_interleave",
                                     "type_as",
                                     "cpu",
                                     "cuda",
                                     "tril",
                                     "triu"});
// They only describe memory.
constexpr auto kHostOperations =
    std::to_array<std::string_view>({"empty",
                                     "empty_like",
                                     "empty_strided",
                                     "empty_permuted",
                                     "new_empty",
                                     "new_empty_strided",
                                     "view",
                                     "view_as",
                                     "_unsafe_view",
                                     "as_strided",
                                     "as_strided_",
                                     "reshape",
                                     "_reshape_alias",
                                     "_reshape_copy",
                                     "transpose",
                                     "transpose_",
                                     "t",
                                     "t_",
                                     "mT",
                                     "permute",
                                     "select",
                                     "slice",
                                     "unsqueeze",
                                     "unsqueeze_",
                                     "squeeze",
                                     "squeeze_",
                                     "expand",
                                     "expand_as",
                                     "detach",
                                     "detach_",
                                     "alias",
                                     "resize_",
                                     "resize_as_",
                                     "set_",
                                     "narrow",
                                     "split",
                                     "split_with_sizes",
                                     "chunk",
                                     "unbind",
                                     "unflatten",
                                     "flatten",
                                     "lift_fresh",
                                     "result_type",
                                     "is_nonzero",
                                     "size",
                                     "stride",
                                     "unfold",
                                     "movedim",
                                     "swapaxes",
                                     "diagonal",
                                     "numpy_T",
                                     "is_pinned",
                                     "record_stream",
                                     "view_as_real",
                                     "view_as_complex",
                                     "real",
                                     "imag",
                                     "set_data",
                                     "is_same_size",
                                     "tensor_split",
                                     "ravel",
                                     "adjoint",
                                     "requires_grad_",
                                     "resolve_conj",
                                     "resolve_neg",
                                     "_has_compatible_shallow_copy_type"});

constexpr auto kAttentionWords = std::to_array<std::string_view>(
    {"flash", "fmha", "attention", "sdpa", "mem_eff"});
constexpr auto kExchangeWords =
    std::to_array<std::string_view>({"nccl", "gloo", "c10d"});
constexpr auto kProductWords = std::to_array<std::string_view>(
    {"gemm", "gemv", "cutlass", "cublas", "nvjet", "wgmma", "xmma", "conv",
     "winograd", "wgrad", "dgrad", "fprop", "splitk", "sm80_", "sm90_",
     "sm100_", "dot_kernel", "hmma", "imma"});
constexpr auto kCopyWords =
    std::to_array<std::string_view>({"memcpy", "memset", "copy", "nchwtonhwc",
                                     "nhwctonchw", "catarray", "transpose"});
constexpr auto kElementwiseWords = std::to_array<std::string_view>(
    {"elementwise",   "vectorized",  "unrolled",     "reduce",
     "softmax",       "norm",        "multi_tensor", "foreach",
     "adam",          "sgd",         "lerp",         "lockstep",
     "index",         "gather",      "scatter",      "embedding",
     "fill",          "cumsum",      "scan",         "sort",
     "radix",         "philox",      "random",       "distribution",
     "dropout",       "arange",      "range",        "pool",
     "upsample",      "interpolate", "cub::",        "nll_loss",
     "cross_entropy", "where",       "mask",         "amp_",
     "triu",          "tril",        "histogram",    "topk",
     "bincount",      "nonzero",     "unique",       "roll",
     "flip",          "gelu",        "silu",         "relu",
     "sigmoid",       "compare",     "any_kernel",   "finite",
     "sum",           "mean",        "layer_norm",   "batch_norm",
     "group_norm",    "grid_sample", "rope"});

bool contains_any(std::string_view text, Names words) {
  return std::ranges::any_of(words, [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

bool is_one_of(std::string_view name, Names names) {
  return std::ranges::find(names, name) != names.end();
}

// "AddmmBackward0", "torch::autograd::CopySlices": nodes of the graph, whose
// own time is bookkeeping.
bool is_graph_node(std::string_view name) {
  if (name.starts_with("autograd::") || name.starts_with("torch::autograd::")) {
    return true;
  }
  while (!name.empty() &&
         std::isdigit(static_cast<unsigned char>(name.back())) != 0) {
    name.remove_suffix(1);
  }
  return name.ends_with("Backward");
}

bool is_runtime_call(std::string_view name) {
  const bool is_cuda = name.starts_with("cuda");
  const bool is_driver = name.starts_with("cu") && name.size() > 2 &&
                         std::isupper(static_cast<unsigned char>(name[2])) != 0;
  return is_cuda || is_driver;
}

Kind kind_of_aten(std::string_view name) {
  if (contains_any(name, kAttentionWords)) return Kind::kAttention;
  if (is_one_of(name, kProductOperations) ||
      name.find("conv") != std::string_view::npos) {
    return Kind::kProducts;
  }
  if (is_one_of(name, kCopyOperations)) return Kind::kCopies;
  if (is_one_of(name, kHostOperations)) return Kind::kHost;
  return Kind::kElementwise;
}

}  // namespace

const char* kind_name(Kind kind) {
  static constexpr std::array<const char*, kNumKinds> kNames = {
      "products", "attention", "element-wise", "exchange",
      "copies",   "data",      "host",         "other"};
  return kNames.at(static_cast<size_t>(kind));
}

Kind kind_of_operation(std::string_view name) {
  if (name == "lockstep::data") return Kind::kData;
  if (name.starts_with("aten::")) return kind_of_aten(name.substr(6));
  if (name.starts_with("mkldnn::") || name.starts_with("onednn::")) {
    return Kind::kProducts;
  }
  if (name.starts_with("c10d::") || name.starts_with("gloo:") ||
      name.starts_with("nccl:")) {
    return Kind::kExchange;
  }
  // Operations that autograd records beside aten's.
  if (is_one_of(name, kHostOperations)) return Kind::kHost;
  if (name.starts_with("torch::distributed::")) return Kind::kElementwise;
  const bool is_trainers = name.starts_with("lockstep::") ||
                           name.starts_with("torch.distributed.ddp") ||
                           name.starts_with("Optimizer.") ||
                           name.starts_with("DistributedDataParallel");
  if (is_trainers || is_graph_node(name) || is_runtime_call(name)) {
    return Kind::kHost;
  }
  return Kind::kOther;
}

Kind kind_of_kernel(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  if (contains_any(lower, kExchangeWords)) return Kind::kExchange;
  if (lower.starts_with("memcpy") || lower.starts_with("memset")) {
    return Kind::kCopies;
  }
  if (contains_any(lower, kAttentionWords)) return Kind::kAttention;
  // Before the words of products and copies, which its arguments may hold.
  if (lower.find("lockstep") != std::string::npos) return Kind::kElementwise;
  if (contains_any(lower, kCopyWords)) return Kind::kCopies;
  if (contains_any(lower, kProductWords)) return Kind::kProducts;
  if (contains_any(lower, kElementwiseWords)) return Kind::kElementwise;
  return Kind::kOther;
}

}  // namespace lockstep::profile
