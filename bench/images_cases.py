"""The image trainings that images.py and kernel_times.py measure."""
COMMON = {"channels": 3, "classes": 10}
DIT = {**COMMON, "size": 32, "patch": 2, "dim": 384, "depth": 12, "heads": 6, "registers": 4}
JIT = {**COMMON, "size": 64, "patch": 4, "dim": 768, "depth": 12, "heads": 12}
# The count of jit is for 1000 classes and the one that stands for none.
NUM_DIT = 32477221
NUM_JIT = 130477872 - (1001 - 11) * 768
# A block is so long that a case takes about two minutes, and all blocks are one epoch at most.
CASES = {
    "dit128": {"recipe": "dit", "batch": 128, "block": 40, "sizes": DIT, "trainable": NUM_DIT},
    "dit512": {"recipe": "dit", "batch": 512, "block": 18, "sizes": DIT, "trainable": NUM_DIT},
    "dit16": {"recipe": "dit", "batch": 16, "block": 200, "sizes": DIT, "trainable": NUM_DIT},
    "jit16": {"recipe": "jit", "batch": 16, "block": 100, "sizes": JIT, "trainable": NUM_JIT},
    "jit128": {"recipe": "jit", "batch": 128, "block": 30, "sizes": JIT, "trainable": NUM_JIT},
}
TINY = {"dim": 32, "depth": 3, "heads": 2, "size": 16, "patch": 4}


def complete(case, is_smoke):
    case = {**case, "device": "cuda"}
    if is_smoke:
        sizes = {**case["sizes"], **TINY}
        case.update(sizes=sizes, batch=8, block=2, trainable=None, device="cpu")
    if case["recipe"] == "jit":
        context = {"bottleneck": 128, "context": 32, "start": case["sizes"]["depth"] // 3}
        case["sizes"] = {**case["sizes"], **context}
    return case


def model_flags(case):
    sizes = case["sizes"]
    shared = {"img_size": sizes["size"], **{name: sizes[name] for name in ("dim", "depth", "heads")}}
    if case["recipe"] == "jit":
        return {**shared, "model": f"JiT-B/{sizes['patch']}"}
    registers = sizes["registers"]
    return {**shared, "patch": sizes["patch"], "num_register_tokens": registers, "cfg_scales": 1}


def training_flags(case):
    return {
        **model_flags(case),
        "data_path": "builtin:shapes",
        "device": case["device"],
        "precision": "bf16",
        "batch_size": case["batch"],
        "workers": 1 if case["device"] == "cpu" else 12,
        "fid_every": 1000000,
        "sample_steps": 1,
        "copies": 1,
        "classes": 0,
    }
