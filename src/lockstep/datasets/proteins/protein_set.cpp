#include "lockstep/datasets/proteins/protein_set.h"

#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/models/protein/vocabulary.h"

namespace lockstep::proteins {
namespace {

int64_t length_of(const Protein& protein) {
  return protein.num_residues() + std::ssize(protein.fragments);
}

// The k-th tensors of all samples as rows of one that `value` fills.
at::Tensor padded(const std::vector<Sample>& samples, size_t part,
                  double value) {
  int64_t longest = 0;
  for (const Sample& sample : samples) {
    longest = std::max(longest, sample.at(part).size(0));
  }
  const at::Tensor& first = samples[0][part];
  std::vector<int64_t> shape = first.sizes().vec();
  shape[0] = longest;
  shape.insert(shape.begin(), std::ssize(samples));
  at::Tensor rows = at::full(shape, value, first.options());
  for (size_t i = 0; i < samples.size(); ++i) {
    const at::Tensor& row = samples[i][part];
    rows[static_cast<int64_t>(i)].narrow(0, 0, row.size(0)).copy_(row);
  }
  return rows;
}

}  // namespace

Sample protein_sample(const Protein& protein) {
  const int64_t length = protein.num_residues();
  return {at::tensor(protein.backbone).view({length, 4, 3}),
          at::scalar_tensor(length, at::kLong), at::tensor(protein.fragments),
          at::tensor(torsion_targets(protein)),
          at::tensor(protein.fragment_residues)};
}

Sample ProteinSet::get(int64_t index, uint64_t /*seed*/) const {
  return protein_sample(protein(index));
}

Sample ProteinSet::collate(std::vector<Sample> samples) const {
  std::vector<at::Tensor> lengths;
  for (const Sample& sample : samples) lengths.push_back(sample.at(1));
  return {padded(samples, 0, 0), at::stack(lengths),
          padded(samples, 2, static_cast<double>(protein::kPadFragment)),
          padded(samples, 3, -1), padded(samples, 4, -1)};
}

Protein ProteinFiles::protein(int64_t index) const {
  const ProteinEntry& entry = entries_.at(static_cast<size_t>(index));
  if (entry.kept) return *entry.kept;
  if (entry.path.extension() == ".pt") return read_protein_file(entry.path);
  return make_protein(read_structure(entry.path), entry.path);
}

std::string ProteinFiles::name(int64_t index) const {
  return structure_name(path(index));
}

std::vector<int64_t> ProteinFiles::lengths() const {
  std::vector<int64_t> lengths;
  for (const ProteinEntry& entry : entries_) lengths.push_back(entry.length);
  return lengths;
}

Protein GeneratedProteins::protein(int64_t index) const {
  return make_protein(generated_structure(config_, index), name(index));
}

std::string GeneratedProteins::name(int64_t index) const {
  return fmt::format("generated_{}", index);
}

std::vector<int64_t> GeneratedProteins::lengths() const {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < size_; ++i) lengths.push_back(length_of(protein(i)));
  return lengths;
}

}  // namespace lockstep::proteins
