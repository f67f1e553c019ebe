"""Runs VGGT-1B with random weights forward in PyTorch and prints its speed as JSON, a line a batch.

Usage: vggt_peer.py [--batches 1 8] [--views 2] [--size 518] [--trunk autocast|bf16|fp32]
                    [--depth] [--compile] [--device cuda|cpu] [--tiny]

Images [B,views,3,size,size] lie on the device; nothing takes a gradient. The trunk (ViT and
alternating blocks) computes in bf16: by autocast of fp32 weights as the original does, or of
weights that are bf16 themselves. The heads (camera, points; depth if asked) compute in fp32. Only
the layers that are needed are kept. Keys of a line: rate (frames per second, the median of rates),
ms (of a forward), batch, peak_bytes.
"""
import torch

import peer_timing as timing
import vggt_reference as reference


def build(options):
    sizes = reference.TINY if options.tiny else {}
    with torch.device(options.device):
        model = reference.Vggt(**sizes).eval().requires_grad_(False)
    if options.trunk == "bf16":
        model.aggregator.bfloat16()
    return model


def main():
    parser = timing.forward_parser(__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--views", type=int, default=2)
    parser.add_argument("--size", type=int, default=518)
    parser.add_argument("--trunk", choices=["autocast", "bf16", "fp32"], default="autocast")
    parser.add_argument("--depth", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="a small model, to try this script")
    options = parser.parse_args()
    timing.prepare(options)
    torch.backends.cudnn.benchmark = True
    model = build(options)
    trunk_type = torch.bfloat16 if options.trunk == "autocast" else None
    forward = timing.compiled(options, model) if options.compile else model
    how = {"has_depth": options.depth, "trunk_type": trunk_type}
    for batch in options.batches:
        shape = (batch, options.views, 3, options.size, options.size)
        images = torch.rand(shape, device=options.device)
        with torch.inference_mode():
            # Tables are made once for a size, before anything is compiled.
            points = model(images, **how)["points"]
        assert points.isfinite().all()
        facts = {"batch": batch, "parameters": sum(p.numel() for p in model.parameters())}
        num_frames = batch * options.views
        timing.report_forward(options, lambda: forward(images, **how), num_frames, facts)


if __name__ == "__main__":
    main()
