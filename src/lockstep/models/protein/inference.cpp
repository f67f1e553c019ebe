#include "lockstep/models/protein/inference.h"

#include <ATen/ATen.h>

#include <optional>

#include "lockstep/models/protein/vocabulary.h"

namespace lockstep::protein {

FragmentGuess guess_fragments(ProteinModel& model, const ProteinInput& input,
                              int64_t num_iterations) {
  const at::Tensor is_fragment = input.fragments.ne(kPadFragment);
  const at::Tensor count = is_fragment.sum(1, /*keepdim=*/true);
  const at::Tensor positions =
      at::arange(input.fragments.size(1), count.options());
  ProteinInput shown = input;
  shown.fragments = is_fragment.to(at::kLong) * kMaskFragment;
  if (shown.fragments.numel() == 0) {
    return {.fragments = shown.fragments,
            .probabilities = shown.fragments.to(at::kDouble),
            .torsions = shown.fragments};
  }
  const at::Tensor residues = model.encode(input);
  FragmentGuess guess = {.probabilities =
                             at::zeros(input.fragments.sizes(),
                                       residues.options().dtype(at::kDouble))};
  for (int64_t step = 1; step <= num_iterations; ++step) {
    const FragmentLogits logits = model.decode(shown, residues);
    const at::Tensor chances = logits.fragments.to(at::kDouble)
                                   .slice(2, kFirstChemicalFragment)
                                   .softmax(-1);
    const auto [best, choice] = chances.max(-1);
    const at::Tensor is_open = shown.fragments.eq(kMaskFragment);
    const at::Tensor ids =
        at::where(is_open, choice + kFirstChemicalFragment, shown.fragments);
    guess.probabilities = at::where(is_open, best, guess.probabilities);
    // Kept positions sort first, padding last.
    const at::Tensor rank = at::where(is_open, best, 2 * is_fragment.to(best));
    const at::Tensor order = std::get<1>(at::sort(
        rank, std::optional<bool>(true), /*dim=*/1, /*descending=*/true));
    const at::Tensor num_kept = (count * step).div(num_iterations, "floor");
    const at::Tensor is_kept =
        at::zeros_like(is_fragment).scatter(1, order, positions < num_kept);
    shown.fragments =
        at::where(is_kept, ids, is_fragment.to(at::kLong) * kMaskFragment);
    guess.torsions = at::where(is_fragment, logits.torsions.argmax(-1),
                               at::scalar_tensor(-1, count.options()));
  }
  guess.fragments = shown.fragments;
  return guess;
}

}  // namespace lockstep::protein
