"""The transformer layers that are measured on a GPU and predicted: GPT as GPT-2 has it, Llama as
Llama-3 has it, from launches that hold the GPU up to one layer of a model with 70 billion
parameters. `held` sizes are predicted only: nothing may be fitted to them."""
import json


def gpt(hidden, heads, sequence, layers, dropout=False):
    return {"kind": "transformer", "name": "gpt", "architecture": "gpt2", "layers": layers,
            "hidden": hidden, "heads": heads, "ffn": 4 * hidden, "sequence": sequence,
            "vocabulary": 50304, "norm": "layernorm", "bias": True, "dropout": dropout,
            "tied_embeddings": False, "position_embeddings": "learned"}


def llama(hidden, heads, kv_heads, ffn, sequence, layers):
    return {"kind": "transformer", "name": "llama", "architecture": "llama", "layers": layers,
            "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "ffn": ffn, "gated_ffn": True,
            "sequence": sequence, "vocabulary": 32000, "norm": "rmsnorm", "bias": False,
            "dropout": False, "tied_embeddings": False, "position_embeddings": "rope"}


def size(name, model, micro_batch, *words):
    """WORDS: mixed (weights in fp32, products in bf16; else all is bf16), foreach (the optimizer
    makes a kernel of each of its operations; else one of all), compiled, held."""
    return {"name": name, "model": model, "micro_batch": micro_batch, "mixed": "mixed" in words,
            "foreach": "foreach" in words, "compiled": "compiled" in words, "held": "held" in words}


SIZES = [
    size("gpt-768", gpt(768, 12, 1024, 4, True), 16, "foreach"),
    size("gpt-1024", gpt(1024, 16, 1024, 4, True), 8, "foreach", "held"),
    size("gpt-1024-short", gpt(1024, 16, 512, 4), 1),
    size("gpt-1280", gpt(1280, 20, 1024, 3), 8, "mixed"),
    size("gpt-1600", gpt(1600, 25, 1024, 3), 8, "mixed", "held"),
    size("gpt-2048", gpt(2048, 16, 2048, 3), 4),
    size("gpt-2560", gpt(2560, 32, 2048, 2), 4, "held"),
    size("gpt-4096", gpt(4096, 32, 2048, 2), 4),
    size("gpt-5120", gpt(5120, 40, 2048, 2), 2, "held"),
    size("gpt-8192", gpt(8192, 64, 2048, 1), 1, "held"),
    size("llama-1024-short", llama(1024, 16, 8, 2816, 512, 4), 2, "held"),
    size("llama-1536", llama(1536, 12, 2, 8960, 1024, 3), 8, "foreach", "held"),
    size("llama-2048", llama(2048, 32, 8, 8192, 4096, 3), 2, "foreach"),
    size("llama-3072", llama(3072, 24, 8, 8192, 2048, 2), 4, "mixed", "held"),
    size("llama-3584", llama(3584, 28, 4, 18944, 2048, 2), 2, "held"),
    size("llama-4096", llama(4096, 32, 32, 11008, 4096, 2), 1, "mixed"),
    size("llama-4096-long", llama(4096, 32, 8, 14336, 8192, 2), 1, "held"),
    size("llama-5120", llama(5120, 40, 40, 13824, 2048, 2), 2),
    size("llama-6656", llama(6656, 52, 52, 17920, 2048, 1), 1),
    size("llama-8192", llama(8192, 64, 8, 28672, 4096, 1), 1),
    size("gpt-2048-compiled", gpt(2048, 16, 2048, 3), 4, "compiled"),
    size("llama-3584-compiled", llama(3584, 28, 4, 18944, 2048, 2), 2, "compiled", "held"),
    size("gpt-2560-compiled", gpt(2560, 32, 2048, 2), 4, "compiled", "held"),
    size("llama-2048-compiled", llama(2048, 32, 8, 8192, 4096, 3), 2, "compiled"),
]

if __name__ == "__main__":
    print(json.dumps(SIZES, indent=1))
