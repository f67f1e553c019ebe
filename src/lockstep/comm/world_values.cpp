// The collectives of World: tensors over the data group, small values over the
// CPU channel. On CPU tensors asyncOp is false: shared memory then needs no
// second thread. Gloo ignores it, and NCCL would return no work to wait for.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <charconv>
#include <cstring>

#include "lockstep/base/status.h"
#include "lockstep/comm/explain.h"
#include "lockstep/comm/world_impl.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

using Tensors = std::vector<at::Tensor>;

c10d::ReduceOp to_c10d(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean: return c10d::ReduceOp::SUM;
    case ReduceOp::kMin: return c10d::ReduceOp::MIN;
    case ReduceOp::kMax: return c10d::ReduceOp::MAX;
  }
  return c10d::ReduceOp::SUM;
}

int64_t size_in_bytes(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

at::Tensor bytes_to_tensor(const std::string& text, int64_t length) {
  at::Tensor bytes = at::zeros({length}, at::kByte);
  std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return comm::error_text(known);
  } catch (...) {
    return "an error without a text";
  }
}

std::string tensor_to_bytes(const at::Tensor& tensor, int64_t length) {
  return {static_cast<const char*>(tensor.const_data_ptr()),
          static_cast<size_t>(length)};
}

}  // namespace

void World::all_reduce(at::Tensor& tensor, ReduceOp op) const {
  impl_->require_open();
  if (op == ReduceOp::kMean && !tensor.is_floating_point()) {
    throw ConfigError(
        "the mean of integers is not an integer: reduce a floating tensor");
  }
  try {
    Tensors tensors{tensor};
    c10d::AllreduceOptions options;
    options.reduceOp = to_c10d(op);
    options.asyncOp = tensor.is_cuda();
    impl_->group->allreduce(tensors, options)->wait();
  } catch (const std::exception& error) {
    comm::throw_explained(error, impl_->describe(base::Collective::kAllReduce,
                                                 size_in_bytes(tensor)));
  }
  if (op == ReduceOp::kMean) tensor.div_(size());
}

void World::broadcast(at::Tensor& tensor, int from) const {
  impl_->require_open();
  try {
    Tensors tensors{tensor};
    c10d::BroadcastOptions options;
    options.rootRank = from;
    options.asyncOp = tensor.is_cuda();
    impl_->group->broadcast(tensors, options)->wait();
  } catch (const std::exception& error) {
    comm::throw_explained(error, impl_->describe(base::Collective::kBroadcast,
                                                 size_in_bytes(tensor)));
  }
}

std::vector<at::Tensor> World::all_gather(const at::Tensor& tensor) const {
  impl_->require_open();
  Tensors inputs{tensor.contiguous()};
  std::vector<Tensors> outputs(1);
  for (int rank = 0; rank < size(); ++rank) {
    outputs[0].push_back(at::empty_like(inputs[0]));
  }
  try {
    c10d::AllgatherOptions options;
    options.asyncOp = tensor.is_cuda();
    impl_->group->allgather(outputs, inputs, options)->wait();
  } catch (const std::exception& error) {
    comm::throw_explained(error, impl_->describe(base::Collective::kAllGather,
                                                 size_in_bytes(tensor)));
  }
  return outputs[0];
}

void World::Impl::on_control(base::Collective kind, int64_t bytes,
                             const std::function<void()>& call) {
  require_open();
  const int64_t number = status.start_collective(kind, bytes);
  try {
    call();
  } catch (const std::exception& error) {
    status.fail_collective(number);
    comm::throw_explained(error, describe(kind, bytes));
  }
  status.finish_collective();
}

at::Tensor World::Impl::reduce(const at::Tensor& value, ReduceOp op) {
  at::Tensor result = value.clone();
  if (is_alone()) return result;
  on_control(base::Collective::kAllReduce, size_in_bytes(value), [&] {
    Tensors tensors{result};
    c10d::AllreduceOptions options;
    options.reduceOp = to_c10d(op);
    options.asyncOp = false;
    control->allreduce(tensors, options)->wait();
  });
  return result;
}

double World::reduce_real(double value, ReduceOp op) const {
  const auto sum = impl_->reduce(at::full({1}, value, at::kDouble), op);
  const double result = sum.item<double>();
  return op == ReduceOp::kMean ? result / size() : result;
}

int64_t World::reduce_whole(int64_t value, ReduceOp op) const {
  if (op == ReduceOp::kMean) {
    throw ConfigError(
        "the mean of integers is not an integer: reduce a double");
  }
  return impl_->reduce(at::full({1}, value, at::kLong), op).item<int64_t>();
}

bool World::any(bool value) const {
  return reduce(int64_t{value}, ReduceOp::kMax) != 0;
}

bool World::all(bool value) const {
  return reduce(int64_t{value}, ReduceOp::kMin) != 0;
}

std::vector<std::string> World::gather_texts(const std::string& text) const {
  if (impl_->is_alone()) return {text};
  const auto gather = [&](const at::Tensor& own) {
    std::vector<Tensors> all(1);
    for (int rank = 0; rank < size(); ++rank) {
      all[0].push_back(at::empty_like(own));
    }
    Tensors inputs{own};
    impl_->on_control(base::Collective::kAllGather, size_in_bytes(own), [&] {
      c10d::AllgatherOptions options;
      options.asyncOp = false;
      impl_->control->allgather(all, inputs, options)->wait();
    });
    return all[0];
  };
  const Tensors lengths =
      gather(at::full({1}, static_cast<int64_t>(text.size()), at::kLong));
  int64_t longest = 1;
  for (const at::Tensor& length : lengths) {
    longest = std::max(longest, length.item<int64_t>());
  }
  const Tensors bytes = gather(bytes_to_tensor(text, longest));
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < bytes.size(); ++rank) {
    texts.push_back(
        tensor_to_bytes(bytes[rank], lengths[rank].item<int64_t>()));
  }
  return texts;
}

std::string World::broadcast_text(const std::string& text, int from) const {
  if (impl_->is_alone()) return text;
  const auto send = [&](at::Tensor tensor) {
    impl_->on_control(base::Collective::kBroadcast, size_in_bytes(tensor), [&] {
      Tensors tensors{tensor};
      c10d::BroadcastOptions options;
      options.rootRank = from;
      options.asyncOp = false;
      impl_->control->broadcast(tensors, options)->wait();
    });
    return tensor;
  };
  const bool is_sender = rank() == from;
  const int64_t length =
      send(at::full({1}, is_sender ? static_cast<int64_t>(text.size()) : 0,
                    at::kLong))
          .item<int64_t>();
  const int64_t padded = std::max<int64_t>(length, 1);
  return tensor_to_bytes(send(bytes_to_tensor(is_sender ? text : "", padded)),
                         length);
}

std::string World::share(const std::string& text,
                         std::exception_ptr error) const {
  constexpr char kResult = 'R';
  constexpr char kError = 'E';
  std::string sent = kResult + text;
  if (error) sent = kError + what_of(error);
  const std::string received = broadcast_text(sent);
  if (error) std::rethrow_exception(error);
  if (received[0] == kError) {
    throw PeerError("rank 0 failed: " + received.substr(1));
  }
  return received.substr(1);
}

namespace detail {
namespace {

template <typename Number>
Number parse(const std::string& text) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string to_text(int64_t value) { return std::to_string(value); }

// Shortest text that gives the same bits back.
std::string to_text(double value) {
  std::array<char, 32> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

void from_text(const std::string& text, int64_t& value) {
  value = parse<int64_t>(text);
}
void from_text(const std::string& text, double& value) {
  value = parse<double>(text);
}

}  // namespace detail
}  // namespace lockstep
