#include "lockstep/models/protein/losses.h"

#include <ATen/ATen.h>

namespace lockstep::protein {
namespace {

constexpr int64_t kNotScored = -1;

at::Tensor hidden_fragments(const ProteinTargets& targets) {
  return targets.fragments.masked_fill(~targets.is_hidden, kNotScored);
}

// logits [B, M, classes], classes int64 [B, M] -> [B].
at::Tensor cross_entropies(const at::Tensor& logits,
                           const at::Tensor& classes) {
  const at::Tensor losses =
      at::nll_loss(at::log_softmax(logits.flatten(0, 1), -1), classes.flatten(),
                   /*weight=*/{}, at::Reduction::None, kNotScored);
  return losses.view(classes.sizes()).sum(1);
}

}  // namespace

ProteinLosses protein_losses(const FragmentLogits& logits,
                             const ProteinTargets& targets) {
  return {
      .fragments = cross_entropies(logits.fragments, hidden_fragments(targets)),
      .torsions = cross_entropies(logits.torsions, targets.torsions)};
}

ProteinHits protein_hits(const FragmentLogits& logits,
                         const ProteinTargets& targets) {
  const int64_t num_bins = logits.torsions.size(2);
  const at::Tensor way = (logits.torsions.argmax(-1) - targets.torsions).abs();
  const at::Tensor off = at::minimum(way, num_bins - way);
  const at::Tensor is_scored = targets.torsions.ne(kNotScored);
  return {.fragments =
              logits.fragments.argmax(-1).eq(hidden_fragments(targets)).sum(1),
          .torsions = (off.eq(0) & is_scored).sum(1),
          .near_torsions = (off.le(kNearTorsionBins) & is_scored).sum(1)};
}

}  // namespace lockstep::protein
